"""A run that is kept: begun in a new folder, or gone on with from an old one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.prepare import DRAWS, MODEL, SEED, THIN, WARMUP, prepare
from glfm_cli.encoding import Data
from glfm_cli.errors import StoreError, UsageError
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.leave_one_out import recalibrate
from glfm_cli.inference.sampling import Observer, Plan, Run, sample
from glfm_cli.schema import Schema
from glfm_cli.settings import apply_settings
from glfm_cli.store import (
    EVERY,
    Header,
    Modelled,
    Store,
    check_folder,
    check_free,
    discard,
    hash_of_data,
    hash_of_types,
    read_header,
    versions,
)

PARTIAL = ".glfm.partial"  # put after the output's name


@dataclass(frozen=True)
class SamplingOptions:
    """The options that fix a run's draws; None where the user said nothing.

    A new run fills in the defaults, a resumed one what it was begun with.
    """

    model: str | None = None
    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    thin: int | None = None
    seed: int | None = None
    settings: Mapping[str, object] | None = None

    def filled(self) -> dict[str, Any]:
        """Return every option, the defaults where nothing was said; `prepare` counts chains."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return {**DEFAULTS, **said}


DEFAULTS: dict[str, Any] = {
    "model": MODEL,
    "chains": None,
    "warmup": WARMUP,
    "draws": DRAWS,
    "thin": THIN,
    "seed": SEED,
    "settings": None,
}


@dataclass(frozen=True)
class SaveOptions:
    """Where a run is kept.

    save, resume : a new folder, or the folder of a run to go on with
    partial : the output whose partial work is kept beside it until the run is complete
    with_data : whether the encoded table is kept too
    every : seconds between two saved states
    """

    save: Path | None = None
    resume: Path | None = None
    partial: Path | None = None
    with_data: bool = True
    every: float = EVERY

    def __post_init__(self) -> None:
        if self.save is not None and self.resume is not None:
            raise UsageError(
                "--save and --resume cannot be used together",
                hint="--resume goes on in the folder it is given; copy that first to keep it.",
            )
        if not self.with_data and self.save is None:
            raise UsageError(
                "--no-data says what --save leaves out", hint="Give --save DIR.glfm with it."
            )
        if not 0 <= self.every < float("inf"):
            raise UsageError("--checkpoint", value=self.every, expected="seconds from 0")
        if self.save is not None:
            check_free(self.save)


@dataclass(frozen=True)
class Session:
    """A run that is ready to be sampled: what, how long, and where it is kept.

    data : the encoded table; without columns for a matrix, which has all in `more`
    header : what was asked for, and of what; the folder says the same
    more : further files of the folder, as named arrays, which a matrix has
    store : the open folder, once `begun`; None when nothing is kept
    partial : the folder is removed once the result is written
    notes : what the user should know, one line each
    done : sweeps that were made before, over all chains
    """

    problem: Problem
    data: Data
    plan: Plan
    keeping: SaveOptions
    header: Header
    more: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    store: Store | None = None
    partial: bool = False
    notes: tuple[str, ...] = ()
    done: int = 0

    @property
    def folder(self) -> Path | None:
        """Where the run is kept, or will be; None when it is not."""
        keeping = self.keeping
        beside = None if keeping.partial is None else partial_folder(keeping.partial)
        return keeping.resume or keeping.save or beside

    def begun(self) -> Session:
        """Return the session with its folder made or opened again; nothing was written before.

        Raises
        ------
        OutputError, StoreError
            The folder cannot be written, is broken, or another run writes to it.
        """
        links, every = self.problem.links, self.keeping.every
        data = self._kept_data() if self.keeping.with_data else None
        if self.keeping.resume is not None:
            store = Store.reopen(self.keeping.resume, self.header, links, every=every)
            try:
                done = _sweeps_made(store, self.problem, self.plan)
                store.plan_for(self.plan)
            except BaseException:
                store.close()
                raise
            return replace(self, store=store, done=done)
        if self.keeping.save is not None:
            folder = self.keeping.save
            store = Store.create(folder, self.header, links, data, more=self.more, every=every)
            return replace(self, store=store)
        return self if self.keeping.partial is None else self._beside_output(self.header)

    def _kept_data(self) -> Data | None:
        return self.data if self.problem.entries is None else None

    def _beside_output(self, header: Header) -> Session:
        """Return the session with a folder beside the output: a killed twin's if there is one."""
        assert self.keeping.partial is not None
        folder = partial_folder(self.keeping.partial)
        note: tuple[str, ...] = ()
        if os.path.lexists(folder):
            twin = self._twin(folder, header)
            if twin is not None:
                return twin
            discard(folder)  # raises when another run writes to it
            note = (f"{folder}, left by an earlier run that was another, was replaced",)
        links, every = self.problem.links, self.keeping.every
        data = self._kept_data()
        store = Store.create(folder, header, links, data, more=self.more, every=every)
        return replace(self, store=store, partial=True, notes=note)

    def _twin(self, folder: Path, header: Header) -> Session | None:
        """Return the session that goes on with a folder if its run is the same one, and sound."""
        found, store = _same_run(folder, header), None
        if found is None:
            return None
        try:
            links, every = self.problem.links, self.keeping.every
            store = Store.reopen(folder, found, links, every=every)
            done = _sweeps_made(store, self.problem, self.plan)
        except StoreError:
            if store is not None:
                store.close()
            return None
        note = f"going on from {folder}, left by an earlier run with the same options"
        return replace(self, store=store, partial=True, notes=(note,), done=done)

    def sample(
        self,
        *,
        threads: int = 1,
        time_limit: float | None = None,
        observer: Observer | None = None,
        forecasts: bool = True,
    ) -> Run:
        """Run the chains, or what is left of them, and let go of the folder.

        Without `forecasts` they are recalibrated only where the fit is kept, for those to come;
        those of a matrix never are.
        """
        recalibrated = forecasts or (self.store is not None and not self.partial)
        recalibrated = recalibrated and self.problem.entries is None
        with nullcontext() if self.store is None else self.store:
            run = sample(
                self.problem,
                self.plan,
                threads=threads,
                time_limit=time_limit,
                observer=observer,
                keeper=self.store,
            )
            if recalibrated:
                posterior = recalibrate(run.posterior, self.problem, threads=threads)
                run = replace(run, posterior=posterior)
            if self.store is not None:
                self.store.finish(run.seconds, run.posterior.recalibration)
        return run


def plan_session(
    table: pa.Table,
    schema: Schema | None,
    requested: SamplingOptions,
    keeping: SaveOptions,
    *,
    file: str | None = None,
) -> Session:
    """Check everything, encode the table and calibrate the links; nothing is written yet.

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong, or do not belong to the run to go on with.
    """
    if keeping.resume is not None:
        return _going_on(table, schema, requested, keeping, keeping.resume, file)
    if schema is None:
        data = "DATA" if file is None or not Path(file).is_file() else shlex.quote(file)
        raise UsageError(
            "--types FILE is missing", hint=f"`glfm types {data} -o types.yaml` writes a first one."
        )
    problem, encoded, plan = prepare(table, schema, **requested.filled(), file=file)
    header = _header(problem, encoded, plan, schema, table, keeping.with_data, file)
    return Session(problem, encoded, plan, keeping, header)


def partial_folder(output: Path) -> Path:
    """Return where the partial work towards an output is kept."""
    return output.with_name(output.name + PARTIAL)


def _same_run(folder: Path, header: Header) -> Header | None:
    """Return the header of a folder when its run is the one that `header` describes."""
    try:
        check_folder(folder)
        found = read_header(folder)
    except StoreError:
        return None
    by_the_way = ("seconds", "file", "links_hash", "recalibration")
    kept = replace(header, **{name: getattr(found, name) for name in by_the_way})
    return found if found == kept else None


def _going_on(
    table: pa.Table,
    schema: Schema | None,
    requested: SamplingOptions,
    keeping: SaveOptions,
    folder: Path,
    file: str | None,
) -> Session:
    header, plan = header_to_go_on_with(schema, requested, folder)
    if header.matrix is not None:
        raise StoreError("is a fit of triplets, which completes no table", file=str(folder))
    problem, data, _ = prepare(
        table,
        header.schema,
        model=header.model,
        settings={**asdict(header.model_config), **asdict(header.link_config)},
        file=file,
        **asdict(plan),
    )
    if hash_of_data(data) != header.data_hash:
        raise StoreError(
            "was made with another table than the one given now",
            file=str(folder),
            hint="Give the table of the first run.",
        )
    return Session(
        problem,
        data,
        plan,
        keeping,
        replace(header, plan=plan, file=file),
        partial=folder.name.endswith(PARTIAL),
        notes=version_notes(header, folder),
    )


def header_to_go_on_with(
    schema: Schema | None, requested: SamplingOptions, folder: Path
) -> tuple[Header, Plan]:
    """Return what a folder says of its run, and the plan to go on with; the options must fit.

    Raises
    ------
    StoreError, UsageError
        The folder is broken, or types or an option are not those of its run.
    """
    check_folder(folder)
    header = read_header(folder)
    if schema is not None and hash_of_types(schema) != header.types_hash:
        raise StoreError(
            "was made with other types than those given now",
            file=str(folder),
            hint="Leave --types out to use its own, or start a new run.",
        )
    return header, _extended(header, requested, folder)


def _extended(header: Header, requested: SamplingOptions, folder: Path) -> Plan:
    """Return the plan of a saved run with the draws that are wanted now."""
    fixed = {"model": header.model, **asdict(header.plan)}
    free = ("draws", "settings") if header.latent.kind == "gibbs" else ("settings",)
    for name, value in vars(requested).items():
        if name in free or value is None or value == fixed[name]:
            continue
        raise UsageError(
            f"--{name}",
            value=value,
            expected=f"{fixed[name]}, with which {folder} was begun",
            hint=f"Leave --{name} out; only --draws may change when a run goes on.",
        )
    if requested.settings:
        _check_settings(header, requested.settings, folder)
    return header.plan if requested.draws is None else replace(header.plan, draws=requested.draws)


def _check_settings(header: Header, settings: Mapping[str, object], folder: Path) -> None:
    configs = {"model": header.model_config, "links": header.link_config}
    if apply_settings(configs, settings) != configs:
        raise UsageError(
            "--set changes a setting with which the run was begun",
            file=str(folder),
            hint="Leave --set out; only --draws may change when a run goes on.",
        )


def _sweeps_made(store: Store, problem: Problem, plan: Plan) -> int:
    """Return the sweeps of all chains so far; there must not be more draws than the plan has."""
    extents = store.check(problem)
    most = max(extent.draws for extent in extents)
    if most > plan.draws:
        raise UsageError(
            "--draws",
            value=plan.draws,
            expected=f"at least {most}, which {store.folder} has already",
        )
    return sum(min(extent.sweeps, plan.sweeps) for extent in extents)


def version_notes(header: Header, folder: Path) -> tuple[str, ...]:
    now = versions()
    changed = [
        f"{name} {then} then, {now.get(name, 'none')} now"
        for name, then in header.versions.items()
        if now.get(name) != then
    ]
    if not changed:
        return ()
    listed = "; ".join(changed)
    return (f"{folder} was begun with other versions, so the draws may differ ({listed})",)


def _header(
    problem: Problem,
    data: Data,
    plan: Plan,
    schema: Schema,
    table: pa.Table,
    with_data: bool,
    file: str | None,
) -> Header:
    modelled = tuple(
        Modelled(encoded.column.name, str(encoded.column.type), encoded.index, encoded.levels)
        for encoded in data.columns
    )
    return Header(
        model=problem.model.name,
        model_config=problem.config,
        link_config=problem.link_config,
        plan=plan,
        schema=schema,
        n_rows=data.n_rows,
        table=tuple(table.column_names),
        modelled=modelled,
        ids=data.ids,
        notes=data.notes,
        data_hash=hash_of_data(data),
        types_hash=hash_of_types(schema),
        has_data=with_data,
        file=file,
        versions=versions(),
    )
