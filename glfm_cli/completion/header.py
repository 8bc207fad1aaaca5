"""What a kept run says of itself, and whether a run that goes on is the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import glfm_cli.store as store
from glfm_cli.arrays import Array
from glfm_cli.completion.matrix.matrix import MatrixData
from glfm_cli.completion.matrix.saved import cells_of, hash_of_cells
from glfm_cli.encoding import Data
from glfm_cli.errors import StoreError, UsageError
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.model import Problem
from glfm_cli.options import Sampling
from glfm_cli.schema import Schema
from glfm_cli.settings import apply_settings
from glfm_cli.store.folder import DATA, MATRIX

Files = Mapping[str, Mapping[str, Array]]  # of a folder, as named arrays
Encoded: TypeAlias = Data | MatrixData  # a table, or a matrix that is given as triplets


def hash_of(data: Encoded) -> str:
    """Return the SHA-256 of everything that a model sees."""
    return store.hash_of_data(data) if isinstance(data, Data) else hash_of_cells(data)


def describe(
    data: Encoded,
    problem: Problem,
    plan: Plan,
    schema: Schema,
    names: list[str],
    with_data: bool,
    file: str | None,
) -> tuple[store.Header, Files]:
    """Return what run.json says of a run, and the files that a matrix has besides.

    names : of all columns of the table that was given;  file : its name, for people
    """
    matrix, files = (None, {}) if isinstance(data, Data) else _of_matrix(data, with_data)
    modelled = [
        store.Modelled(
            *(c.column.name, str(c.column.type), c.index, c.levels, c.column.follows),
            group_level=bool(c.column.group_level),
            style=c.style,
        )
        for c in data.columns
    ]
    header = store.Header(
        model=problem.model.name,
        model_config=problem.config,
        link_config=problem.link_config,
        plan=plan,
        schema=schema,
        n_rows=data.n_rows,
        table=tuple(names),
        modelled=tuple(modelled),
        ids=data.ids,
        notes=data.notes,
        data_hash=hash_of(data),
        types_hash=store.hash_of_types(schema),
        has_data=with_data,
        file=file,
        versions=store.versions(),
        matrix=matrix,
        groups=None if problem.groups is None else problem.groups.labels,
    )
    return header, files


def _of_matrix(data: MatrixData, with_cells: bool) -> tuple[store.MatrixHeader, Files]:
    """Return what run.json says of a matrix, and the files that hold it."""
    ids, cells = (data.rows, data.others), cells_of(data)
    arrays = [None if code is None else code.arrays() for code in data.codes]
    sides = [None if code is None else code.to_dict() for code in data.codes]
    content = store.matrix_arrays(ids, (arrays[0], arrays[1]))
    header = store.MatrixHeader(
        n_columns=len(data.others),
        n_cells=cells.row.size,
        ids=(data.rows.name, data.others.name),
        kinds=(str(data.rows.values.type), str(data.others.values.type)),
        covariates=data.names,
        missingness=data.missingness,
        sides=(sides[0], sides[1]),
        content_hash=store.hash_of_content(content),
    )
    return header, {MATRIX: content} | ({DATA: store.cell_arrays(cells)} if with_cells else {})


def same_run(folder: Path, header: store.Header, more_chains: bool = False) -> store.Header | None:
    """Return the header of a folder when its run is the one that `header` describes.

    With `more_chains` it may have come to more of them meanwhile.
    """
    try:
        store.check_folder(folder)
        found = store.read_header(folder)
    except StoreError:
        return None
    grows = more_chains or header.plan.most_chains is not None
    if grows and found.plan.chains > header.plan.chains:
        header = replace(header, plan=replace(header.plan, chains=found.plan.chains))
    by_the_way = ("seconds", "file", "links_hash", "recalibration")
    same = replace(header, **{name: getattr(found, name) for name in by_the_way})
    return found if found == same else None


def header_to_continue(
    schema: Schema | None, sampling: Sampling, folder: Path
) -> tuple[store.Header, Plan]:
    """Return what a folder says of its run, and the plan to go on with; the options must fit.

    Raises StoreError, UsageError: the folder is broken, or types or an option are not those of its
        run.
    """
    store.check_folder(folder)
    header = store.read_header(folder)
    if schema is not None and store.hash_of_types(schema) != header.types_hash:
        raise StoreError(
            "was made with other types than those given now",
            file=str(folder),
            hint="Leave --types out to use its own, or start a new run.",
        )
    return header, _extended(header, sampling, folder)


def _extended(header: store.Header, sampling: Sampling, folder: Path) -> Plan:
    """Return the plan of a saved run with the chains and draws that are requested now."""
    fixed = {"model": header.model, **header.plan.options()}
    more = {} if sampling.chains is None else {"chains": sampling.chains}
    more |= {} if sampling.draws is None else {"draws": sampling.draws}
    free = {"draws"} if header.latent.kind == "gibbs" else set()
    if free and more.get("chains", 0) > header.plan.chains:
        free.add("chains")
    for name in fixed:
        value = getattr(sampling, name)
        if name in free or value is None or value == fixed[name]:
            continue
        raise UsageError(
            f"--{name}",
            value=value,
            expected=f"{fixed[name]}, with which {folder} was started",
            hint=f"Leave --{name} out; only --draws and --chains may grow when a run is resumed.",
        )
    if sampling.settings:
        _check_settings(header, sampling.settings, folder)
    if "chains" in more:
        return replace(header.plan, most_chains=None, **more)
    return replace(header.plan, **more)


def _check_settings(header: store.Header, settings: Mapping[str, object], folder: Path) -> None:
    configs = {"model": header.model_config, "links": header.link_config}
    if apply_settings(configs, settings) != configs:
        raise UsageError(
            "--set changes a setting with which the run was started",
            file=str(folder),
            hint="Leave --set out; only --draws and --chains may grow when a run is resumed.",
        )


def version_notes(header: store.Header, folder: Path) -> tuple[str, ...]:
    """Return what differs between the versions that began a run and those of now."""
    now = store.versions()
    changed = [
        f"{name} {then} then, {now.get(name, 'none')} now"
        for name, then in header.versions.items()
        if now.get(name) != then
    ]
    if not changed:
        return ()
    listed = "; ".join(changed)
    return (f"{folder} was started with other versions, so the draws may differ ({listed})",)
