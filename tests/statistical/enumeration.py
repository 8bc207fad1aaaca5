"""Exact posteriors and exact transition matrices of tiny feature models, by enumeration.

Two independent halves that meet in a test:

- the *target*: `TinyModel.posterior` lists every feature allocation of N rows with at most
  `max_features` features and weighs it by prior times likelihood;
- the *kernel*: `transition_matrix` runs a sampler through all its random decisions. The sampler
  hands over a `Run`: given a script, it takes the i-th decision as the script says (past its end,
  option 0) and reports the probabilities of all options it had. `enumerate_paths` explores them.

A matrix is written as the tuple of its columns, a column as the integer whose bit n is z_nk
(its row history). A class is such a tuple sorted: the order of columns has no meaning in the
model. A kernel may use the order all the same, so transition matrices live on ordered tuples,
and only the stationary law is summed to classes:

    model = TinyModel(y, observed, alpha=1.0, var_B=1.0, var_noise=noise)
    states = ordered_matrices(model.n_rows, model.max_features)
    rows = [transition_matrix(states, lambda s: kernel(s, n)) for n in range(model.n_rows)]
    law = to_classes(states, stationary(compose(rows, order=[0, 1, 2])))
    assert total_variation(law, model.posterior()) < 1e-10

A sampler whose state also holds imputed cells has no finite matrix for a whole sweep, but that
of one row does once the imputed cells of the *other* rows are given: leave only that row's cells
unobserved in the target, and compare `lift(posterior) @ matrix` with the posterior.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = tuple[int, ...]
State = TypeVar("State", bound=Hashable)
Decision = tuple[int, Sequence[float]]  # option taken, probabilities of all options


# Feature allocations -----------------------------------------------------------------------------


def feature_classes(n_rows: int, max_features: int) -> list[Columns]:
    """Return every class of matrices with at most `max_features` features, none of them empty."""
    return [
        columns
        for size in range(max_features + 1)
        for columns in itertools.combinations_with_replacement(range(1, 2**n_rows), size)
    ]


def ordered_matrices(n_rows: int, max_features: int) -> list[Columns]:
    """Return every matrix with at most `max_features` features, none of them empty."""
    return [
        columns
        for size in range(max_features + 1)
        for columns in itertools.product(range(1, 2**n_rows), repeat=size)
    ]


def class_of(columns: Sequence[int]) -> Columns:
    """Return the class a matrix belongs to."""
    return tuple(sorted(columns))


def to_matrix(columns: Sequence[int], n_rows: int) -> NDArray[np.uint8]:
    """Return Z, (n_rows, n_features) of 0 and 1."""
    rows = np.arange(n_rows)[:, None]
    return ((np.array(columns, dtype=np.int64) >> rows) & 1).astype(np.uint8)


def from_matrix(Z: NDArray[np.uint8]) -> Columns:
    """Return the columns of a 0/1 matrix; inverse of `to_matrix`."""
    return tuple(sum(int(z) << n for n, z in enumerate(column)) for column in Z.T)


# The target --------------------------------------------------------------------------------------


def log_class_prior(columns: Sequence[int], n_rows: int, alpha: float) -> float:
    """Return log P([Z]) under the Indian buffet process, without a cap.

    P([Z]) = alpha^K exp(-alpha H_N) / prod_h K_h! * prod_k (N - m_k)! (m_k - 1)! / N!
    with K_h the number of columns of history h  [Griffiths and Ghahramani 2011, eq. 14].
    """
    harmonic = sum(1 / i for i in range(1, n_rows + 1))
    value = len(columns) * math.log(alpha) - alpha * harmonic
    value -= sum(math.lgamma(repeats + 1) for repeats in Counter(columns).values())
    for m in (column.bit_count() for column in columns):
        value += math.lgamma(n_rows - m + 1) + math.lgamma(m) - math.lgamma(n_rows + 1)
    return value


@dataclass(frozen=True, eq=False)
class TinyModel:
    """A linear-Gaussian feature model small enough to list all its allocations.

    Attributes
    ----------
    y : (n_rows, S) float64
        Pseudo-observations, on the scale of `var_noise`.
    observed : (n_rows, S) bool
        Cells that enter the likelihood; the others are integrated out.
    alpha : float
        Concentration of the feature prior, > 0.
    var_B : float
        Prior variance of a weight: in units of its column's noise variance when `noise_scaled`.
    var_noise : (S,) float64
        Noise variance of each column, > 0.
    var_bias : float or None
        Prior variance of the weight of the feature that all rows have, same unit as `var_B`;
        None leaves that feature out.
    noise_scaled : bool
        Weight variances are multiples of the column's noise variance.
    max_features : int
        Allocations with more features have probability zero; the others keep their proportions.
    """

    y: Array
    observed: NDArray[np.bool_]
    alpha: float
    var_B: float
    var_noise: Array
    var_bias: float | None = None
    noise_scaled: bool = True
    max_features: int = 3
    _likelihood: dict[Columns, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.y.shape[0]

    def log_prior(self, columns: Sequence[int]) -> float:
        """Return log P([Z]), up to the normaliser of the cap."""
        return log_class_prior(columns, self.n_rows, self.alpha)

    def log_likelihood(self, columns: Sequence[int]) -> float:
        """Return log p(observed y | Z), weights and unobserved cells integrated out."""
        key = class_of(columns)
        if key not in self._likelihood:
            self._likelihood[key] = sum(self._column(s, key) for s in range(self.y.shape[1]))
        return self._likelihood[key]

    def _column(self, s: int, columns: Columns) -> float:
        """y_o ~ N(0, sd2 I + V Z_o Z_o' + V_bias 1 1'),  V = var_B, times sd2 when scaled."""
        seen = self.observed[:, s]
        Z = to_matrix(columns, self.n_rows)[seen].astype(np.float64)
        y, var = self.y[seen, s], float(self.var_noise[s])
        unit = var if self.noise_scaled else 1.0
        covariance = var * np.eye(len(y)) + unit * self.var_B * (Z @ Z.T)
        covariance += unit * (self.var_bias or 0.0)
        _, log_det = np.linalg.slogdet(covariance)
        square = float(y @ np.linalg.solve(covariance, y))
        return -0.5 * (len(y) * math.log(2 * math.pi) + float(log_det) + square)

    def posterior(self) -> dict[Columns, float]:
        """Return the posterior probability of every class."""
        classes = feature_classes(self.n_rows, self.max_features)
        log_p = np.array([self.log_prior(c) + self.log_likelihood(c) for c in classes])
        p = np.exp(log_p - log_p.max())
        return dict(zip(classes, (p / p.sum()).tolist(), strict=True))


# The kernel --------------------------------------------------------------------------------------


def enumerate_paths(
    run: Callable[[tuple[int, ...]], tuple[Sequence[Decision], State]],
) -> dict[State, float]:
    """Return the exact law of the state in which a random procedure ends.

    Depth first: each run follows its script, then takes option 0 throughout; the options it
    passed by past the script become new scripts. Every path is run once.

    Parameters
    ----------
    run : callable
        `run(script)` returns the decisions made, in order, and the final state. It must be a
        function of the script alone.

    Raises
    ------
    ValueError
        The procedure leaves its script, or reports probabilities that are not a law.
    """
    law: dict[State, float] = {}
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        decisions, state = run(script)
        taken = tuple(option for option, _ in decisions)
        if taken != script + (0,) * (len(taken) - len(script)):
            raise ValueError(f"script {script} was not followed: took {taken}")
        probability = 1.0
        for i, (option, options) in enumerate(decisions):
            _check_law(options, f"decision {i} after {taken[:i]}")
            if i >= len(script):
                scripts += [(*taken[:i], j) for j in range(1, len(options)) if options[j] > 0.0]
            probability *= options[option]
            if probability == 0.0:  # option 0 can be impossible, and so is all that follows it
                break
        if probability > 0.0:
            law[state] = law.get(state, 0.0) + probability
    _check_law(list(law.values()), "final states")
    return law


def _check_law(p: Sequence[float], what: str) -> None:
    if not p or min(p) < 0.0 or not abs(math.fsum(p) - 1.0) < 1e-12:
        raise ValueError(f"probabilities of {what} are not a law: {list(p)}")


def transition_matrix(
    states: Sequence[State],
    kernel: Callable[[State], Callable[[tuple[int, ...]], tuple[Sequence[Decision], State]]],
) -> Array:
    """Return T, (n_states, n_states): T[i, j] = P(next = states[j] | now = states[i]).

    `kernel(state)` is the procedure that starts there, as `enumerate_paths` takes it. A state
    reached that is not among `states` is a KeyError.
    """
    index = {state: i for i, state in enumerate(states)}
    T = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for reached, probability in enumerate_paths(kernel(state)).items():
            T[i, index[reached]] += probability
    return T


def compose(matrices: Sequence[Array], order: Sequence[int]) -> Array:
    """Return the transition matrix of steps `order[0]`, `order[1]`, ... one after another."""
    T = np.eye(len(matrices[0]))
    for i in order:
        T = T @ matrices[i]
    return T


def stationary(T: Array) -> Array:
    """Return the stationary law of a transition matrix that has just one.

    pi (T - I) = 0 with sum 1, solved by least squares, then polished by T itself.

    Raises
    ------
    ValueError
        The law is not unique, or was not found to rounding.
    """
    n = len(T)
    system = np.vstack(((T - np.eye(n)).T, np.ones(n)))
    pi, _, rank, _ = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=1e-12)
    if rank < n:
        raise ValueError("more than one stationary law")
    for _ in range(20):
        pi = pi @ T
        pi /= pi.sum()
    residual = float(np.abs(pi @ T - pi).sum())
    if residual > 1e-13 or float(pi.min()) < -1e-13:
        raise ValueError(f"stationary law found only to {residual:.1e}")
    return pi


# Where the two meet ------------------------------------------------------------------------------


def to_classes(states: Sequence[Columns], law: Array) -> dict[Columns, float]:
    """Return the law of the class of a matrix with the given law over `states`."""
    total: dict[Columns, float] = {}
    for state, probability in zip(states, law.tolist(), strict=True):
        total[class_of(state)] = total.get(class_of(state), 0.0) + probability
    return total


def lift(states: Sequence[Columns], law: Mapping[Columns, float]) -> Array:
    """Return the law over `states` in which all orders of a class are equally likely."""
    orders = Counter(class_of(state) for state in states)
    return np.array([law[class_of(s)] / orders[class_of(s)] for s in states])


def total_variation(p: Mapping[Columns, float], q: Mapping[Columns, float]) -> float:
    """Return half the sum of absolute differences of two laws."""
    return 0.5 * math.fsum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in {*p, *q})
