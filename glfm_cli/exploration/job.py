"""What is explored: a table ready to be fitted, or a fit that was saved before."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.completion import CHAINS, SamplingOptions, SaveOptions, Session, plan_session, prepare
from glfm_cli.encoding import Data, is_triplets
from glfm_cli.errors import UsageError
from glfm_cli.exploration.choice import Hidden
from glfm_cli.exploration.explanation import feature_model
from glfm_cli.exploration.request import Request
from glfm_cli.inference.sampling import Plan, Run
from glfm_cli.latent import MODELS
from glfm_cli.latent.model import LatentModel
from glfm_cli.schema import Schema
from glfm_cli.store import load_fit
from glfm_cli.streams import CELLS, Streams

HELD_OUT = 0.1
# Chains that explore start from few features and add what the table calls for; those that impute
# start from many, which predicts a little better and reads much worse.
FEW: dict[str, object] = {"initial_features": 2, "initial_share": 0.2}


@dataclasses.dataclass(frozen=True)
class Job:
    """A table to be explored.

    session : how it is sampled, and where that is kept; None when it was sampled before
    data : with every observed cell;  hidden : those that the fit does not see
    settings : those of model and links that are not the defaults
    source : the table's or the saved fit's name
    schema : the types as they were given
    """

    session: Session | None
    model: LatentModel
    config: Any
    plan: Plan
    data: Data
    ids: pa.Table
    hidden: Hidden | None
    settings: Mapping[str, object]
    source: str | None
    schema: Schema

    @property
    def bias(self) -> bool:
        """Whether all rows share a feature."""
        return bool(getattr(self.config, "bias", False))


def prepare_exploration(
    table: pa.Table,
    schema: Schema | None,
    request: Request,
    requested: SamplingOptions,
    keeping: SaveOptions,
    *,
    file: str | None = None,
) -> Job:
    """Check everything, encode the table and calibrate the links; nothing is sampled yet.

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong, or do not belong to the run to go on with.
    """
    held_out = request.sample == "held-out"
    if held_out and (keeping.save is not None or keeping.resume is not None):
        raise UsageError(
            "--sample held-out fits the table without some of its cells: no fit of it to keep",
            hint="Leave out --save and --resume, or take --sample consensus.",
        )
    if schema is not None and is_triplets(schema):
        raise UsageError(
            "the types describe triplets, and features are those of a table's rows",
            hint="`explore_matrix` explores triplets.",
        )
    if keeping.resume is None:
        requested = _from_few(requested)
    session = plan_session(table, schema, requested, keeping, file=file)
    feature_model(session.problem.model)
    data = session.data
    request.check_rows(data.n_rows)
    request.check_columns([encoded.column.name for encoded in data.columns])
    hidden = None
    if held_out:
        assert schema is not None  # without one only a resumed run is planned
        seen, hidden = hide(data, Streams(session.plan.seed, 0).get(CELLS))
        problem, _, _ = prepare(table, schema, **requested.filled(), file=file, data=seen)
        session = dataclasses.replace(session, problem=problem, data=seen, keeping=SaveOptions())
    problem = session.problem
    return Job(
        session=session,
        model=problem.model,
        config=problem.config,
        plan=session.plan,
        data=data,
        ids=table.select(list(data.ids)),
        hidden=hidden,
        settings={**_changed(problem.config), **_changed(problem.link_config)},
        source=file,
        schema=session.header.schema,
    )


def _from_few(requested: SamplingOptions) -> SamplingOptions:
    """Return the options with chains that start from few features, unless they say otherwise.

    A table's size does not matter to their number: they are there to find each other's features.
    """
    model = MODELS.get(requested.filled()["model"])
    if model is None:  # the error comes with the other options' ones
        return requested
    feature_model(model)
    known = {field.name for field in dataclasses.fields(model.Config)}  # type: ignore[arg-type]
    few = {name: value for name, value in FEW.items() if name in known}
    chains = CHAINS if requested.chains is None else requested.chains
    settings = {**few, **(requested.settings or {})}
    return dataclasses.replace(requested, chains=chains, settings=settings)


def _changed(config: Any) -> dict[str, object]:
    """Return the fields of a configuration that are not the defaults."""
    default = type(config)()
    fields = [field.name for field in dataclasses.fields(config)]
    return {
        name: getattr(config, name)
        for name in fields
        if getattr(config, name) != getattr(default, name)
    }


def is_saved_fit(path: str | os.PathLike[str]) -> bool:
    """Return True for a folder, or what is called like one of a saved fit."""
    return os.path.isdir(path) or os.fspath(path).rstrip("/").endswith(".glfm")


def open_fit(path: str | os.PathLike[str], request: Request) -> tuple[Run, Job]:
    """Return a saved fit as a run that has been made, and its job.

    Raises
    ------
    StoreError
        It is no saved fit, or a broken one.
    UsageError
        It was saved without its table, its model has no features, or the request does not fit.
    """
    fit = load_fit(path)
    feature_model(fit.model)
    if fit.data is None:
        raise UsageError(
            "the table was left out of this saved fit, and an exploration compares with it",
            file=str(path),
            hint="Save a fit without --no-data, or give the table and its types.",
        )
    request.check_rows(fit.data.n_rows)
    request.check_columns([encoded.column.name for encoded in fit.data.columns])
    job = Job(
        session=None,
        model=fit.model,
        config=fit.config,
        plan=fit.plan,
        data=fit.data,
        ids=pa.table({}),
        hidden=None,
        settings={**_changed(fit.config), **_changed(fit.link_config)},
        source=str(path),
        schema=fit.schema,
    )
    return Run(fit.posterior, None, fit.header.seconds, fit.notes), job


def hide(data: Data, rng: np.random.Generator, share: float = HELD_OUT) -> tuple[Data, Hidden]:
    """Return the data with a share of its observed cells hidden, and those cells."""
    columns, rows, values = [], {}, {}
    for d, encoded in enumerate(data.columns):
        drawn = encoded.observed & (rng.random(encoded.x.size) < share)
        rows[d] = np.flatnonzero(drawn)
        values[d] = encoded.x[drawn]
        x = np.where(drawn, np.nan, encoded.x)
        columns.append(dataclasses.replace(encoded, x=x, observed=encoded.observed & ~drawn))
    return dataclasses.replace(data, columns=tuple(columns)), Hidden(rows, values)
