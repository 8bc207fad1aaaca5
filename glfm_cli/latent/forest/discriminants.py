"""Linear discriminants of levels, whose probabilities are mixed with those of trees.

The indicator of every level, or the code of two levels or of ordered ones, is regressed on all
other columns by a ridge [Hastie and others 2009, sections 4.2 and 4.3]. What the regressions
forecast of observed cells, each without its row, are scores in a multinomial logistic regression
with one slope, and an intercept for each level: of ordered levels with adjacent-category logits
[Agresti 2013, chapter 8].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.lines import BLOCK, LEAST_FREE, ROWS, Inputs, ridges
from glfm_cli.latent.model import take
from glfm_cli.links.law import Probabilities

MOST_LEVELS = 30  # of columns with more there are none
STEPS, HALVINGS = 30, 20  # of Newton's method, and of one of its steps, at most
SLOPE_SD = 2.0  # of a normal prior of the slope around 1, which is that of weak discriminants
NAMES = ("of", "share", "weight", "unit", "add", "leverage")


@dataclass(frozen=True, eq=False)
class Discriminant:
    """That of one column, of R levels by K scores: one, or one of each level.

    share : of it in the forecast, of trees the rest
    weight : (K, P + 1) float64, of the inputs, 0 of the column's own, and what is added
    unit : (K,) float64, by which a score counts in logits
    add : (R,) float64, the logits of scores of 0
    leverage : (N,) float32, of observed cells by which it was fitted, 0 of others; NaN: missing
    """

    share: float
    weight: Array
    unit: Array
    add: Array
    leverage: Array

    def log_p(self, x: Array, code: Array, leverage: Array) -> Array:
        """Return log probabilities (n, R) of rows with inputs x (n, P), each without its level.

        code, leverage : (n,) levels, and leverages in the fit, 0 of rows that had no part in it
        """
        score = x @ self.weight[:, :-1].T + self.weight[:, -1]
        y, h = indicators(code, self.unit.size), leverage[:, None]
        score = y - (y - score) / np.maximum(1.0 - h, LEAST_FREE)
        log_p: Array = log_softmax(self.add + spread(score * self.unit, self.add.size), axis=1)
        return log_p


def indicators(code: Array, K: int) -> Array:
    """Return what is regressed (n, K): the codes themselves, or an indicator of each level."""
    return code[:, None] if K == 1 else (code[:, None] == np.arange(K)).astype(np.float64)


def spread(score: Array, R: int) -> Array:
    """Return what scores (n, K) add to the logits (n, R) of levels."""
    return score * np.arange(R) if score.shape[1] == 1 else score


def discriminant(x: Array, code: Array, R: int, *, ordered: bool) -> tuple[Array, ...]:
    """Return slopes (K, P), what is added to scores (K,), units, intercepts, and leverages (n,).

    x, code : (n, P) inputs, and (n,) the levels of their rows
    """
    K = 1 if ordered or R == 2 else R
    y = indicators(code, K)
    mean, slopes, leverage = ridges(x, y)
    free = np.maximum(1.0 - leverage, LEAST_FREE)[:, None]
    score = y - (y - x @ slopes - mean) / free
    share = (np.bincount(code.astype(np.intp), minlength=R) + 1.0 / R) / (code.size + 1.0)
    middle = share if K > 1 else np.array([share @ np.arange(R)])
    # A score counts as in a weak discriminant, of which the slope is 1.
    variance = share * (1.0 - share) if K > 1 else np.array([share @ (np.arange(R) - middle) ** 2])
    slope, intercepts = logistic(spread((score - middle) / variance, R), code.astype(np.intp))
    unit = slope / variance
    add = intercepts - spread((unit * middle)[None], R)[0]
    return slopes.T, mean, unit, add, leverage


def logistic(score: Array, code: Array) -> tuple[float, Array]:
    """Return the slope, at least 0, and intercepts (R,) of a multinomial logistic regression.

    score : (n, R) of each level in each row, its logit but for slope and intercept
    code : (n,) the row's level

    A row of score 0 is added whose level is any, and a normal prior of the slope: the log posterior
    is concave, and its maximum found by Newton's method.
    """
    R = score.shape[1]
    rows = np.vstack([score, np.zeros(R)])
    y = np.vstack([np.eye(R)[code], np.full(R, 1.0 / R)])

    def loss(at: Array) -> float:
        prior = 0.5 * ((at[R] - 1.0) / SLOPE_SD) ** 2
        return float(prior - np.sum(y * log_softmax(at[:R] + at[R] * rows, axis=1)))

    at = np.append(np.log(y.mean(axis=0)), 1.0)
    lost = loss(at)
    for _ in range(STEPS):
        p = softmax(at[:R] + at[R] * rows, axis=1)
        off, mean = p - y, np.sum(p * rows, axis=1, keepdims=True)
        slope = np.sum(off * rows) + (at[R] - 1.0) / SLOPE_SD**2
        gradient = np.append(off.sum(axis=0), slope)
        hessian = np.empty((R + 1, R + 1))
        hessian[:R, :R] = np.diag(p.sum(axis=0)) - p.T @ p + 1.0 / R  # logits have a common level
        hessian[R, :R] = hessian[:R, R] = np.sum(p * (rows - mean), axis=0)
        hessian[R, R] = np.sum(p * (rows - mean) ** 2) + 1.0 / SLOPE_SD**2
        step = np.linalg.solve(hessian, gradient)
        for half in range(HALVINGS):
            new = at - step / 2**half
            if (tried := loss(new)) <= lost:
                break
        else:
            break
        gained, at, lost = lost - tried, new, tried
        if gained <= 1e-9 * (1.0 + lost):
            break
    return max(float(at[R]), 0.0), at[:R]


@dataclass(frozen=True, eq=False)
class Discriminants:
    """Those of some columns of levels.

    of : by column
    """

    inputs: Inputs
    of: Mapping[int, Discriminant]

    @classmethod
    def fit(
        cls,
        z: Array,
        seen: Array,
        kinds: Kinds,
        share: Array,
        rng: np.random.Generator,
        *,
        most: int = ROWS,
    ) -> Discriminants:
        """Return those of columns with observed cells that have a share, each on all but itself.

        z, seen, most : as `Lines.fit` has them
        share : (D,) float64, of each column
        """
        inputs, found = Inputs.of(kinds), {}
        for d in np.flatnonzero(share).tolist():
            rows = np.flatnonzero(seen[d])
            leverage = np.where(seen[d] != 0, 0.0, np.nan).astype(np.float32)
            if rows.size > most:
                rows = np.sort(rng.choice(rows, most, replace=False))
            on, R = inputs.column != d, int(kinds.levels[d])
            x = inputs.see(z[:, rows])[:, on]
            by = discriminant(x, z[d, rows], R, ordered=not kinds.nominal[d])
            slopes, mean, unit, add, leverage[rows] = by
            weight = np.zeros((unit.size, on.size + 1))
            weight[:, :-1][:, on], weight[:, -1] = slopes, mean
            found[d] = Discriminant(float(share[d]), weight, unit, add, leverage)
        return cls(inputs, found)

    def log_p(self, d: int, z: Array, rows: Array, own: Array) -> Array:
        """Return log probabilities (n, R) of the levels of column d in some rows of z (D, n_rows).

        own : (n,) int32, the row of the fit that each is, whose cell is left out; or -1
        """
        one = self.of[d]
        found = np.empty((rows.size, one.add.size))
        for start in range(0, rows.size, BLOCK):
            block = slice(start, start + BLOCK)
            at, donor = rows[block], own[block]
            leverage = np.where(donor < 0, 0.0, one.leverage[donor])
            found[block] = one.log_p(self.inputs.see(z[:, at]), z[d, at], leverage)
        return found

    def mixed(self, d: int, law: Probabilities, z: Array, rows: Array, own: Array) -> Probabilities:
        """Return what trees say of column d in some rows, mixed with what its discriminant says.

        z, rows, own : as `log_p` has them
        """
        share = self.of[d].share
        return Probabilities((1.0 - share) * law.p + share * np.exp(self.log_p(d, z, rows, own)))

    def draw(self, d: int, z: Array, rows: Array, own: Array, rng: np.random.Generator) -> None:
        """Draw cells of column d, each with the probability of its share, in place.

        z, rows, own : as `log_p` has them, of cells that were drawn by trees
        """
        if d in self.of:
            its = rng.random(rows.size) < self.of[d].share
            p = np.exp(self.log_p(d, z, rows, own))
            z[d, rows[its]] = Probabilities(p[its]).sample(rng)

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays; none where no column has one."""
        if not self.of:
            return {}
        parts = {"of": np.array(list(self.of), dtype=np.int32)}
        parts["share"] = np.array([one.share for one in self.of.values()])
        for name in NAMES[2:]:
            parts[name] = np.concatenate([getattr(one, name) for one in self.of.values()])
        return {f"level_{name}": part for name, part in parts.items()}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], kinds: Kinds, rows: int) -> Discriminants:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        inputs = Inputs.of(kinds)
        if not {f"level_{name}" for name in NAMES} & set(arrays):
            return cls(inputs, {})
        of = take(arrays, "level_of", np.int32, (None,))
        if not of.size or np.any(np.diff(of) <= 0) or of[0] < 0 or of[-1] >= kinds.levels.size:
            raise ValueError("'level_of' are no columns")
        if not may_have(kinds)[of].all():
            raise ValueError("'level_of' is of a column that can have no discriminant")
        R = kinds.levels[of].astype(np.int64)
        K = np.where((kinds.nominal[of] != 0) & (R > 2), R, 1)
        share = take(arrays, "level_share", np.float64, of.shape)
        if np.any(share <= 0.0) or np.any(share > 1.0):
            raise ValueError("'level_share' is out of range")
        weight = take(arrays, "level_weight", np.float64, (int(K.sum()), inputs.column.size + 1))
        unit = take(arrays, "level_unit", np.float64, (int(K.sum()),))
        add = take(arrays, "level_add", np.float64, (int(R.sum()),))
        leverage = take(arrays, "level_leverage", np.float32, (of.size * rows,))
        if np.any(leverage < 0.0) or np.any(leverage > 1.0 + 1e-6):
            raise ValueError("'level_leverage' is out of range")
        scores, levels = np.cumsum(K)[:-1], np.cumsum(R)[:-1]
        parts = zip(
            share.tolist(),
            np.split(weight, scores),
            np.split(unit, scores),
            np.split(add, levels),
            leverage.reshape(of.size, rows),
            strict=True,
        )
        return cls(inputs, {int(d): Discriminant(*part) for d, part in zip(of, parts, strict=True)})


def may_have(kinds: Kinds) -> Array:
    """Return which columns (D,) may have one: those of some levels."""
    some = (kinds.levels > 1) & (kinds.levels <= MOST_LEVELS)
    return np.asarray(some & (not Inputs.of(kinds).too_many))
