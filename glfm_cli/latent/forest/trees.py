"""Trees of some columns on all the others, and the laws of cells that their leaves are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from glfm_cli._kernels import _forest
from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.shapes import PARTS, parted
from glfm_cli.latent.model import take
from glfm_cli.links.law import CellLaw, NormalMixture, Probabilities

COLUMNS = ("root", "seed", "within", "slope", "scale")
NODES = ("feature", "threshold", "child")
LEAST_SHARE = 1e-3  # of a leaf's members at an atom, or beside it
LEAST_VARIANCE = 1e-3  # of y, whose variance in the column is about 1
FEWEST = 20  # observed cells of a column, from which its scale is found
SCALES = (0.2, 5.0)
SLOPE_SD = 0.5  # of a normal prior around 1
STEEPEST = 1.25


class Units(NamedTuple):
    """Rows that are left out of trees together, in some columns.

    rows : (N,) int32, those with the same number;  columns : (D,) bool
    """

    rows: Array
    columns: Array


@dataclass(frozen=True, eq=False)
class Trees:
    """Up to T trees of each of k columns, one behind the other (see the kernel).

    left_out : trees of a column that do not see a row
    root : (k, T) int32 first nodes, -1 behind those of columns with fewer trees or none
    seed : (k,) uint64, of which trees do not see which rows
    within : (k,) variance of numbers within leaves, all of a column's together
    slope : (k,) of values on what trees forecast, both as distances from the column's mean
    scale : (k,) by which the variances of laws are multiplied
    units : rows that are left out together; not kept with a fit, since only forecasts of observed
        cells by trees that have not seen them ask for it
    """

    left_out: int
    root: Array
    seed: Array
    within: Array
    slope: Array
    scale: Array
    feature: Array
    threshold: Array
    child: Array
    members: Array
    units: Units | None = field(default=None, kw_only=True)

    @property
    def size(self) -> Array:
        """Return how many members each node has, (n,) int64; 0 unless it is a leaf."""
        return np.where(self.feature < 0, self.threshold, 0.0).astype(np.int64)

    @property
    def fewest(self) -> Array:
        """Return how many members the smallest leaf of each column has, (k,) int64; 1 without."""
        found, grown = np.ones(len(self.root), dtype=np.int64), np.flatnonzero(self.root[:, 0] >= 0)
        if grown.size:  # nodes of a column stand together
            size = np.where(self.feature < 0, self.threshold, np.inf)
            found[grown] = np.minimum.reduceat(size, self.root[grown, 0])
        return found

    @property
    def count(self) -> Array:
        """Return how many trees each column has, (k,) int64."""
        return np.sum(self.root >= 0, axis=1)

    def of_column(
        self, k: int, z: Array, nominal: Array, rows: Array, own: Array, donors: Array
    ) -> _forest.ColumnTrees:
        """Return the trees number k, told whose cells they are to forecast, as of `law`."""
        root = self.root[k][self.root[k] >= 0]
        return _forest.ColumnTrees(
            *(z, nominal, rows, own, donors, root, int(self.seed[k]), self.left_out),
            *(self.feature, self.threshold, self.child, self.members, units_of(self.units, k)),
        )

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        arrays = {name: getattr(self, name) for name in (*COLUMNS, *NODES, "members")}
        return {"left_out": np.array(self.left_out, dtype=np.int64), **arrays}

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Array], columns: int, rows: int, *, features: int | None = None
    ) -> Trees:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing.

        features : columns that trees ask about, if not those that they are of
        """
        asked = columns if features is None else features
        root = take(arrays, "root", np.int32, (columns, None))
        seed = take(arrays, "seed", np.uint64, (columns,))
        within, slope, scale = (take(arrays, n, np.float64, (columns,)) for n in COLUMNS[2:])
        left_out = int(take(arrays, "left_out", np.int64, ()))
        feature = take(arrays, "feature", np.int32, (None,))
        threshold = take(arrays, "threshold", np.float32, feature.shape)
        child = take(arrays, "child", np.int32, feature.shape)
        members = take(arrays, "members", np.int32, (None,))
        node, leaf, first = np.arange(feature.size), feature < 0, child.astype(np.int64)
        inner = (first > node) & (first < feature.size - 1) & (feature < asked)
        whole = (threshold >= 1.0) & (threshold == np.floor(threshold))
        outer = (first >= 0) & whole & (first + threshold <= members.size) & (feature == -1)
        if not np.all(np.where(leaf, outer, inner)):
            raise ValueError("'feature', 'threshold' or 'child' does not make trees")
        if not root.shape[1] or np.any(root < -1) or np.any(root >= feature.size):
            raise ValueError("'root' is out of range")
        if np.any(members < 0) or np.any(members >= rows):
            raise ValueError("'members' is out of range")
        if np.any(within < 0.0) or np.any(scale <= 0.0):
            raise ValueError("'within' is below 0, or 'scale' not above")
        if np.any(slope < 0.0) or np.any(slope > STEEPEST):
            raise ValueError("'slope' is out of range")
        made = cls(left_out, root, seed, within, slope, scale, feature, threshold, child, members)
        n = made.count
        if np.any(root[np.arange(root.shape[1]) < n[:, None]] < 0):
            raise ValueError("'root' has gaps")
        if not 0 < left_out < np.min(n[n > 0], initial=root.shape[1]):
            raise ValueError("'left_out' is out of range")
        return made


def grow(
    z: Array,
    seen: Array,
    kinds: Kinds,
    columns: Sequence[int],
    n_trees: Array | int,
    left_out: int,
    least: Array,
    config: ForestConfig,
    rng: np.random.Generator,
    lines: Lines | None = None,
    without: Sequence[Array] | None = None,
    units: Units | None = None,
) -> Trees:
    """Return trees of some columns, in their order.

    z : (F, N) float64; every cell, missing ones as they were drawn, and inputs behind the columns
    seen : (D, N) uint8; which are observed: of others no tree is grown
    n_trees : of all columns alike, or (D,)
    left_out : trees of a column that do not see a row; by these `scale` is found. Without any they
        are trees to draw cells by, of which no law is asked for and `within` stays 1
    least : (D,) int64; members of a leaf, at least
    lines : columns that have one are forecast by what it leaves over
    without : of each column, others that are not asked about
    units : rows that are left out of the same trees, each by itself if left out
    """
    F, grown = z.shape[0], []
    trees = np.broadcast_to(n_trees, len(seen))
    root = np.full((len(columns), int(trees.max())), -1, dtype=np.int32)
    seed = rng.integers(2**64, size=len(columns), dtype=np.uint64)
    within, n_nodes, n_members = np.ones(len(columns)), 0, 0
    for k, d in enumerate(columns):
        donors = np.flatnonzero(seen[d]).astype(np.int32)
        if not donors.size:
            continue
        y = targets(z, d, lines)
        if donors.size > config.rows:
            donors = np.sort(rng.choice(donors, config.rows, replace=False))
        n_levels = int(kinds.levels[d]) if kinds.nominal[d] else 0
        fewest, T = int(least[d]), int(trees[d])
        gone = np.append(kinds.not_of(d), d)
        gone = gone if without is None else np.append(without[k], gone)
        others = np.delete(np.arange(F, dtype=np.int32), gone)
        most = T * (2 * (donors.size // fewest) + 3)
        feature, child = (np.empty(most, dtype=np.int32) for _ in range(2))
        threshold = np.empty(most, dtype=np.float32)
        members = np.empty(T * donors.size, dtype=np.int32)
        n, m = _forest.grow(
            *(z, kinds.nominal, n_levels, y[donors], donors, int(seed[k]), left_out),
            *(config.questions, config.thresholds, fewest, rng, root[k, :T]),
            feature,
            threshold,
            child,
            members,
            others,
            units_of(units, d),
        )
        if left_out and not kinds.levels[d]:
            starts = child[:n][feature[:n] < 0]
            within[k] = _within(y, starts, members[:m], float(kinds.atom[d]))
        root[k, :T] += n_nodes
        child[:n] += np.where(feature[:n] < 0, n_members, n_nodes).astype(np.int32)
        parts = feature[:n], threshold[:n], child[:n], members[:m]
        grown.append(tuple(part.copy() for part in parts))
        n_nodes, n_members = n_nodes + n, n_members + m
    if not grown:
        none = np.empty(0, dtype=np.int32)
        grown = [(none, np.empty(0, dtype=np.float32), none, none)]
    arrays = (np.concatenate(part) for part in zip(*grown, strict=True))
    ones = np.ones(len(columns))
    return Trees(left_out, root, seed, within, ones, ones, *arrays, units=units)


def draw_cells(
    z: Array,
    kinds: Kinds,
    d: int,
    rows: Array,
    own: Array,
    donors: Array,
    trees: Trees,
    k: int,
    rng: np.random.Generator,
    base: Array | None = None,
    middle: float = 0.0,
) -> None:
    """Draw cells of column d of z (D, n_rows) from donors, by the trees number k, in place.

    base : (n,) what a line forecasts of them, to which donors add what it left over of theirs
    middle : share of them that are given the median of three donors (see `leaves`)
    """
    if trees.root[k, 0] >= 0:
        of = trees.of_column(k, z, kinds.nominal, rows, own, donors)
        _forest.draw_cells(of, d, z, middle, float(kinds.atom[d]), rng)
        if base is not None:
            z[d, rows] = (z[d, rows] + base).astype(np.float32)


class Whole(NamedTuple):
    """A column as a whole: how many cells of it are observed, and what they are.

    middle, share : of numbers their mean, atoms aside, 0 where there are none; the atom's share
    p : (R,) of levels their shares, a little of each
    """

    seen: int
    middle: float
    share: float
    p: Array

    @classmethod
    def of(cls, donors: Array, kinds: Kinds, d: int) -> Whole:
        """Return column d by its donors, as `law` has them. O(N)."""
        seen, R, atom = donors[~np.isnan(donors)], int(kinds.levels[d]), float(kinds.atom[d])
        if R:
            p: Array = np.bincount(seen.astype(np.intp), minlength=R) + 1.0 / R
            return cls(seen.size, 0.0, 0.0, p / p.sum())
        beside = seen[seen != atom]
        middle = float(beside.mean()) if beside.size else 0.0
        share = float(np.mean(seen == atom)) if seen.size else 0.0
        return cls(seen.size, middle, share, np.empty(0))


def law(
    z: Array, rows: Array, own: Array, donors: Array, kinds: Kinds, d: int, trees: Trees, k: int,
    prior: float, base: Array | None = None, whole: Whole | None = None,
) -> CellLaw:  # fmt: skip
    """Return the law of cells of column d, by the trees number k.

    z : (D, n_rows) float64; the rows, all of whose cells are filled
    rows : (n,) int; which of them are meant
    own : (n,) int32; the row of the fit that a row is, where its cell is a donor itself, else -1
    donors : (N,) float64; what the trees forecast in the rows of the fit, the column or what a line
        leaves over of it, NaN where it was not observed
    prior : members of a leaf that the column as a whole is worth
    base : (n,) what that line forecasts
    whole : the column, where that is known; donors that were not observed may then be any number
    """
    n, R, whole = rows.size, int(kinds.levels[d]), whole or Whole.of(donors, kinds, d)
    if R:
        if not whole.seen:
            return Probabilities(np.tile(whole.p, (n, 1)))
        p = np.empty((n, R))
        of = trees.of_column(k, z, kinds.nominal, rows, own, donors)
        _forest.fill_levels(of, prior, whole.p, p)
        return Probabilities(p)
    parts = np.zeros((n, PARTS if np.any(own < 0) else 1, 2))
    if not whole.seen:
        found = np.tile([0.0, 1.0, 0.0, 0.5, 1.0], (n, 1))
    else:
        found = moments(z, rows, own, donors, kinds, d, trees, k, prior, whole, parts)
    mean, within, between, share, _ = found.T
    atom, middle = float(kinds.atom[d]), whole.middle
    mean = middle + trees.slope[k] * (mean - middle)
    mean = mean if base is None else mean + base
    var = trees.scale[k] * (within + between) - kinds.noise[d]
    mean, var = parted(mean, np.maximum(var, LEAST_VARIANCE), parts)
    mean, var = mean[:, :, None], var[:, :, None]
    if not np.isnan(atom):
        probit = ndtri(np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE))[:, None, None]
        mean = np.concatenate([np.broadcast_to(probit, mean.shape), mean], axis=2)
        var = np.concatenate([np.ones_like(var), var], axis=2)
    return NormalMixture(np.full((1, mean.shape[1]), 1.0 / mean.shape[1]), mean, var)


def moments(
    z: Array, rows: Array, own: Array, donors: Array, kinds: Kinds, d: int, trees: Trees, k: int,
    prior: float, whole: Whole, parts: Array | None = None,
) -> Array:  # fmt: skip
    """Return what trees say of numbers (n, 5), as the kernel has it, arguments those of `law`.

    parts : (n, C, 2), filled with what the kernel says of parts of the members
    """
    out = np.empty((rows.size, 5))
    parts = np.empty((rows.size, 0, 2)) if parts is None else parts
    of = trees.of_column(k, z, kinds.nominal, rows, own, donors)
    within, atom = float(trees.within[k]), float(kinds.atom[d])
    _forest.fill_moments(of, prior, whole.middle, within, atom, whole.share, out, parts)
    return out


def units_of(units: Units | None, d: int) -> Array:
    """Return by which (N,) rows are left out of trees of column d together, (0,): by none."""
    if units is None or not units.columns[d]:
        return np.empty(0, dtype=np.int32)
    return units.rows


def targets(z: Array, d: int, lines: Lines | None) -> Array:
    """Return what trees of column d forecast (N,): its cells, or what its line leaves over."""
    here: Array = z[d] if lines is None or lines.place[d] < 0 else lines.left_over(d)
    return here


def scaled(
    trees: Trees, z: Array, seen: Array, kinds: Kinds, prior: float, lines: Lines | None = None,
    told: Array | None = None,
) -> Trees:  # fmt: skip
    """Return trees of every column whose laws are right for observed cells they have not seen.

    told : (D, N) bool; which of the observed cells count, if not all: the others are donors alone

    What a forecast is of is the mean over trees of many draws, of which the mean of few trees that
    have not seen a cell tells with an error: `spare` is the variance of one tree's mean. By that
    mean, y - its mean = slope (forecast - its mean) + error, least squares with a normal prior;
    and the variance of a law is what the error's is, less that between the means of draws.
    """
    slope, scale = np.ones(len(seen)), np.ones(len(seen))
    count, of = trees.count, seen != 0 if told is None else told
    for d in np.flatnonzero((kinds.levels[: len(of)] == 0) & (of.sum(axis=1) >= FEWEST)).tolist():
        rows = np.flatnonzero(of[d] & (z[d] != kinds.atom[d]))
        y = targets(z, d, lines)
        donors = np.where(seen[d], y, np.nan)
        if not rows.size:
            continue
        whole = Whole.of(donors, kinds, d)
        found = moments(z, rows, rows.astype(np.int32), donors, kinds, d, trees, d, prior, whole)
        mean, within, between, _, heard = found.T
        spare = between * heard / np.maximum(heard - 1.0, 1.0)
        forecast, y = mean - whole.middle, y[rows] - whole.middle
        weight = float(np.mean((y - forecast) ** 2)) / SLOPE_SD**2  # of the prior
        signal = float(np.sum(forecast**2 - spare / heard))
        if signal + weight > 0.0:
            slope[d] = np.clip((y @ forecast + weight) / (signal + weight), 0.0, STEEPEST)
        share = 1.0 / count[d]
        error = (y - slope[d] * forecast) ** 2 - slope[d] ** 2 * spare * (1.0 / heard + share)
        total = float(np.sum(within + spare * (1.0 - share)))
        if total > 0.0:
            scale[d] = np.clip(float(np.sum(error)) / total, *SCALES)
    return replace(trees, slope=slope, scale=scale)


def _within(y: Array, starts: Array, members: Array, atom: float) -> float:
    """Return the variance of y that the leaves of some trees leave over, atoms aside.

    It is 0 of leaves of one member each, whose noise is between trees.
    """
    start = np.sort(starts)
    x = y[members]
    beside = x != atom
    mean = np.add.reduceat(np.where(beside, x, 0.0), start)
    number = np.add.reduceat(beside.astype(np.float64), start)
    mean /= np.maximum(number, 1.0)
    away = np.where(beside, x - np.repeat(mean, np.diff(np.append(start, x.size))), 0.0)
    freedom = float(np.maximum(number - 1.0, 0.0).sum())
    unknown = 1.0 if x.size < FEWEST else 0.0
    return float(away @ away) / freedom if freedom > 0.0 else unknown
