"""Explore a table: which groups of rows it has, what marks each, and how sure that is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import SamplingOptions, SaveOptions, as_schema, check_request
from glfm_cli.encoding import Data
from glfm_cli.encoding.notes import NO_GAPS, ONE_COLUMN
from glfm_cli.errors import UsageError
from glfm_cli.exploration.choice import choose
from glfm_cli.exploration.dependence import dependence as depend
from glfm_cli.exploration.explanation import Explanation, explain, feature_model
from glfm_cli.exploration.features import (
    STABLE,
    Feature,
    alone_in,
    effects,
    explained,
    rank,
    weights_elsewhere,
)
from glfm_cli.exploration.findings import Remainder
from glfm_cli.exploration.job import Job, is_saved_fit, open_fit, prepare_exploration
from glfm_cli.exploration.missingness import missingness
from glfm_cli.exploration.patterns import Pattern, find_patterns, main_features
from glfm_cli.exploration.request import TOP, Request, make_request
from glfm_cli.exploration.result import Exploration
from glfm_cli.exploration.rows import similar as alike
from glfm_cli.exploration.rows import surprising as least_expected
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.stability import Matches, match_features, membership_probability
from glfm_cli.inference.diagnostics import diagnose
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.io import read_table
from glfm_cli.schema import Schema
from glfm_cli.store import EVERY


def explore(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    sample: str = "consensus",
    top: int = TOP,
    columns: Sequence[str] | None = None,
    surprising: int = 0,
    similar: int | None = None,
    dependence: bool = False,
    save: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    no_data: bool = False,
    checkpoint: float = EVERY,
    observer: Observer | None = None,
) -> Exploration:
    """Find out what structure is in a table.

    Parameters
    ----------
    table : pyarrow.Table or path
        The table, or a folder `NAME.glfm` with a saved fit of it, which is not sampled again: then
        `types` and the options of sampling are those of that fit, and giving others is an error.
    types, model, chains, warmup, draws, thin, seed, threads, time_limit, settings, observer
    save, resume, no_data, checkpoint
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
    requested = SamplingOptions(model, chains, warmup, draws, thin, seed, settings)
    keeping = SaveOptions(
        None if save is None else Path(save),
        None if resume is None else Path(resume),
        with_data=not no_data,
        every=checkpoint,
    )
    file = None
    if not isinstance(table, pa.Table):
        if is_saved_fit(table):
            said = {**vars(requested), "types": types, "time_limit": time_limit}
            check_nothing_to_sample({**said, "save": save, "resume": resume})
            run, job = open_fit(table, request)
            return describe_run(run, job, request)
        file, table = str(table), read_table(table)
    schema = None if types is None else as_schema(types)
    job = prepare_exploration(table, schema, request, requested, keeping, file=file)
    assert job.session is not None
    run = job.session.begun().sample(
        threads=threads or available_threads(),
        time_limit=time_limit,
        observer=observer,
        forecasts=False,
    )
    return describe_run(run, job, request)


def check_nothing_to_sample(said: Mapping[str, object]) -> None:
    """Raise UsageError when options of sampling come with a saved fit.

    said : options by parameter name; None or empty where nothing was said
    """
    for name, value in said.items():
        if value is None or value == {}:
            continue
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} is about sampling, but a saved fit has been sampled",
            hint="Leave it out, or give the table itself.",
        )


def describe_run(run: Run, job: Job, request: Request) -> Exploration:
    """Return what the draws of a run say of the structure of the table."""
    posterior, data = run.posterior, job.data
    bias = job.bias
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
        schema=job.schema,
        notes=(
            *_notes_of(data),
            *run.warnings,
            *_cautions(posterior, found, patterns[: request.top]),
        ),
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
    alone = [alone_in(one) for one in by_column]
    order = rank(np.where([d is None for d in alone], lost, 0.0), likeness)
    shaped = {alone[k] for k in rank(lost, likeness)}
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
        stable=int(np.sum(stability[others] >= STABLE)),
        shapes=tuple(scale.name for d, scale in enumerate(scales) if d in shaped),
    )
    return found, parts[order], remainder


def _notes_of(data: Data) -> list[str]:
    """Return what is to be known of the table; gaps are no matter here."""
    alone = "only one column is modelled, so features describe its shape, no bond between columns"
    said = [alone if text == ONE_COLUMN else text for text in data.notes]
    return [text for text in said if text != NO_GAPS]


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
        "model": job.model.name,
        "chains": job.plan.chains,
        "warmup": job.plan.warmup,
        "draws": job.plan.draws,
        "thin": job.plan.thin,
        "seed": job.plan.seed,
        "sample": request.sample,
        "top": request.top,
        "columns": None if request.columns is None else list(request.columns),
        "surprising": request.surprising,
        "similar": request.similar,
        "dependence": request.dependence,
        "settings": {name: str(value) for name, value in job.settings.items()},
    }
