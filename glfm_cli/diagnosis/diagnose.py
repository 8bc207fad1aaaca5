"""The diagnosis of a saved fit: convergence, predictive check, uncertain cells, advice."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from glfm_cli.arrays import Array
from glfm_cli.completion import judge
from glfm_cli.diagnosis.advice import advise
from glfm_cli.diagnosis.check import REPLICATES, check_columns
from glfm_cli.diagnosis.result import Diagnosis, UncertainCell
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.cell_traces import trace_cells
from glfm_cli.inference.diagnostics import Diagnostics
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.options import whole
from glfm_cli.store import Fit, load_fit
from glfm_cli.streams import CELLS, CHECKS, Streams

UNCERTAIN_CELLS = 10
ONE_SD = (float(ndtr(-1.0)), float(ndtr(1.0)))  # of a normal law, below its mean and above
NO_DATA = (
    "the fit was saved without its table, so columns are not compared with it and no cells are "
    "listed"
)


@one_blas_thread()
def diagnose_fit(
    fit: Fit | str | os.PathLike[str], *, replicates: int = REPLICATES, cells: int = UNCERTAIN_CELLS
) -> Diagnosis:
    """Check a saved fit: precision, convergence, fit to the data.

    Parameters
    ----------
    fit : Fit or path
        A loaded fit, or its folder.
    replicates : int
        Columns that the posterior predictive check makes of each; fewer than 99 find nothing.
    cells : int
        How many of the least certain cells are listed.

    Returns
    -------
    Diagnosis
        The same fit gives the same diagnosis.

    Raises
    ------
    StoreError
        The folder is no sound fit.
    UsageError
        `replicates` or `cells` is no such number.
    """
    replicates = whole("replicates", replicates) or REPLICATES
    cells = whole("cells", cells, least=0) or 0
    fit = fit if isinstance(fit, Fit) else load_fit(fit)
    posterior, data = fit.posterior, fit.data
    missing: dict[int, Array] = {}
    checks = uncertain = precision = None
    absent: tuple[str, ...] = (NO_DATA,) if fit.matrix is None else ()
    if data is not None:
        absent = ()
        requested = {d: np.flatnonzero(e.requested) for d, e in enumerate(data.columns)}
        missing = {d: rows for d, rows in requested.items() if rows.size}
        # The same cells as after the run that made the fit.
        precision = judge(posterior, data, fit.seed)
        rng = Streams(fit.seed, 0).get(CHECKS)
        checks = check_columns(posterior, data, rng, replicates=replicates)
        uncertain = _least_certain(posterior, data, missing, cells)
    models = _models(posterior)
    diagnostics, traces = _traced(posterior, missing, fit.seed)
    result = Diagnosis(
        path=str(fit.path),
        model=fit.model.name,
        n_rows=fit.n_rows,
        chains=len(posterior.chains),
        draws=posterior.n_draws,
        diagnostics=diagnostics,
        precision=precision,
        traces=traces,
        labels={name: _label(name, fit) for name in traces},
        models=models,
        checks=checks,
        uncertain=uncertain,
        notes=(*fit.notes, *absent),
        advice=(),
    )
    return replace(result, advice=advise(result, fit))


def _models(posterior: Posterior) -> tuple[str, ...]:
    """Return the model of each chain where they are of several, else nothing."""
    model = posterior.model
    if not isinstance(model, Candidates) or len(set(posterior.groups)) == 1:
        return ()
    return tuple(model.candidates[group] for group in posterior.groups)


def _traced(
    posterior: Posterior, missing: dict[int, Array], seed: int
) -> tuple[Diagnostics, dict[str, Array]]:
    """Return traces, and what they say of chains of one model, each beside its likes alone."""
    models, found = _models(posterior), []
    traces: dict[str, Array] = {}
    for group in dict.fromkeys(posterior.groups):
        own = posterior.of_candidate(group) if models else posterior
        # The same cells as after the run that made the fit.
        cells = trace_cells(own, missing, Streams(seed, 0).get(CELLS))
        of = f" of {models[posterior.groups.index(group)]}" if models else ""
        named = own.traces() | cells
        one = own.diagnose(named)
        found.append(replace(one, quantities=tuple(replace(q, name=q.name + of) for q in one)))
        traces |= {name + of: trace for name, trace in named.items()}
    quantities = tuple(q for one in found for q in one)
    n_draws = min(one.n_draws for one in found)
    whole = replace(found[0], quantities=quantities, n_chains=len(posterior.chains))
    return replace(whole, n_draws=n_draws), traces


_LABELS = {
    "log_likelihood": "log likelihood of the observed cells",
    "features": "number of features",
    "alpha": "mass of the feature prior",
    "weight_variance": "prior variance of the weights",
    "share_1": "share of rows with the commonest feature",
    "share_2": "share of rows with the second commonest feature",
    "share_3": "share of rows with the third commonest feature",
    "rank": "number of components",
    "scale_precision": "precision of the components' scales",
    "row_noise_variation": "how much the rows' noise precisions vary",
    "singular_1": "largest singular value of the completed matrix",
    "singular_2": "second largest singular value",
    "singular_3": "third largest singular value",
}


def _label(name: str, fit: Fit) -> str:
    """Return what a traced quantity is, in words."""
    name, _, model = name.partition(" of ")
    if model:
        return f"{_label(name, fit)} ({model})"
    kind, _, rest = name.partition("_")
    if kind == "noise" and rest.isdigit():
        return f"noise variance of '{fit.columns[int(rest)].name}'"
    if kind == "cell":
        row, _, d = rest.partition("_")
        return f"missing cell of '{fit.columns[int(d)].name}', row {row}"
    return _LABELS.get(name, name.replace("_", " "))


def _least_certain(
    posterior: Posterior, data: Data, missing: dict[int, Array], most: int
) -> tuple[UncertainCell, ...]:
    """Return the cells whose distribution is widest beside that of their column."""
    marginals = predict(posterior, missing, ONE_SD)
    found: list[tuple[float, int, int, int]] = []
    for d, marginal in marginals.items():
        spread = _relative(data.columns[d], marginal)
        worst = np.argsort(-spread, kind="stable")[:most]
        found += [(-float(spread[i]), int(marginal.rows[i]), d, int(i)) for i in worst]
    return tuple(
        UncertainCell(
            row=row + 1,
            column=data.columns[d].column.name,
            uncertainty=-spread,
            guess=_guess(data.columns[d], marginals[d], i),
        )
        for spread, row, d, i in sorted(found)[:most]
    )


def _relative(encoded: EncodedColumn, marginal: Marginal) -> Array:
    """Return the uncertainty (n,) of cells relative to their column; 1 says nothing is known.

    Of numbers half of what lies between one sd below and one above, as normal scores among the
    known cells: in units of a skewed column its large cells would be unsure, however well known.
    """
    x = encoded.typical
    if marginal.probabilities is None:
        return 0.5 * np.diff(_normal_scores(x, marginal.quantiles), axis=1)[:, 0]
    shares = np.bincount(x.astype(np.intp), minlength=len(encoded.levels)) / x.size
    whole = float(_entropy(shares[None, :])[0])
    return _entropy(marginal.probabilities) / whole if whole > 0 else np.zeros(marginal.rows.size)


def _normal_scores(x: Array, values: Array) -> Array:
    """Return the normal scores of values by their mean ranks among some cells x (n,)."""
    ordered, n = np.sort(x), max(x.size, 1)
    rank = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    return ndtri(np.clip(0.5 * rank / n, 0.5 / n, 1.0 - 0.5 / n))


def _entropy(p: Array) -> Array:
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)


def _guess(encoded: EncodedColumn, marginal: Marginal, i: int) -> str:
    if marginal.probabilities is None:
        return f"{marginal.mean[i]:.4g} +- {marginal.sd[i]:.2g}"
    level = int(np.argmax(marginal.probabilities[i]))
    return f"{encoded.levels[level]} ({100 * marginal.probabilities[i, level]:.0f} %)"
