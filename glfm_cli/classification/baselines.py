"""Logistic regression on completed features, beside which cross-validation shows the model.

Needs scikit-learn, an optional extra. Features are seen as the model sees them, on their latent
scale, and gaps are filled with the mean, or with the conditional mean given the other features;
cells known only to lie between two numbers are one between.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.bayesian_ridge import BayesianRidge
from glfm_cli.classification.features import LatentColumn, is_constant
from glfm_cli.encoding import EncodedColumn
from glfm_cli.links import LinkConfig

NAMES = ("logistic, mean", "logistic, conditional mean")


def available() -> bool:
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def baseline_probabilities(
    train: Sequence[EncodedColumn],
    code: Array,
    test: Sequence[EncodedColumn],
    n_levels: int,
    links: LinkConfig,
    seed: int,
) -> dict[str, Array]:
    """Return (n, R) probabilities of test rows by each of `NAMES`, fitted to labelled rows.

    Where no feature varies, or one label alone is known, they are the shares of the labels.
    """
    from sklearn.linear_model import LogisticRegression

    at, there = matrices(train, test, links)
    labelled = ~np.isnan(code)
    count = np.bincount(code[labelled].astype(int), minlength=n_levels)
    if not at.shape[1] or np.count_nonzero(count) < 2:
        return dict.fromkeys(NAMES, np.tile(count / count.sum(), (len(there), 1)))
    out = {}
    for name, conditional in zip(NAMES, (False, True), strict=True):
        filled, new = fill(at, there, conditional, seed)
        model = LogisticRegression(max_iter=2000)
        model.fit(filled[labelled], code[labelled].astype(int))
        p = np.zeros((len(new), n_levels))
        p[:, model.classes_] = model.predict_proba(new)
        out[name] = p
    return out


def matrices(
    train: Sequence[EncodedColumn], test: Sequence[EncodedColumn], links: LinkConfig
) -> tuple[Array, Array]:
    """Return the features of both as numbers, NaN where missing."""
    parts: tuple[list[Array], list[Array]] = ([], [])
    for e, other in zip(train, test, strict=True):
        if is_constant(e):
            continue
        feature = LatentColumn.calibrate(e, links)
        for x, part in zip((e.inside, other.inside), parts, strict=True):
            part.append(np.where(np.isnan(x)[:, None], np.nan, feature.latent(x)))
    width = (np.empty((train[0].x.size, 0)), np.empty((test[0].x.size, 0)))
    at, there = (np.hstack([w, *part]) for w, part in zip(width, parts, strict=True))
    return at, there


def fill(at: Array, there: Array, conditional: bool, seed: int) -> tuple[Array, Array]:
    """Return both matrices with their missing cells filled by what the first teaches."""
    if not conditional or at.shape[1] < 2:
        mean = np.nanmean(at, axis=0) if at.size else np.empty(0)
        return np.where(np.isnan(at), mean, at), np.where(np.isnan(there), mean, there)
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    # Regressions of columns that no row lacks would go unused.
    complete = ~np.isnan(at).any(axis=0)
    skip = not np.isnan(there[:, complete]).any()
    with warnings.catch_warnings():
        # Ten rounds are its default, and what its users get, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        imputer = IterativeImputer(BayesianRidge(), random_state=seed, skip_complete=skip)
        return imputer.fit_transform(at), imputer.transform(there)
