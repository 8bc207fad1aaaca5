"""Explore a table: which groups of rows it has, what marks each, and how sure that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from glfm_cli.completion import FitLike, Kept, TableLike, Types, as_table, with_types
from glfm_cli.completion.prepare import with_guess
from glfm_cli.completion.saved import is_saved_fit
from glfm_cli.encoding import Data, learnt_cells, rows_inside
from glfm_cli.encoding.notes import ONE_COLUMN
from glfm_cli.exploration.choice import choose
from glfm_cli.exploration.components import describe_components
from glfm_cli.exploration.crossfit import CrossFit, cross_fit
from glfm_cli.exploration.dependence import dependence as depend
from glfm_cli.exploration.evidence import Evidence, weigh
from glfm_cli.exploration.explanation import Explanation, explain
from glfm_cli.exploration.factors import describe_factors
from glfm_cli.exploration.features import Feature, effects, explained
from glfm_cli.exploration.files import ExplorationFiles
from glfm_cli.exploration.findings import Remainder
from glfm_cli.exploration.halves import HalfSample, sample_halves
from glfm_cli.exploration.job import ExplorationJob, open_fit, place_rows, plan_exploration
from glfm_cli.exploration.map import RowsOnMap, map_of, scales_of
from glfm_cli.exploration.map_explained import explained_shares
from glfm_cli.exploration.map_result import MapExploration
from glfm_cli.exploration.missingness import missingness
from glfm_cli.exploration.patterns import Pattern, find_patterns, main_features
from glfm_cli.exploration.request import Request
from glfm_cli.exploration.result import Exploration
from glfm_cli.exploration.rows import similar as alike
from glfm_cli.exploration.rows import surprising as least_expected
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.shared import shared_by_rows
from glfm_cli.exploration.stability import (
    Matches,
    match_features,
    membership_probability,
    standard_error,
)
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.diagnostics import diagnose
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.latent.capabilities import Components, HasFactors, Map
from glfm_cli.options import MatrixOptions, Sampling, Saving, gather

REQUESTED = (
    *("sample", "color", "top", "columns", "all_features"),
    *("surprising", "similar", "dependence"),
)


@one_blas_thread()
def explore(
    table: TableLike,
    types: Types | None = None,
    *,
    sampling: Sampling | None = None,
    saving: Saving | None = None,
    matrix: MatrixOptions | None = None,
    request: Request | None = None,
    files: ExplorationFiles | None = None,
    fit: FitLike | None = None,
    observer: Observer | None = None,
    finish: Callable[[Any], None] | None = None,
    **options: Any,
) -> Exploration:
    """Explore a table or triplets: features, components or a map of rows.

    Parameters
    ----------
    table : table, data frame, matrix or path
        As in `impute`, or a folder `NAME.glfm` with a saved fit, which is not sampled again: then
        `types` and the options of sampling are those of that fit, and giving others is an error.
    types
        As in `impute`.
    sampling, saving, matrix, request : Sampling, Saving, MatrixOptions, Request
        The options; their fields are keywords of this function, too: `chains=4`, `top=3`. Chains
        start from few features (`initial_features` 2 and `initial_share` 0.2) and expect more noise
        beside them (`noise_rate` 0.5), and components of
        counts that are alike are merged (`merge_every` 15), unless `settings` say otherwise.
    files : ExplorationFiles, optional
        What is written; nothing if left out.
    fit : path or Fit, optional
        A saved fit of a model with a map, on which the rows of the table are placed.
    observer, finish
        As in `impute`.

    Returns
    -------
    Exploration
        Of a model with components, and so of triplets, a `ComponentExploration`; of one with a map
        of rows, a `MapExploration`.
    """
    groups = (
        sampling or Sampling(),
        saving or Saving(),
        matrix or MatrixOptions(),
        request or Request(),
    )
    *others, request = gather(options, *groups)
    job = plan_explore(table, types, (others[0], others[1], others[2]), request, fit)
    files = files or ExplorationFiles()
    files.check()
    if job.session is None:
        record = {} if files.record is None else {"record": files.record}
        Sampling().check_none(record)
        assert job.run is not None
        return _finished(job.run, job, request, files, finish, table)
    with Kept(job.session, observer) as kept:
        return _finished(kept.sample(forecasts=False), job, request, files, finish, table)


def _finished(
    run: Run,
    job: ExplorationJob,
    request: Request,
    files: ExplorationFiles,
    finish: Callable[[Any], None] | None,
    given: TableLike,
) -> Exploration:
    """Return what the draws say, all files of it written."""
    describe: Callable[..., Any] = describe_run
    if isinstance(job.model, Map):
        describe = describe_map
    elif isinstance(job.model, Components):
        describe = describe_components
    elif isinstance(job.model, HasFactors):
        describe = describe_factors
    found = replace(describe(run, job, request), given=given)
    files.write(found)
    if finish is not None:
        finish(found)
    if files.record is not None and job.session is not None:
        files.write_record(job.session, run, found)
    return found


def plan_explore(
    table: TableLike,
    types: Types | None,
    groups: tuple[Sampling, Saving, MatrixOptions],
    request: Request,
    fit: FitLike | None = None,
) -> ExplorationJob:
    """Check everything and encode what is given, or open a saved fit; nothing is sampled yet."""
    if fit is not None or is_saved_fit(table):
        sampling, saving, matrix = groups
        threads = {} if sampling.threads is None else {"threads": sampling.threads}
        more = {} if types is None else {"types": types}
        sampling.check_none(more | threads | saving.written() | matrix.written())
        if fit is not None:
            source, file = as_table(table)
            return place_rows(source, fit, request, sampling.threads, file=file)
        return open_fit(table, request)
    schema = None
    if types is not None:
        table, schema = with_types(table, types)
    source, file = as_table(table)
    job = plan_exploration(source, schema, request, groups, file=file)
    return replace(job, data=with_guess(job.data, table)) if isinstance(job.data, Data) else job


def describe_run(run: Run, job: ExplorationJob, request: Request) -> Exploration:
    """Return what the draws of a run say of the structure of the table."""
    began = time.monotonic()
    posterior, data = run.posterior, job.data
    assert isinstance(data, Data)
    bias = job.bias
    inside = rows_inside(data.columns)
    scales = tuple(
        replace(
            scale_of(d, encoded, posterior.links[d], posterior.spans[d]),
            weight=data.weights,
            inside=inside.get(d),
        )
        for d, encoded in enumerate(data.columns)
    )
    chain, draw = choose(posterior, request.sample, job.hidden, data.n_rows, bias=bias)
    shown = explain(posterior, chain, draw, bias=bias)
    matches = match_features(posterior, shown, bias=bias)
    halves, stopped, notes = _halves(run, job)
    crossed = [cross_fit(half, shown, scales, bias=bias) for half in halves]
    evidence = weigh(crossed, scales, job.plan.seed, shown.Z.shape[1])
    found, remainder = _features(
        *(posterior, shown, matches, crossed, evidence, scales),
        every=request.all_features,
        bias=bias,
    )
    main = main_features(found)
    patterns = find_patterns(posterior, shown, matches, main, scales, top=request.top, bias=bias)
    surprising = similar = None
    if request.surprising:
        surprising = least_expected(posterior, scales, request.surprising, bias=bias)
    if request.similar is not None:
        similar = alike(posterior, request.similar - 1, bias=bias)
    shared = shared_by_rows(posterior, data)
    cautions = _cautions(posterior, found, patterns[: request.top])
    cautions += shared.cautions if shared is not None else ()
    traces = posterior.traces()
    gating = [name for name in traces if name == "log_likelihood" or name.startswith("noise_")]
    return Exploration(
        data=data,
        ids=job.ids,
        posterior=posterior,
        diagnostics=diagnose(traces, gating),
        stopped=stopped,
        seconds=run.seconds + time.monotonic() - began,
        sample=request.sample,
        shown=shown,
        features=found,
        remainder=remainder,
        null_level=evidence.null_level,
        main=main,
        patterns=patterns,
        top=request.top,
        scales=scales,
        columns=request.chosen(scales),
        baseline=tuple(scale.baseline() for scale in scales),
        missing=missingness(scales),
        surprising=surprising,
        similar=similar,
        dependence=depend(posterior, scales) if request.dependence else None,
        shared=shared,
        options=job.options(request, REQUESTED),
        schema=job.schema,
        notes=(*_notes_of(data), *run.warnings, *notes, *cautions),
    )


def _halves(
    run: Run, job: ExplorationJob
) -> tuple[tuple[HalfSample, ...], str | None, tuple[str, ...]]:
    """Return draws that judge features, why the whole run ended early, and what to know of it.

    Where there is no time for chains of halves, the chains of the table itself are judges.
    """
    halves: tuple[HalfSample, ...] = ()
    stopped, problem = run.stopped, job.problem
    if stopped is None:
        limit, threads = job.limits
        left = None if limit is None else max(limit - run.seconds, 0.0)
        runner = None if job.session is None else job.session.runner
        halves, stopped = sample_halves(
            problem, job.plan, threads=threads, time_limit=left, runner=runner
        )
    if stopped is None:
        return halves, None, ()
    rows = np.arange(problem.n_rows)
    note = "the run ended early: features are judged by the rows that found them"

    return (HalfSample(run.posterior, rows, rows),), stopped, (note,)


def describe_map(run: Run, job: ExplorationJob, request: Request) -> MapExploration:
    """Return what the draws of a run say of where the rows of a table lie."""
    data = job.data
    assert isinstance(data, Data)
    base = job.base or run.posterior
    names = request.requested([encoded.column.name for encoded in data.columns])
    placed = RowsOnMap(run.posterior, base, data if job.base is None else job.base_data)
    told = placed.data or data  # new rows tell of the map where its own are not known
    problem = replace(job.problem, xs=learnt_cells(told.columns))
    shares = explained_shares(base, problem, scales_of(base, told), threads=job.limits[1])
    shown = map_of(placed, data, shares, request.color, names or None)
    found = MapExploration(
        ids=job.ids,
        map=shown,
        top=request.top,
        **job.of_run(run, request, REQUESTED, _notes_of(data)),
    )
    return replace(found, notes=(*found.notes, *found.cautions()))


def _features(
    posterior: Posterior,
    shown: Explanation,
    matches: Matches,
    crossed: Sequence[CrossFit],
    evidence: Evidence,
    scales: Sequence[Scale],
    *,
    every: bool,
    bias: bool,
) -> tuple[tuple[Feature, ...], Remainder]:
    """Return the features shown, and what is to be said of the others.

    every : whether those within chance are shown, too: after the others, by what they explain
    """
    parts = explained(shown, scales)
    stability = matches.stability()
    halves = np.vstack([np.zeros((0, parts.size)), *(one.found for one in crossed)])
    order = list(evidence.order)
    if every:
        order += [int(k) for k in np.argsort(-parts, kind="stable") if k not in evidence.order]
    probability = membership_probability(posterior, shown, matches, order, bias=bias)
    found = tuple(
        Feature(
            name=f"F{place + 1}",
            index=k,
            share=float(np.average(shown.Z[:, k], weights=scales[0].weight)),
            explained=float(parts[k]),
            stability=float(stability[:, k].mean()),
            stability_error=float(standard_error(stability[:, [k]])[0]),
            halves=float(halves[:, k].mean()) if len(halves) else np.nan,
            halves_error=float(standard_error(halves[:, [k]])[0]) if len(halves) else np.nan,
            credible=k in evidence.order,
            probability=probability[:, place],
            effects=effects(crossed, k, scales, evidence.z[k], evidence.credible[k]),
        )
        for place, k in enumerate(order)
    )
    others = np.setdiff1d(np.arange(parts.size), order)
    remainder = Remainder(
        number=others.size,
        largest=float(shown.Z[:, others].mean(axis=0).max(initial=0.0)),
        explained=float(parts[others].sum()),
    )
    return found, remainder


def _notes_of(data: Data) -> list[str]:
    """Return what is to be known of the table."""
    alone = "only one column is modelled, so features describe its shape, not relations of columns"
    return [alone if text == ONE_COLUMN else text for text in data.notes]


def _cautions(
    posterior: Posterior, features: Sequence[Feature], patterns: Sequence[Pattern]
) -> list[str]:
    """Return what keeps the explanation from being the only one."""
    if not features:
        return []
    cautions = []
    if len(posterior.chains) == 1:
        cautions.append(
            "one chain cannot tell how stable its features are; run several"
        )
    weak = [feature.name for feature in features if not feature.stable]
    where = "draws of the other chains" if len(posterior.chains) > 1 else "draws"
    if weak:
        names = f"{', '.join(weak[:-1])} and {weak[-1]} are" if len(weak) > 1 else f"{weak[0]} is"
        cautions.append(
            f"{names} in fewer than half of the {where}: one of several possible explanations"
        )
    unsure = sum(not pattern.stable for pattern in patterns)
    if unsure and not weak:
        cautions.append(
            f"{unsure} of the {len(patterns)} patterns shown are in fewer than half of the {where}"
        )
    return cautions
