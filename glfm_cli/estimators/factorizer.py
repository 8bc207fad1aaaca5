"""The Poisson factorization of a matrix of counts as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.estimators.count_matrix import counts_of, names_of, with_names
from glfm_cli.estimators.output import WithOutput, frame_of
from glfm_cli.estimators.parameters import WithParameters
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.executors import available_threads
from glfm_cli.latent.cnpf import CnpfConfig, Counts
from glfm_cli.latent.cnpf.calibration import (
    chosen_tau,
    fit_factors,
    held_out_perplexity,
    likeliest,
)
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.prediction import fold_in
from glfm_cli.options import whole
from glfm_cli.settings import apply_settings

Variant = Literal["cnpf", "scaled", "hgp", "diln"]
Output = Literal["proportions", "weights"]

VARIANTS: dict[str, dict[str, Any]] = {
    "cnpf": {},
    "scaled": {"correlated": False},
    "hgp": {"correlated": False, "scaled": False},
    "diln": {"likelihood": "topics"},
}
PART = 1 << 22  # rates that are held at once


class GlfmFactorizer(WithOutput, WithParameters):
    """Finds correlated components of a matrix of counts, and predicts its rows.

    Takes a sparse matrix of SciPy, in which a cell that is not stored is a zero, an array or a
    data frame. Works in scikit-learn's `Pipeline`, with `clone` and `GridSearchCV`.

    Parameters
    ----------
    model : {"cnpf", "scaled", "hgp", "diln"}
        Correlated factorization; the same without correlations (scaled hierarchical gamma
        process), and without sizes of rows, too; or the correlated topic model.
    components : int
        The most components; those that are not needed shrink to nothing.
    restarts : int
        Fits from different starts, which predict together; components are those of the one of
        the largest bound.
    observed : float
        Share of a new row's columns that predictions are tuned for, see `tau`.
    tau : float, optional
        Factor of the weights for new rows; chosen on 15 % of the rows, left out, if not given.
    output : {"proportions", "weights"}
        What `transform` returns: shares of a row's expected count, or the expected counts.
    seed : int
        Fixes the result.
    threads : int, optional
        The result does not depend on it; all processors if left out.
    settings : mapping, optional
        Any other field of the model's configuration.

    Attributes
    ----------
    components_ : (T, I) shares of the columns in each component, largest component first
    shares_ : (T,) of all counts, by component
    correlations_ : (T, T) between the components' log counts in rows, what all pairs have in common
        taken off; from -1 to 1, 0 of small components and in a model without
    n_components_ : int, components with more than a thousandth of the counts
    tau_ : float
    bound_ : float, the largest lower bound of log p(X); NaN where minibatches were used
    bounds_ : of each restart, the largest first
    warnings_ : tuple of what a user should know
    n_features_in_ : int
    feature_names_in_ : (I,) object, of a data frame whose columns have names
    """

    components_: Array
    shares_: Array
    correlations_: Array
    n_components_: int
    tau_: float
    bound_: float
    bounds_: tuple[float, ...]
    warnings_: tuple[str, ...]
    n_features_in_: int
    feature_names_in_: Array
    _input = ("sparse", "positive_only")

    def __init__(
        self,
        model: Variant = "cnpf",
        *,
        components: int = 50,
        restarts: int = 3,
        observed: float = 0.1,
        tau: float | None = None,
        output: Output = "proportions",
        seed: int = 0,
        threads: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.model = model
        self.components = components
        self.restarts = restarts
        self.observed = observed
        self.tau = tau
        self.output = output
        self.seed = seed
        self.threads = threads
        self.settings = settings

    @one_blas_thread()
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the model to rows X (n, I) of counts; `y` is not used.

        Raises
        ------
        GlfmError
            X is no matrix of counts, or has none at all; or a parameter is out of range.
        """
        config = self._config()
        counts = self._counts(X)
        if not counts.count.size:
            raise UsageError("there is no count above 0 in the matrix")
        tau = self.tau
        if tau is None:
            tau = chosen_tau(counts, config, self.seed, self.observed, self.restarts)
        fitted = fit_factors(counts, config, self.seed, self.restarts)
        fitted = fitted.with_tau(float(tau))
        draw = fitted.draws[0]
        theta = draw.mean_x * draw.mean_a.sum(axis=0)
        share = theta.sum(axis=0) / theta.sum()
        order = np.argsort(-share, kind="stable")
        mean = draw.mean_a
        self._fitted, self._fit_config, self._order = fitted, config, order
        self.components_ = np.ascontiguousarray((mean / mean.sum(axis=0)).T[order])
        self.shares_ = share[order]
        self.correlations_ = draw.correlations().rho[np.ix_(order, order)]
        self.n_components_ = int(np.count_nonzero(share > 1e-3))
        self.tau_ = float(tau)
        self.bound_, self.bounds_ = fitted.bounds[0], fitted.bounds
        self.warnings_ = fitted.warnings
        self.n_features_in_ = counts.shape[1]
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    @one_blas_thread()
    def transform(self, X: Any) -> Any:
        """Return (n, T) the proportions or weights of rows, by the step of rows alone.

        An array, or the frame that `set_output` chose.
        """
        new = self._new(X)
        folded = fold_in(self._fitted.draws[0], new, self._fit_config)
        counts = folded.mean_x * folded.mean_a.sum(axis=0)
        if self.output == "proportions":
            counts /= counts.sum(axis=1, keepdims=True)
        found = np.ascontiguousarray(counts[:, self._order])
        if self._output == "default":
            return found
        return frame_of(found, self.get_feature_names_out(), X, self._output)

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Fit the model and return what `transform` says of the same rows; `y` is not used."""
        return self.fit(X, y).transform(X)

    @one_blas_thread()
    def rates(self, X: Any, seen: Any = None) -> Array:
        """Return (n, I) the expected counts of new rows like X.

        Of a topic model these are shares of the row's total, times that total.

        seen : (n, I) bool, False where a cell is unknown, in place of a zero; all are known if
            left out
        """
        counts = self._new(X)
        if seen is not None:
            known = np.asarray(seen)
            if known.shape != counts.shape or known.dtype != np.bool_:
                expected = f"booleans of {counts.shape[0]} x {counts.shape[1]}"
                raise UsageError("seen", value=f"{known.dtype} of {known.shape}", expected=expected)
            counts, _ = hide_columns(counts, known)
        return self._fitted.fold_in(counts, self._fit_config).rates(slice(None))

    @one_blas_thread()
    def recommend(self, X: Any, n: int = 10) -> tuple[Array, Array]:
        """Return the n likeliest columns with no count yet of each row, and how likely each is.

        Returns
        -------
        columns : (rows, n) int64, numbers of columns, -1 where a row has not that many left
        p : (rows, n) probabilities of a count of at least one, NaN there
        """
        counts = self._new(X)
        if not (isinstance(n, Integral) and 1 <= n <= counts.shape[1]):
            raise UsageError("n", value=n, expected=f"a whole number from 1 to {counts.shape[1]}")
        folded = self._fitted.fold_in(counts, self._fit_config)
        size = max(1, PART // counts.shape[1])
        found = [
            likeliest(folded.p_any(slice(start, start + size)), n, counts, start)
            for start in range(0, counts.shape[0], size)
        ]
        columns, p = zip(*found, strict=True)
        return np.concatenate(columns), np.concatenate(p)

    @one_blas_thread()
    def perplexity(self, X: Any, observed: float | None = None) -> float:
        """Return exp(-mean log p) of the counts of new rows whose columns are hidden at random.

        observed : share of the columns that are seen; that of the constructor if left out
        """
        share = self.observed if observed is None else observed
        _require_share(share)
        counts = self._new(X)
        return held_out_perplexity(self._fitted, counts, self._fit_config, share, self.seed)

    def score(self, X: Any, y: object = None) -> float:
        """Return minus the logarithm of the perplexity; `y` is not used."""
        return -float(np.log(self.perplexity(X)))

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the components."""
        self._require_fit()
        names = [f"component{k}" for k in range(self.components_.shape[0])]
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def _config(self) -> CnpfConfig:
        if self.model not in VARIANTS:
            raise UsageError("model", value=self.model, expected="one of " + ", ".join(VARIANTS))
        if self.output not in get_args(Output):
            raise UsageError("output", value=self.output, expected="proportions or weights")
        for name, least in {"restarts": 1, "seed": 0, "threads": 1}.items():
            whole(name, getattr(self, name), least)
        tau = self.tau
        if tau is not None and not (isinstance(tau, Real) and 0.0 < float(tau) <= 64.0):
            raise UsageError("tau", value=self.tau, expected="a number above 0, at most 64")
        _require_share(self.observed)
        try:
            config = CnpfConfig(**{"components": self.components, **VARIANTS[self.model]})
        except UsageError as error:  # of a setting, which here is an argument
            raise UsageError("components", value=error.value, expected=error.expected) from None
        settings = dict(self.settings or {})
        for name in ("components", *VARIANTS["hgp"], *VARIANTS["diln"]):
            if name in settings:
                raise UsageError(
                    f"settings: '{name}' has an argument of its own",
                    hint="Say components=N, or one of model=" + ", ".join(VARIANTS) + ".",
                )
        return apply_settings({"model": config}, settings)["model"]

    def _counts(self, X: Any, n_columns: int | None = None) -> Counts:
        return counts_of(X, n_columns, self.threads or available_threads())

    def _new(self, X: Any) -> Counts:
        self._require_fit()
        names = getattr(self, "feature_names_in_", None)
        return self._counts(with_names(X, names), self.n_features_in_)

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise UsageError("this GlfmFactorizer is not fitted yet", hint="Call `fit` first.")


def _require_share(share: float) -> None:
    if not (isinstance(share, Real) and 0.0 < float(share) < 1.0):
        raise UsageError("observed", value=share, expected="a share above 0 and below 1")
