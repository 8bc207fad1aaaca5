"""A snapshot: the rows with their missing cells as drawn, and trees of every column on the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import log_ndtr, ndtri

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.far import Far
from glfm_cli.latent.forest.intervals import Ends, draw_inside
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.related import RelatedRows
from glfm_cli.latent.forest.trees import Trees, Whole, draw_cells, law
from glfm_cli.latent.forest.twins import Alone, draw_group
from glfm_cli.latent.model import Sizes, take
from glfm_cli.links.law import ALL, CellLaw, Normal, NormalMixture, Probabilities

SURE = 1e-12  # probability of what is not so; variance of what is given
MOST_LEVELS = 1 << 24


@dataclass(frozen=True, eq=False)
class ForestDraw:
    """What a column is predicted from under one draw.

    lines : of some columns, of which trees forecast what these leave over
    alone : trees and lines that forecast cells whose twins are missing in their rows
    middle : (D,) share of cells that are given the median of three donors
    donors, seen : (D, N) float64 and uint8, cells of the fit, and which of them were observed
    z, known : (D, n) the same of the rows at hand
    prior : members of a leaf that the column as a whole is worth
    own : (n,) int32, the row of the fit that a row is, -1 of a new one
    is_far : (D, n) bool, which cells are forecast by `far`; (0, n) without
    related : rows that belong together, of which some inputs of trees tell
    far : trees and lines of cells that nobody near tells of
    wholes : what `whole_of` has found, of all rows together, for the draws of some of them
    """

    kinds: Kinds
    prior: float
    trees: Trees
    lines: Lines
    alone: Alone
    middle: Array
    donors: Array
    seen: Array
    z: Array
    known: Array
    own: Array
    is_far: Array
    related: RelatedRows | None = None
    far: Far | None = None
    wholes: dict[tuple[int, str], Whole] = field(default_factory=dict)

    def donors_of(self, d: int, lines: Lines) -> Array:
        """Return what trees of column d forecast (N,) in the rows of the fit; any of no donor."""
        return self.donors[d] if lines.place[d] < 0 else lines.left_over(d)

    def whole_of(self, d: int, lines: Lines) -> Whole:
        """Return column d as a whole, or what its line leaves over: the same for all rows."""
        which = "lines" if lines is self.lines else "alone" if lines is self.alone.lines else "far"
        of = d, "cells" if lines.place[d] < 0 else which
        if of not in self.wholes:
            donors = np.where(self.seen[d], self.donors_of(d, lines), np.nan)
            self.wholes[of] = Whole.of(donors, self.kinds, d)
        return self.wholes[of]

    def base(self, d: int, rows: Array, own: Array, lines: Lines) -> Array | None:
        """Return what the line of column d, if it has one, forecasts (n,) of some rows.

        own : (n,) int32, the donor that each is, or -1. From its forecast is taken what its cell
            added to that of itself: other cells of the row may be drawn anew, without that cell
        """
        if lines.place[d] < 0:
            return None
        base, its = lines.forecast(d, self.z, rows), np.flatnonzero(own >= 0)
        donor = own[its]
        without = self.donors[d][donor] - lines.left_of(d, donor)
        base[its] += without - lines.forecast(d, self.donors, donor)
        return base

    def own_donor(self, d: int, rows: Array) -> Array:
        """Return (n,) int32 the donor of column d that each of some rows is, or -1."""
        own = self.own[rows]
        return np.where((own >= 0) & (self.seen[d][own] != 0), own, -1).astype(np.int32)

    def folded(
        self,
        z: Array,
        own: Array,
        ends: Ends,
        sweeps: int,
        rng: np.random.Generator,
        groups: Groups | None = None,
    ) -> ForestDraw:
        """Return that of other rows (D, n), NaN where missing: drawn in so many inner sweeps."""
        missing, D, z = np.isnan(z), len(z), z.copy()
        is_far = np.zeros((0, z.shape[1]), dtype=bool)
        if self.related is not None:
            assert groups is not None
            found = self.related.of_new(self.donors[:D], self.seen, z, own, groups, self.kinds)
            z, is_far = np.concatenate([z, found.inputs]), found.far
        known = (~missing).astype(np.uint8)
        new = replace(self, z=z, known=known, own=own, is_far=is_far)
        # All cells of one donor, which agree, as columns that nearly say the same must.
        donor = rng.integers(self.donors.shape[1], size=z.shape[1])
        z[:D][missing] = self.donors[:D, donor][missing]
        new.sweep(ends, sweeps, rng)
        return new

    def sweep(self, ends: Ends, times: int, rng: np.random.Generator) -> None:
        """Draw missing cells and intervals in place, by columns, so many times."""
        places = {d: np.flatnonzero(known == 0) for d, known in enumerate(self.known)}
        drawn = [d for d, at in places.items() if at.size or d in ends]
        for _ in range(times):
            for d in drawn:
                together = np.flatnonzero(self.alone.rows(d, self.known) & (self.known[d] == 0))
                if together.size:
                    group = np.append(d, self.alone.twins[d])
                    by = self.donors, self.alone.trees, d, self.alone.lines
                    draw_group(self.z, self.kinds, d, group, together, *by, rng)
                for rows, trees, lines in self.parts(d, places[d]):
                    own = self.own_donor(d, rows)
                    cells = rows, own, self.donors_of(d, lines), trees, d
                    base = self.base(d, rows, own, lines)
                    draw_cells(self.z, self.kinds, d, *cells, rng, base, float(self.middle[d]))
                if d in ends:
                    at, low, high = ends[d]
                    self.z[d, at] = draw_inside(ForestLaw(self, at).column(d), low, high, rng)

    def parts(self, d: int, rows: Array) -> list[tuple[Array, Trees, Lines]]:
        """Return some rows with the trees and lines that forecast their cells of column d."""
        if self.far is None or not self.is_far[d][rows].any():
            return [(rows, self.trees, self.lines)]
        far = self.is_far[d][rows]
        return [(rows[~far], self.trees, self.lines), (rows[far], self.far.trees, self.far.lines)]

    def again(self, rows: Array, rng: np.random.Generator) -> ForestDraw:
        """Return that of some rows, each missing cell drawn once more from its law, in turn.

        That is its law given all others as they were drawn, twins among them; where a row has none
        of these, all are drawn from one donor before.
        """
        z, known = self.z.take(rows, axis=1), self.known.take(rows, axis=1)
        is_far = self.is_far.take(rows, axis=1)
        new = replace(self, z=z, known=known, own=self.own[rows], is_far=is_far)
        left = known == 0
        for d in np.flatnonzero(left.any(axis=1)).tolist():
            at = np.flatnonzero(self.alone.rows(d, known) & left[d])
            group = np.append(d, self.alone.twins[d])
            if at.size:
                by = self.donors, self.alone.trees, d, self.alone.lines
                draw_group(z, self.kinds, d, group, at, *by, rng)
            left[np.ix_(group, at)] = False
        for d in np.flatnonzero((known == 0).any(axis=1)).tolist():
            at = np.flatnonzero(known[d] == 0)
            z[d][at] = _sample(ForestLaw(new, at).given_all(d, at), float(self.kinds.atom[d]), rng)
        return new

    def log_likelihood(self, at_most: int) -> float:
        """Return the sum over observed cells of log p(y | all others), by some of the rows.

        Of a cell at its column's atom, and of one beside it, the probability of that alone.
        """
        n = self.own.size
        rows = np.arange(0, n, -(-n // at_most))
        total = 0.0
        of_rows = ForestLaw(self, rows)
        for d, z in enumerate(self.z[: len(self.known), rows]):
            law, known, atom = of_rows.column(d), self.known[d][rows] != 0, self.kinds.atom[d]
            if isinstance(law, Probabilities):
                log_p = law.log_p(z)
            else:
                assert isinstance(law, NormalMixture)
                log_p = law.log_average(partial(_log_normal, z, z == atom))
            total += float(log_p[known].sum())
        return total * n / rows.size

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays; of the rows of a fit."""
        kinds = {
            "levels": self.kinds.levels,
            "nominal": self.kinds.nominal,
            "atom": np.nan_to_num(self.kinds.atom),
            "noise": self.kinds.noise,
        }
        D = self.kinds.n_columns
        kinds = {name: part[:D] for name, part in kinds.items()}
        own = {"cells": self.donors[:D], "seen": self.seen}
        if self.related is not None and self.far is not None:
            inputs, is_far = self.donors[D:].astype(np.float32), self.is_far.astype(np.uint8)
            own |= self.related.pack() | {"related": inputs, "is_far": is_far} | self.far.pack()
        own |= {"prior": np.array(self.prior), "middle": self.middle}
        trees = {**self.trees.pack(), **self.lines.pack(), **self.alone.pack()}
        return {**kinds, **own, **trees}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], sizes: Sizes) -> ForestDraw:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such snapshot."""
        D, N = sizes.columns, sizes.rows
        levels = take(arrays, "levels", np.int32, (D,))
        nominal = take(arrays, "nominal", np.uint8, (D,))
        atom, noise = (take(arrays, name, np.float64, (D,)) for name in ("atom", "noise"))
        width = np.array([end - start for start, end in sizes.spans])
        if np.any(levels < 0) or np.any(levels > MOST_LEVELS) or np.any(nominal > (levels > 0)):
            raise ValueError("'levels' or 'nominal' is out of range")
        apart = (levels == 0) & (width == 2)
        kinds = Kinds(levels, nominal, np.where(apart, atom, np.nan), noise)
        z = take(arrays, "cells", np.float64, (D, N))
        seen = take(arrays, "seen", np.uint8, (D, N))
        related, far, is_far = RelatedRows.unpack(arrays, D, N), None, np.zeros((0, N), dtype=bool)
        if related is not None:
            kinds, for_far = related.kinds(kinds)
            inputs = take(arrays, "related", np.float32, (kinds.about.size, N))
            z = np.concatenate([z, inputs])
            is_far = take(arrays, "is_far", np.uint8, (D, N)) != 0
            far = Far.unpack(arrays, for_far, N)
            grown = far.trees.count > 0
            if np.any(grown != (related.two & seen.any(axis=1))) or np.any(is_far[~related.two]):
                raise ValueError("'two' or 'is_far' has no trees")
        check_cells(z, kinds)
        prior = float(take(arrays, "prior", np.float64, ()))
        if np.any(seen > 1) or not prior > 0.0 or np.any(noise < 0.0):
            raise ValueError("'seen', 'prior' or 'noise' is out of range")
        trees = Trees.unpack(arrays, D, N, features=len(z))
        lines, alone = Lines.unpack(arrays, kinds, N), Alone.unpack(arrays, kinds, N)
        twins = np.array([own.size > 0 for own in alone.twins], dtype=bool)
        for made, of in ((trees, np.ones(D, dtype=bool)), (alone.trees, twins)):
            if np.any(seen.any(axis=1) & of & (made.count == 0)):
                raise ValueError("'root' has no trees of a column")
        of_fit = z, seen, z, seen, np.arange(N, dtype=np.int32)
        by = trees, lines, alone, middle_of(arrays, D)
        return cls(kinds, prior, *by, *of_fit, is_far, related, far)


def middle_of(arrays: Mapping[str, Array], columns: int) -> Array:
    """Return which share of the cells of each column is given the median of three donors."""
    middle = take(arrays, "middle", np.float64, (columns,))
    if not np.all((middle >= 0.0) & (middle <= 1.0)):
        raise ValueError("'middle' is out of range")
    return middle


def check_cells(z: Array, kinds: Kinds) -> None:
    """Raise ValueError unless cells (D, n) of levels are codes of levels."""
    of = kinds.levels > 0
    codes = z[of]
    if np.any(codes != np.floor(codes)) or np.any(codes < 0):
        raise ValueError("a cell is no code of a level")
    if np.any(codes >= kinds.levels[of][:, None]):
        raise ValueError("a cell is no code of a level")


class ForestLaw:
    """Cells of some rows under one draw; `drawn` makes those that were missing what was drawn."""

    def __init__(self, draw: ForestDraw, rows: Array, *, drawn: bool = False) -> None:
        self.draw, self.rows, self.drawn = draw, rows, drawn

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the cells of column `d`, of the rows `at` among those asked for."""
        draw, rows = self.draw, np.ascontiguousarray(self.rows[at], dtype=np.intp)
        found = self.given_all(d, rows)
        alone = np.flatnonzero(draw.alone.rows(d, draw.known[:, rows]))
        if alone.size:
            by = draw.alone.trees, draw.alone.lines
            found = _put(found, alone, self._by(d, rows[alone], *by))
        if not self.drawn:
            return found
        given = draw.known[d][rows] == 0
        return _given(found, draw.z[d][rows], given, float(draw.kinds.atom[d]))

    def given_all(self, d: int, rows: Array) -> CellLaw:
        """Return the law of cells of column d given all others of their rows."""
        draw = self.draw
        found = self._by(d, rows, draw.trees, draw.lines)
        if draw.far is None or not draw.is_far[d][rows].any():
            return found
        far = np.flatnonzero(draw.is_far[d][rows])
        return _put(found, far, self._by(d, rows[far], draw.far.trees, draw.far.lines))

    def _by(self, d: int, rows: Array, trees: Trees, lines: Lines) -> CellLaw:
        draw = self.draw
        own, donors = draw.own_donor(d, rows), draw.donors_of(d, lines)
        base = draw.base(d, rows, own, lines)
        whole = draw.whole_of(d, lines)
        return law(draw.z, rows, own, donors, draw.kinds, d, trees, d, draw.prior, base, whole)


def _put(law: CellLaw, at: Array, other: CellLaw) -> CellLaw:
    """Return a law in which some cells have another one, of the same column."""
    if isinstance(law, Probabilities):
        assert isinstance(other, Probabilities)
        p = law.p.copy()
        p[at] = other.p
        return Probabilities(p)
    assert isinstance(law, NormalMixture)
    assert isinstance(other, NormalMixture)
    means, variances = law.means.copy(), law.variances.copy()
    means[at], variances[at] = other.means, other.variances
    return NormalMixture(law.weights, means, variances)


def _log_normal(z: Array, is_atom: Array, part: Normal) -> Array:
    """Return log p(z) under one normal a cell, or that of the atom, or of none, by the first."""
    mean, var = part.mean[:, -1], part.variances[:, -1]
    log_p: Array = -0.5 * ((z - mean) ** 2 / var + np.log(2.0 * np.pi * var))
    if part.mean.shape[1] == 2:
        log_p = log_ndtr(np.where(is_atom, 1.0, -1.0) * part.mean[:, 0])
    return log_p


def _sample(law: CellLaw, atom: float, rng: np.random.Generator) -> Array:
    """Return cells (n,) of a column drawn from their law."""
    if isinstance(law, Probabilities):
        return law.sample(rng)
    assert isinstance(law, NormalMixture)
    part = law.pick(rng)
    drawn: Array = part.mean + np.sqrt(part.variances) * rng.standard_normal(part.mean.shape)
    return drawn[:, -1] if np.isnan(atom) else np.where(drawn[:, 0] > 0.0, atom, drawn[:, -1])


def _given(law: CellLaw, z: Array, given: Array, atom: float) -> CellLaw:
    """Return a law in which some cells are what z (n,) says."""
    if isinstance(law, Probabilities):
        sure = z[given, None] == np.arange(law.p.shape[1])
        p = law.p.copy()
        p[given] = sure
        return Probabilities(p)
    assert isinstance(law, NormalMixture)
    means, variances = law.means.copy(), np.broadcast_to(law.variances, law.means.shape).copy()
    means[given, :, -1] = np.where(z == atom, 0.0, z)[given, None]
    variances[given, :, -1] = SURE
    if means.shape[2] == 2:
        means[given, :, 0] = ndtri(np.where(z == atom, 1.0 - SURE, SURE))[given, None]
    return NormalMixture(law.weights, means, variances)
