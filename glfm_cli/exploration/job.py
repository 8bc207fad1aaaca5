"""What is explored: a table or triplets ready to be fitted, or a fit that was saved before."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import glfm_cli.completion as completion
from glfm_cli.completion.efforts import EXPLORED, paced
from glfm_cli.completion.models import Asked, model_of, named
from glfm_cli.completion.saved import encoded_of_fit
from glfm_cli.encoding import Data, layout_of, learnt_cells
from glfm_cli.errors import UsageError
from glfm_cli.exploration.choice import Hidden
from glfm_cli.exploration.explanation import FeatureModel, feature_model
from glfm_cli.exploration.lowrank import component_model
from glfm_cli.exploration.request import Request
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Plan, Run
from glfm_cli.latent.capabilities import Candidates, Components, HasFactors, Map
from glfm_cli.latent.model import LatentModel, Problem
from glfm_cli.links import Link
from glfm_cli.options import CHAINS, MatrixOptions, Sampling, Saving
from glfm_cli.schema import Schema
from glfm_cli.store import Fit, load_fit
from glfm_cli.streams import CELLS, Streams

HELD_OUT = 0.1
# Chains that explore start from few features and add what the table calls for, and join components
# alike; those that impute start from many and do not, which predicts better and reads worse. So do
# more features that leave less noise. What goes with a column that is complete is found, not said.
FEW: dict[str, object] = {"initial_features": 2, "initial_share": 0.2, "merge_every": 15}
NOISE: dict[str, object] = {"noise_rate": 0.5, "known_features": 0}  # beside features


@dataclasses.dataclass(frozen=True)
class ExplorationJob:
    """A table, or a matrix that is given as triplets, to be explored.

    session : how it is sampled, and where that is kept; None when it was sampled before
    run : the draws of a fit that was saved; None when it is to be sampled
    data : with every observed cell;  hidden : those that the fit does not see
    settings : those of model and links that are not the defaults
    source : the table's or the saved fit's name
    schema : the types as they were given
    base : of rows that are put on the map of a saved fit, its draws; None otherwise
    base_data : that fit's table; None where it was left out
    """

    session: completion.Session | None
    run: Run | None
    model: LatentModel
    config: Any
    links: tuple[Link, ...]
    plan: Plan
    data: completion.Encoded
    ids: pa.Table
    hidden: Hidden | None
    settings: Mapping[str, object]
    source: str | None
    schema: Schema
    base: Posterior | None = None
    base_data: Data | None = None

    @property
    def bias(self) -> bool:
        """Whether all rows share a feature, or a component model has intercepts."""
        return bool(getattr(self.config, "bias", False))

    @property
    def problem(self) -> Problem:
        """Return what is sampled, or was."""
        if self.session is not None:
            return self.session.problem
        assert isinstance(self.data, Data)
        xs = learnt_cells(self.data.columns)
        of = self.model, self.config, self.links, xs
        return Problem(*of, groups=self.data.groups, beside=self.data.beside)

    @property
    def limits(self) -> tuple[float | None, int]:
        """Return the seconds that there are in all, None for no limit, and the threads."""
        if self.session is None:
            return None, available_threads()
        sampling = self.session.sampling
        return sampling.time_limit, sampling.threads or available_threads()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know beforehand, one line each."""
        of_data = self.data.notes if self.session else ()
        return (*of_data, *(self.session.notes if self.session is not None else ()))

    def options(self, request: Request, names: Sequence[str]) -> dict[str, Any]:
        """Return what makes the run reproducible, ready for JSON; `names` those of the request."""
        requested = {name: getattr(request, name) for name in names}
        if requested.get("columns") is not None:
            requested["columns"] = list(requested["columns"])
        settings = {name: str(value) for name, value in self.settings.items()}
        named = {"source": self.source, "model": self.model.name, **self.plan.options()}
        return {**named, **requested, "settings": settings}

    def of_run(
        self, run: Run, request: Request, names: Sequence[str], notes: Sequence[str]
    ) -> dict[str, Any]:
        """Return what `Explored` says of a run, the base of a map diagnosed where there is one."""
        judged = self.base or run.posterior
        return {
            "data": self.data,
            "posterior": run.posterior,
            "diagnostics": judged.diagnose(judged.traces()),
            "stopped": run.stopped,
            "seconds": run.seconds,
            "options": self.options(request, names),
            "schema": self.schema,
            "notes": (*notes, *run.warnings),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what would be done, as `--dry-run --json` prints it."""
        if self.session is None:
            assert self.run is not None
            draws = self.run.posterior.n_draws
            sizes = {"rows": self.data.n_rows, "modelled_columns": len(self.links)}
            return sizes | {"draws": draws}
        found = completion.with_process(completion.estimate_cost(self.session, completed=False))
        if isinstance(self.data, Data):
            del found["cells_to_complete"]
            found["gaps"] = {e.column.name: int((~e.observed).sum()) for e in self.data.columns}
            found["cells_missing"] = sum(found["gaps"].values())
        return found


def plan_exploration(
    table: pa.Table,
    schema: Schema | None,
    request: Request,
    groups: tuple[Sampling, Saving, MatrixOptions],
    *,
    file: str | None = None,
) -> ExplorationJob:
    """Check everything, encode what is given and calibrate the links; nothing is sampled yet.

    Raises GlfmError: the table, the types or an option are wrong, or do not belong to the run to go
        on with.
    """
    sampling, saving, matrix = groups
    held_out = request.sample == "held-out"
    if held_out and (saving.save is not None or saving.resume is not None):
        raise UsageError(
            "--sample held-out fits the table without some of its cells: no fit of it to save",
            hint="Leave out --save and --resume, or use --sample consensus.",
        )
    if saving.resume is None:
        layout = "dense" if schema is None else layout_of(schema)
        columns = () if schema is None else schema.resolve(table.column_names)
        sampling = _from_few(sampling, layout, sum(column.modelled for column in columns))
    session = completion.plan_session(table, schema, sampling, saving, matrix, file=file)
    if session.data is not session.whole:
        raise UsageError(
            f"{saving.resume} was made from {session.data.n_rows} rows of its table (--learn-rows)",
            hint=f"Explore these: glfm explore {saving.resume}",
        )
    model, data = session.problem.model, session.data
    _check(request, model, session.problem.config, data)
    hidden = None
    if held_out:
        assert schema is not None  # without one only a resumed run is planned
        assert isinstance(data, Data)
        seen, hidden = hide(data, Streams(session.plan.seed, 0).get(CELLS))
        problem, _, _ = completion.prepare(table, schema, sampling, file=file, data=seen)
        session = dataclasses.replace(session, problem=problem, data=seen, saving=Saving())
    problem = session.problem
    return ExplorationJob(
        session=session,
        run=None,
        model=model,
        config=problem.config,
        links=problem.links,
        plan=session.plan,
        data=data,
        ids=table.select(list(data.ids)),
        hidden=hidden,
        settings={**_changed(problem.config), **_changed(problem.link_config)},
        source=file,
        schema=session.header.schema,
    )


def _check(request: Request, model: LatentModel, config: Any, data: completion.Encoded) -> None:
    """Raise UsageError when a model has nothing to explore, or not what is requested."""
    if isinstance(model, Components):
        component_model(model)
        request.check_without_features("the low-rank model", ("columns", "color"))
        return
    if isinstance(model, HasFactors):
        request.check_without_features(f"the model '{model.name}'", ("columns", "color"))
        return
    assert isinstance(data, Data)
    names = [encoded.column.name for encoded in data.columns]
    request.check_columns(names)
    if isinstance(model, Map):
        request.check_without_features(f"the model '{model.name}'")
        if getattr(config, "dimensions", None) == 1:
            raise UsageError("a map needs two dimensions", value="dimensions=1")
        return
    feature_model(model)
    request.check_rows(data.n_rows)
    request.check_no_color()


def _from_few(sampling: Sampling, layout: str, n_columns: int) -> Sampling:
    """Return the options with chains that start from few features, unless they say otherwise.

    A table's size does not matter to their number: they are there to find each other's features.
    """
    sampling = named(sampling, Asked(layout, alone=True))
    model = model_of(sampling, layout)
    sampling = paced(sampling, model.name, EXPLORED)
    known = {field.name for field in dataclasses.fields(model.Config)}  # type: ignore[arg-type]
    few = {name: value for name, value in FEW.items() if name in known}
    if isinstance(model, FeatureModel):
        few |= NOISE
    if isinstance(model, Map):
        few |= model.map_settings(n_columns)
    chains = CHAINS if sampling.chains is None and model.kind == "gibbs" else sampling.chains
    settings = {**few, **(sampling.settings or {})}
    return dataclasses.replace(sampling, chains=chains, settings=settings or None)


def place_rows(
    table: pa.Table,
    fit: completion.FitLike,
    request: Request,
    threads: int | None,
    *,
    file: str | None = None,
) -> ExplorationJob:
    """Return the rows of a table on the map of a saved fit, as a run that has been made.

    Raises UsageError: the fit's model has no map.
    """
    kept = load_fit(fit) if isinstance(fit, str | os.PathLike) else fit
    if not isinstance(kept.model, Map):
        raise UsageError(f"--fit puts rows on a map, and the model '{kept.model.name}' has none")
    fitted = completion.Fitted.of_fit(kept)
    data = fitted.encode(table, file=file)
    assert isinstance(data, Data)
    _check(request, kept.model, kept.config, data)
    run = fitted.run(data, seed=kept.seed, threads=threads or available_threads())
    job = _of_fit(kept, run, data)
    return dataclasses.replace(
        job,
        ids=table.select(list(data.ids)),
        source=file,
        base=kept.posterior,
        base_data=kept.data,
    )


def _changed(config: Any) -> dict[str, object]:
    """Return the fields of a configuration that are not the defaults."""
    default = type(config)()
    fields = [field.name for field in dataclasses.fields(config)]
    return {
        name: getattr(config, name)
        for name in fields
        if getattr(config, name) != getattr(default, name)
    }


def open_fit(path: str | os.PathLike[str], request: Request) -> ExplorationJob:
    """Return a saved fit as a run that has been made.

    Raises StoreError: it is no saved fit, or a broken one; UsageError: it was saved without its
        table, its model has nothing to explore, or the request does not fit.
    """
    fit = load_fit(path)
    data = encoded_of_fit(fit, "an exploration compares with it")
    job = _of_fit(fit, Run(fit.posterior, None, fit.header.seconds, fit.notes), data)
    job = dataclasses.replace(_of_one(job), source=str(path))
    _check(request, job.model, job.config, data)
    return job


def _of_one(job: ExplorationJob) -> ExplorationJob:
    """Return the draws of one model: of several candidates' the first with features."""
    model, run = job.model, job.run
    if run is None or not isinstance(model, Candidates):
        return job
    for which in sorted(set(run.posterior.groups)):
        problem = model.problem_of(job.problem, which)
        own: LatentModel = problem.model
        if not isinstance(own, FeatureModel):
            continue
        chains = tuple(
            tuple(dataclasses.replace(draw, latent=model.own(draw.latent)) for draw in chain)
            for chain in run.posterior.of_candidate(which).chains
        )
        posterior = Posterior(own, job.links, run.posterior.spans, chains)
        return dataclasses.replace(
            job,
            model=own,
            config=problem.config,
            run=dataclasses.replace(run, posterior=posterior),
            plan=dataclasses.replace(job.plan, chains=len(chains)),
        )
    return job


def _of_fit(fit: Fit, run: Run, data: completion.Encoded) -> ExplorationJob:
    ids = data.id_cells if isinstance(data, Data) else None
    return ExplorationJob(
        session=None,
        run=run,
        model=fit.model,
        config=fit.config,
        links=fit.links,
        plan=fit.plan,
        data=data,
        ids=pa.table({}) if ids is None else ids,
        hidden=None,
        settings={**_changed(fit.config), **_changed(fit.link_config)},
        source=None,
        schema=fit.schema,
    )


def hide(data: Data, rng: np.random.Generator, share: float = HELD_OUT) -> tuple[Data, Hidden]:
    """Return the data with a share of its observed cells hidden, and those cells."""
    columns, rows, values = [], {}, {}
    for d, encoded in enumerate(data.columns):
        drawn = encoded.observed & (rng.random(encoded.x.size) < share)
        rows[d] = np.flatnonzero(drawn)
        values[d] = encoded.scored[drawn]
        x = np.where(drawn, np.nan, encoded.x)
        columns.append(dataclasses.replace(encoded, x=x, observed=encoded.observed & ~drawn))
    return dataclasses.replace(data, columns=tuple(columns)), Hidden(rows, values)
