"""From a table, its types and the options of a run to what is sampled, everything checked."""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.efforts import length_of, paced
from glfm_cli.completion.models import Asked, model_of, named, refused
from glfm_cli.encoding import Data, EncodedColumn, Relations, encode, learnt_cells, with_known
from glfm_cli.errors import SchemaError, UsageError
from glfm_cli.guess import Guess
from glfm_cli.guess import guess_schema as guess_of
from glfm_cli.guess.hints import following
from glfm_cli.inference.sampling import Plan
from glfm_cli.io import naming_sheets, read_table
from glfm_cli.io.files import STANDARD, file_label
from glfm_cli.io.frames import table_of
from glfm_cli.latent.capabilities import (
    HasFactors,
    LimitedTypes,
    Scheduled,
    SuitsColumns,
    TakesAtoms,
)
from glfm_cli.latent.grouped import with_groups
from glfm_cli.latent.model import LatentModel, Problem
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.options import CHAINS, MatrixOptions, Sampling, gather
from glfm_cli.schema import Schema, read_schema
from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import quoted
from glfm_cli.settings import apply_settings

MORE_CHAINS = 16
AUTO = "auto"  # in place of a types file
MOST_CODES = 3  # that are shown
MOST_NAMED = 3  # columns
FEW_CELLS = 40_000  # observed, up to which there are more chains

TableLike: TypeAlias = Any  # a table, a data frame, a matrix of numbers, or a path
Types: TypeAlias = Schema | Guess | Mapping[str, Any] | str | os.PathLike[str]


class Configured(NamedTuple):
    """A model, its configuration and that of the links, and how long it is fitted."""

    latent: LatentModel
    config: Any
    links: LinkConfig
    plan: Plan


def prepare(
    table: pa.Table,
    types: Types,
    sampling: Sampling | None = None,
    *,
    file: str | None = None,
    data: Data | None = None,
    **options: Any,
) -> tuple[Problem, Data, Plan]:
    """Check everything, encode the table and calibrate the links; nothing is sampled yet.

    `options` are fields of `sampling`; `file` names the table in messages; `data` is the table
    when it has been encoded already.
    """
    (sampling,) = gather(options, sampling or Sampling())
    model_of(sampling, "dense")
    if data is None:
        data = encode(table, as_schema(types), file=file)
    data = with_known(data, file)
    problem, plan = problem_of(data, sampling, file)
    return problem, data, plan


def problem_of(
    data: Data, sampling: Sampling, file: str | None = None, rows: Array | None = None
) -> tuple[Problem, Plan]:
    """Return what is sampled of an encoded table, and how long.

    Of `rows` alone is the problem, where they are given; constants of links are those of all.
    """
    learnt = data if rows is None else data.take(rows)
    latent, found = _configured(data, learnt, sampling, file)
    links_config = found.links
    if "first_threshold_fixed" not in (sampling.settings or {}):  # without a bias it must be free
        bias = getattr(found.config, "bias", False)
        links_config = dataclasses.replace(links_config, first_threshold_fixed=bias)
    if latent.sees != "gaussian" and not isinstance(latent, TakesAtoms):
        links_config = dataclasses.replace(links_config, atoms=False)
    rates = isinstance(latent, HasFactors)
    links = tuple(make_link(encoded, links_config, rates=rates) for encoded in data.columns)
    xs = learnt_cells(learnt.columns)
    model, groups = found.latent, learnt.groups
    if groups is not None:
        model = with_groups(model)
    equations = tuple((one.d, *one.of) for one in Relations.of(data.columns).equations)
    problem = Problem(
        *(model, found.config, links, xs, links_config),
        groups=groups,
        equations=equations,
        beside=data.beside,
        group_level=tuple(d for d, one in enumerate(data.columns) if one.column.group_level),
    )
    return problem, found.plan


def plan_of(data: Data, sampling: Sampling) -> Plan:
    """Return how long an encoded table is sampled."""
    return _configured(data, data, sampling, None)[1].plan


def _configured(
    data: Data, learnt: Data, sampling: Sampling, file: str | None
) -> tuple[LatentModel, Configured]:
    """Return the model of a table, and what it is for the rows that it is learnt from."""
    kinds = [encoded.column.kind for encoded in data.columns]
    sampling = named(sampling, Asked("dense", kinds))
    latent = model_of(sampling, "dense")
    _check_types(latent, data.columns, file)
    return latent, configure(sampling, "dense", learnt.columns, chains_for(learnt, latent))


def _check_types(model: LatentModel, columns: Sequence[EncodedColumn], file: str | None) -> None:
    """Raise SchemaError for a column of a type that the model does not take."""
    for encoded in columns:
        column, kind = encoded.column, encoded.column.kind
        if not refused(model, [kind]):
            continue
        if isinstance(model, LimitedTypes):
            raise SchemaError(
                f"--model {model.name} takes tables of {' and '.join(sorted(model.types))} columns",
                file=file,
                column=column.name,
                value=kind,
                hint="Set `role: ignore` for the others, or use another model.",
            )
        raise SchemaError(
            f"--model {model.name} takes no {kind} columns"
            if column.missingness is None
            else f"--model {model.name} takes no `{kind}`",
            file=file,
            column=column.name,
            hint="Use another model, or give the column another type."
            if column.missingness is None
            else "Use another model, such as bsvd, or leave `missingness` out.",
        )


def configure(
    sampling: Sampling,
    layout: str,
    columns: Sequence[EncodedColumn],
    chains: int,
    n_rows: int | None = None,
) -> Configured:
    """Return the model for columns of some layout, its configuration, and how long it is fitted.

    `chains` are there when nobody says how many; `n_rows` are those of a matrix. What a model
    takes for granted may depend on the kinds of columns; the settings of `sampling` come last.
    """
    latent = model_of(sampling, layout)
    first = length_of(sampling.effort, latent.name).first_chains
    sampling = paced(sampling, latent.name)
    if isinstance(latent, Scheduled):
        chains = latent.n_restarts
    plan = Plan(**sampling.length(chains))
    if sampling.chains is None and first is not None and first < chains:
        plan = dataclasses.replace(plan, chains=first, most_chains=chains)
    if latent.kind == "ascent":
        plan = _of_ascent(plan, sampling)
    config = latent.Config()
    if isinstance(latent, SuitsColumns):
        config = latent.config_for([c.column.kind for c in columns], layout)
    configs = apply_settings(
        {"model": config, "links": LinkConfig()}, dict(sampling.settings or {})
    )
    if isinstance(latent, Scheduled):
        steps = latent.n_steps(configs["model"], n_rows or columns[0].x.size)
        plan = dataclasses.replace(plan, thin=steps)
    return Configured(latent, configs["model"], configs["links"], plan)


def chains_for(data: Data, model: LatentModel) -> int:
    """Return how many chains complete a table, at most, when nobody says.

    Chains find different features, and estimates average over them. The error of a table averages
    over its cells besides; a small one has few, and its chains are cheap.
    """
    if isinstance(model, Scheduled):
        return model.n_restarts
    cells = sum(int(encoded.observed.sum()) for encoded in data.columns)
    return MORE_CHAINS if cells <= FEW_CELLS else CHAINS


def _of_ascent(plan: Plan, sampling: Sampling) -> Plan:
    """Return the plan of an ascent, when nothing was said that it has no use for."""
    if (sampling.warmup, sampling.draws, sampling.thin) == (None, None, None):
        return Plan.of_ascent(plan.chains, plan.seed)
    if (plan.warmup, plan.draws) == (0, 1):
        return plan
    raise UsageError(
        "--warmup, --draws and --thin say how long to sample, and this model is not sampled",
        hint="Leave them out; --chains says how many restarts there are.",
    )


class NamedTable(NamedTuple):
    """A table that was read, its name in messages, and what guessing its types has seen.

    reasons : why columns are left out that the guess does not model
    """

    table: pa.Table
    file: str | None
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, str] = {}


def guess_schema(table: TableLike) -> Guess:
    """Guess what each column of a table means.

    Parameters
    ----------
    table : table, data frame, matrix or path
        The table, as `impute` takes it.

    Raises
    ------
    TableError
        The table has no row, two columns of one name, or no column that can be modelled.
    """
    read, file = as_table(table)
    with naming_sheets(file):
        return guess_of(read)


def with_types(table: TableLike, types: Types) -> tuple[TableLike, Schema]:
    """Return a table and what its columns mean; types "auto" are guessed, without role time.

    Raises UsageError: table and types are both to be read from standard input.
    """
    if is_guessed(types):
        read = NamedTable(*as_table(table))
        guess = guess_schema(read)
        notes = [f"column '{name}': {hint}" for name, hint in guess.skips.items()]
        notes += _guessed_missing(guess.codes) + _without_formula(following(guess.hints))
        left_out = [one.name for one in guess.schema.columns if not one.modelled]
        reasons = {name: guess.reasons[name] for name in left_out}
        return read._replace(notes=tuple(notes), reasons=reasons), guess.schema.without_time()
    if STANDARD == str(types) == str(table):
        raise UsageError(
            "the table and the types file are both standard input",
            hint="Give one of them as a file.",
        )
    return table, as_schema(types)


def with_guess(data: Data, table: TableLike) -> Data:
    """Return the data with what guessing its types has seen, where they were guessed."""
    if not isinstance(table, NamedTable):
        return data
    whys = table.reasons
    left = tuple(dataclasses.replace(o, why=whys.get(o.column, o.why)) for o in data.not_completed)
    return dataclasses.replace(data, notes=(*data.notes, *table.notes), not_completed=left)


def _guessed_missing(found: Mapping[str, tuple[Sequence[str], int]]) -> list[str]:
    """Return what to say of values that are completed as if missing: columns of one code together.

    found : column name to the values, and how many cells have them
    """
    notes: list[str] = []
    alike: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, (codes, n) in found.items():
        alike[tuple(codes)].append((name, n))
    for codes, columns in alike.items():
        told = (code if is_number(code) else quoted(code) for code in codes[:MOST_CODES])
        shown = ", ".join(told) + ", ..." * (len(codes) > MOST_CODES)
        total = sum(n for _, n in columns)
        cells = "1 cell is" if total == 1 else f"{total} cells are"
        notes.append(
            f"{_columns([name for name, _ in columns])}: {cells} {shown}, guessed to stand for "
            "missing and completed, too; if not, write a types file with `glfm types`"
        )
    return notes


def _without_formula(names: Sequence[str]) -> list[str]:
    """Return what to say of columns that follow from others in all rows of a sample, if any do."""
    if not names:
        return []
    follows = "follow" if len(names) > 1 else "follows"
    return [
        f"{_columns(names)} {follows} from others where they are known, but not in completed "
        "cells; `glfm types` writes the formula, and what to do"
    ]


def _columns(names: Sequence[str]) -> str:
    """Return columns as `columns 'a', 'b', 'c' and 2 more`."""
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"column{'s' * (len(names) > 1)} {shown}{more}"


def is_guessed(types: object) -> bool:
    """Return whether types are to be guessed from the table."""
    return isinstance(types, str | os.PathLike) and os.fspath(types) == AUTO


def as_schema(types: Types) -> Schema:
    """Return the schema that a types file, its content or its path describes; - is stdin.

    Raises UsageError: it is none of these, and not what `guess_schema` returns.
    """
    if isinstance(types, Schema):
        return types
    if isinstance(types, Guess):
        return types.schema
    if isinstance(types, Mapping):
        return Schema.from_dict(types)
    if not isinstance(types, str | os.PathLike):
        expected = "a types file, its content, or what `guess_schema` returns"
        raise UsageError("types", value=type(types).__name__, expected=expected)
    return read_schema(Path(types))


def with_pairs_read(matrix: MatrixOptions) -> MatrixOptions:
    """Return the options with the table of pairs in place of its path: it may be standard input."""
    if matrix.pairs is None:
        return matrix
    return dataclasses.replace(matrix, pairs=NamedTable(*as_table(matrix.pairs)))


def as_table(table: TableLike) -> tuple[pa.Table, str | None]:
    """Return a table that may be given as other data or by its path; its name in messages."""
    if isinstance(table, NamedTable):
        return table.table, table.file
    if isinstance(table, str | os.PathLike):
        return read_table(table), file_label(table)
    return table_of(table), None
