"""Explore a table: which groups of rows it has, what marks each, and how sure that is."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.chain import Problem
from glfm_cli.completion import CHAINS, DRAWS, THIN, WARMUP, check_request, prepare
from glfm_cli.diagnostics import diagnose
from glfm_cli.encoding import Data
from glfm_cli.errors import UsageError
from glfm_cli.executors import available_threads
from glfm_cli.exploration.choice import Hidden, choose
from glfm_cli.exploration.dependence import dependence as depend
from glfm_cli.exploration.explanation import Explanation, explain, feature_model
from glfm_cli.exploration.features import (
    Feature,
    alone_in,
    effects,
    explained,
    rank,
    weights_elsewhere,
)
from glfm_cli.exploration.missingness import missingness
from glfm_cli.exploration.patterns import Pattern, find_patterns, main_features
from glfm_cli.exploration.request import Request, make_request
from glfm_cli.exploration.result import Exploration, Remainder
from glfm_cli.exploration.rows import similar as alike
from glfm_cli.exploration.rows import surprising as least_expected
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.stability import Matches, match_features, membership_probability
from glfm_cli.io import read_table
from glfm_cli.latent import MODELS
from glfm_cli.latent.latent import Array
from glfm_cli.posterior import Posterior
from glfm_cli.sampling import Observer, Plan, Run, sample
from glfm_cli.schema import Schema
from glfm_cli.store import load_fit
from glfm_cli.streams import CELLS, Streams

HELD_OUT = 0.1
# Chains that explore start from few features and add what the table calls for; those that impute
# start from many, which predicts a little better and reads much worse.
FEW = {"initial_features": 2, "initial_share": 0.2}


def explore(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    model: str = "glfm",
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    thin: int = THIN,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    sample: str = "consensus",
    top: int = 5,
    columns: Sequence[str] | None = None,
    surprising: int = 0,
    similar: int | None = None,
    dependence: bool = False,
    observer: Observer | None = None,
) -> Exploration:
    """Find out what structure is in a table.

    Parameters
    ----------
    table : pyarrow.Table or path
        The table, or a folder `NAME.glfm` with a saved fit of it, which is not sampled again: then
        `types` and the options of sampling are those of that fit.
    types, model, chains, warmup, draws, thin, seed, threads, time_limit, settings, observer
        As in `impute`, except that chains start from few features (`initial_features` 2 and
        `initial_share` 0.2, unless `settings` say otherwise).
    sample : {"consensus", "best", "held-out"}
        Which draw is shown: the one whose rows go together most as on average, the one with the
        highest log likelihood, or the one that best predicts a tenth of the observed cells,
        hidden before the fit.
    top : int
        How many patterns are shown.
    columns : sequence of str, optional
        The columns that words and figures speak of; all by default.
    surprising : int
        How many of the least expected cells and rows to find.
    similar : int, optional
        A data row, counted from 1, whose likes to find.
    dependence : bool
        Whether to find how much columns tell of each other.

    Returns
    -------
    Exploration

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong; the error says where and what to do.
    """
    check_request("auto", 0.5, threads, time_limit)
    request = make_request(
        sample=sample,
        top=top,
        columns=columns,
        surprising=surprising,
        similar=similar,
        dependence=dependence,
    )
    file = None
    if not isinstance(table, pa.Table):
        if is_saved_fit(table):
            run, job = open_fit(table, request)
            return describe_run(run, job, request)
        file, table = str(table), read_table(table)
    if types is None:
        raise UsageError("a table needs its types", hint="Give a types file, or guess one first.")
    job = prepare_exploration(
        table,
        types,
        request,
        model=model,
        chains=chains,
        warmup=warmup,
        draws=draws,
        thin=thin,
        seed=seed,
        settings=settings,
        file=file,
    )
    run = _sample(job, threads, time_limit, observer)
    return describe_run(run, job, request)


@dataclasses.dataclass(frozen=True)
class Job:
    """A table ready to be fitted for exploration.

    data : with every observed cell;  hidden : those that the fit does not see
    """

    problem: Problem
    plan: Plan
    data: Data
    ids: pa.Table
    hidden: Hidden | None
    settings: dict[str, object]
    source: str | None  # the table's or the saved fit's name


def prepare_exploration(
    table: pa.Table,
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    request: Request,
    *,
    model: str,
    chains: int,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
    settings: Mapping[str, object] | None,
    file: str | None = None,
) -> Job:
    """Check everything, encode the table and calibrate the links; nothing is sampled yet."""
    chosen = dict(settings or {})
    if model in MODELS:
        feature_model(MODELS[model])
        known = {field.name for field in dataclasses.fields(MODELS[model].Config)}  # type: ignore[arg-type]
        chosen = {name: v for name, v in FEW.items() if name in known} | chosen
    options: dict[str, Any] = {"model": model, "chains": chains, "warmup": warmup, "draws": draws}
    options |= {"thin": thin, "seed": seed, "settings": chosen, "file": file}
    problem, data, plan = prepare(table, types, **options)
    request.check_rows(data.n_rows)
    request.check_columns([encoded.column.name for encoded in data.columns])
    hidden = None
    if request.sample == "held-out":
        seen, hidden = hide(data, Streams(seed, 0).get(CELLS))
        problem, _, plan = prepare(table, types, **options, data=seen)
    ids = table.select(list(data.ids))
    return Job(problem, plan, data, ids, hidden, chosen, file)


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
    problem = Problem(
        fit.model,
        fit.config,
        fit.links,
        tuple(encoded.x for encoded in fit.data.columns),
        fit.link_config,
    )
    run = Run(fit.posterior, None, fit.header.seconds, fit.notes)
    return run, Job(problem, fit.plan, fit.data, pa.table({}), None, {}, str(path))


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


def _sample(
    job: Job, threads: int | None, time_limit: float | None, observer: Observer | None
) -> Run:
    return sample(
        job.problem,
        job.plan,
        threads=threads or available_threads(),
        time_limit=time_limit,
        observer=observer,
    )


def describe_run(run: Run, job: Job, request: Request) -> Exploration:
    """Return what the draws of a run say of the structure of the table."""
    posterior, data = run.posterior, job.data
    bias = bool(getattr(job.problem.config, "bias", False))
    scales = tuple(
        scale_of(d, encoded, posterior.links[d], posterior.spans[d])
        for d, encoded in enumerate(data.columns)
    )
    chain, draw = choose(posterior, request.sample, job.hidden, data.n_rows, bias=bias)
    shown = explain(posterior, chain, draw, bias=bias)
    matches = match_features(posterior, shown, bias=bias)
    found, parts, remainder = _features(posterior, shown, matches, scales, bias=bias)
    main = main_features(found)
    patterns = find_patterns(posterior, shown, matches, main, scales, top=request.top, bias=bias)
    traces = posterior.traces()
    gating = [name for name in traces if name == "log_likelihood" or name.startswith("noise_")]
    return Exploration(
        data=data,
        ids=job.ids,
        posterior=posterior,
        diagnostics=diagnose(traces, gating),
        stopped=run.stopped,
        seconds=run.seconds,
        sample=request.sample,
        shown=shown,
        features=found,
        remainder=remainder,
        explained=parts,
        main=main,
        patterns=patterns,
        top=request.top,
        scales=scales,
        columns=request.chosen(scales),
        baseline=tuple(scale.baseline() for scale in scales),
        missing=missingness(scales),
        surprising=least_expected(posterior, scales, request.surprising, bias=bias)
        if request.surprising
        else None,
        similar=None
        if request.similar is None
        else alike(posterior, request.similar - 1, bias=bias),
        dependence=depend(posterior, scales) if request.dependence else None,
        options=_options(job, request),
        notes=(*data.notes, *run.warnings, *_cautions(posterior, found, patterns[: request.top])),
    )


def _features(
    posterior: Posterior,
    shown: Explanation,
    matches: Matches,
    scales: Sequence[Scale],
    *,
    bias: bool,
) -> tuple[tuple[Feature, ...], Array, Remainder]:
    """Return the features shown, the part of what is explained that each explains, and the rest."""
    by_column = explained(shown, scales)
    lost = by_column.sum(axis=1)
    stability, likeness = matches.stability(), matches.likeness()
    order = rank(lost, likeness)
    probability = membership_probability(posterior, shown, matches, order.tolist(), bias=bias)
    weights = [
        feature_model(posterior.model).weights(posterior.chains[int(c)][int(t)].latent)[int(bias) :]
        for c, t in zip(matches.chain, matches.draw, strict=True)
    ]
    found = tuple(
        Feature(
            name=f"F{place + 1}",
            index=int(k),
            share=float(shown.Z[:, k].mean()),
            explained=float(lost[k]),
            stability=float(stability[k]),
            likeness=float(likeness[k]),
            probability=probability[:, place],
            effects=effects(
                shown, k, scales, weights_elsewhere(posterior, shown, matches, k, weights)
            ),
            alone=_alone(by_column[k], scales),
        )
        for place, k in enumerate(order)
    )
    positive = np.maximum(lost, 0.0)
    parts = positive / positive.sum() if positive.sum() > 0 else positive
    others = np.setdiff1d(np.arange(lost.size), order)
    shares = shown.Z[:, others].mean(axis=0)
    remainder = Remainder(
        number=others.size,
        largest=float(shares.max(initial=0.0)),
        explained=float(parts[others].sum()),
        stability=float(stability[others].max(initial=0.0)),
    )
    return found, parts[order], remainder


def _alone(lost: Array, scales: Sequence[Scale]) -> str | None:
    d = alone_in(lost)
    return None if d is None else scales[d].name


def _cautions(
    posterior: Posterior, features: Sequence[Feature], patterns: Sequence[Pattern]
) -> list[str]:
    """Return what keeps the explanation from being the only one."""
    if not features:
        return []
    said = []
    if len(posterior.chains) == 1:
        said.append(
            "one chain cannot tell how stable its features are: it keeps to what it found; "
            "run several"
        )
    weak = [feature.name for feature in features if not feature.stable]
    where = "draws of the other chains" if len(posterior.chains) > 1 else "draws"
    if weak:
        names = f"{', '.join(weak[:-1])} and {weak[-1]} are" if len(weak) > 1 else f"{weak[0]} is"
        said.append(
            f"{names} in fewer than half of the {where}: this explanation is one of several"
        )
    unsure = sum(not pattern.stable for pattern in patterns)
    if unsure and not weak:
        said.append(
            f"{unsure} of the {len(patterns)} patterns shown are in fewer than half of the {where}"
        )
    return said


def _options(job: Job, request: Request) -> dict[str, Any]:
    """Return what makes the run reproducible, ready for JSON."""
    return {
        "source": job.source,
        "model": job.problem.model.name,
        "chains": job.plan.chains,
        "warmup": job.plan.warmup,
        "draws": job.plan.draws,
        "thin": job.plan.thin,
        "seed": job.plan.seed,
        "sample": request.sample,
        "top": request.top,
        "settings": {name: str(value) for name, value in job.settings.items()},
    }
