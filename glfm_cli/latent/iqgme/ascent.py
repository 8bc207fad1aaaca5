"""One start under way: iterations that raise the bound, and moves to fewer experts.

Iterations move experts a little at a time. That two of them could be one, or that one's rows would
be as well off with the others, they do not find, since on the way there the bound falls: where
they no longer raise it, such moves are tried, and kept where the bound is higher after them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme.forms import Form
from glfm_cli.latent.iqgme.prior import MOST_BOTH, IqgmeConfig
from glfm_cli.latent.iqgme.rows import KnownRows
from glfm_cli.latent.iqgme.sticks import by_size

EMPTY = 1e-4  # rows of an expert that has none
FALL = 1e-8  # relative fall of the bound that is more than rounding
LOOSE = 1e-5  # the same where what gaps do to several utilities is integrated by quadrature
TRIALS = 4  # joins, and removals, that do not raise the bound before no more are tried
SETTLE = 2  # iterations at most in which rows settle before a move is judged
TINY = 1e-300


@dataclass(eq=False)
class CoordinateAscent(ABC):
    """One start under way; q of the rows is always renewed for its experts.

    sums : over the rows, as the experts' updates need them
    bounds : after every iteration
    quiet : iterations, twice running, that hardly raised the bound
    moved : whether moves to fewer experts have been made since it last settled
    tried : whether all have been tried since then, in vain
    free : iterations in which (zeta, lam) stay as they were at the start
    """

    experts: Any  # of the form's kind, as the sums
    sums: Any = field(default=None, kw_only=True)
    bounds: list[float] = field(default_factory=list, kw_only=True)
    quiet: int = field(default=0, kw_only=True)
    moved: bool = field(default=False, kw_only=True)
    tried: bool = field(default=False, kw_only=True)
    free: int = field(default=0, kw_only=True)

    @property
    def converged(self) -> bool:
        """Return whether the bound has stopped rising and no expert can be spared."""
        return self.quiet >= 2 and self.tried

    def step(
        self, data: Any, form: Form, config: IqgmeConfig, pool: ThreadPoolExecutor | None = None
    ) -> None:
        """Iterate, or move to fewer experts, until there is a new bound, or none is to be had.

        data : the rows, or those of every task
        """
        made = len(self.bounds)
        while len(self.bounds) == made and not self.converged:
            if self.quiet >= 2:
                self._simplify(data, form, config, pool)
            else:
                self._iterate(data, form, config, pool)

    def _iterate(
        self, data: Any, form: Form, config: IqgmeConfig, pool: ThreadPoolExecutor | None
    ) -> None:
        if self.sums is not None:
            self._update(form, self.sums)
        bound = self._renew(data, form, pool)
        rise = rise_of(self.bounds, bound, FALL if closed(data) else LOOSE)
        self.bounds.append(bound)
        still = rise < config.tolerance * size_of(bound, data) and len(self.bounds) > self.free
        self.quiet = self.quiet + 1 if still else 0
        self.tried = self.tried and self.quiet > 0

    def _update(self, form: Form, s: Any) -> None:
        """Update what rows share, the experts in the order of their sizes if that is better."""
        order = by_size(self._sizes(), self.experts.alpha)
        if order is not None:
            s = self._keep(s, order)
        # Empty experts but one cost time and, for the uncertainty of what they might be, bound.
        kept = int(np.max(np.flatnonzero(s.n > EMPTY), initial=0)) + 2
        if kept < s.n.size:
            s = self._keep(s, np.arange(kept))
        self._update_shared(form, s)

    def _simplify(
        self, data: Any, form: Form, config: IqgmeConfig, pool: ThreadPoolExecutor | None
    ) -> None:
        """Try to do with fewer experts, and keep the first move that raises the bound.

        Where there was one, more are tried at once; where there are no more, iterations go on.
        None is made where features are so many that the bound is about them alone: of experts that
        differ in their rules for the label it would leave too few.
        """
        if self.experts.P > MOST_BOTH:
            self.tried = True
            return
        least = self.bounds[-1] + config.tolerance * size_of(self.bounds[-1], data)
        for trial in self._simpler(form):
            bound = trial._renew(data, form, pool)
            for _ in range(SETTLE):
                if bound > least:
                    break
                trial._update(form, trial.sums)
                bound = trial._renew(data, form, pool)
            if bound > least:
                self._become(trial)
                self.sums, self.moved = trial.sums, True
                self.bounds.append(bound)
                return
        self.tried = not self.moved
        if self.moved:
            self.quiet, self.moved = 0, False

    def _simpler(self, form: Form) -> Iterator[Self]:
        """Yield copies with two experts made one, then with one taken away."""
        for a, b in form.candidates(self.experts, self._judged(), self._shares(), EMPTY)[:TRIALS]:
            yield self._with_joined(a, b, form)
        for a in islice(self._spare(), TRIALS):
            yield self._without(a, form)

    def _sizes(self) -> Array:
        """Return what the experts' sticks count (H,)."""
        return np.asarray(self.sums.n)

    def _judged(self) -> Any:
        """Return the sums by which pairs that could be one are found."""
        return self.sums

    def _spare(self) -> Iterator[int]:
        """Yield experts that may be taken away, those first whose rows have others the most."""
        s, shares = self.sums, np.hstack(self._shares())
        full = np.flatnonzero(s.n > EMPTY)
        if full.size < 2:
            return
        # What rows lose with the other experts as they are; those may move towards them. An expert
        # costs about half a log n for each of its numbers.
        rest = np.array([np.log(np.delete(shares, a, 0).sum(axis=0) + TINY).sum() for a in full])
        numbers = s.xx[0].size + 2 * s.x[0].size + s.tx[0].size
        worth = numbers * np.log1p(shares.shape[1])
        for i in np.argsort(-rest, kind="stable"):
            if rest[i] > -worth:
                yield int(full[i])

    # What a start of one table, or of many tasks, does in its own way ----------------------

    @abstractmethod
    def _renew(self, data: Any, form: Form, pool: ThreadPoolExecutor | None) -> float:
        """Renew q of the rows and the sums; return the bound."""

    @abstractmethod
    def _update_shared(self, form: Form, s: Any) -> None:
        """Update what rows share."""

    @abstractmethod
    def _keep(self, s: Any, order: Array) -> Any:
        """Keep some experts, in another order; return their sums."""

    @abstractmethod
    def _shares(self) -> list[Array]:
        """Return the experts' responsibilities (H, n) for the rows of each table."""

    @abstractmethod
    def _with_joined(self, a: int, b: int, form: Form) -> Self:
        """Return a copy in which expert b's rows are a's."""

    @abstractmethod
    def _without(self, a: int, form: Form) -> Self:
        """Return a copy without expert a, whose rows are to be placed anew."""

    @abstractmethod
    def _become(self, trial: Self) -> None:
        """Take over the experts and the rows of a copy."""


def closed(data: KnownRows | Sequence[KnownRows]) -> bool:
    """Return whether q of the rows of all tables is known in closed form."""
    tables = [data] if isinstance(data, KnownRows) else data
    return all(rows.n_label < 2 or bool(rows.known.all()) for rows in tables)


def size_of(bound: float, data: KnownRows | Sequence[KnownRows]) -> float:
    """Return what rises are compared with: the bound, or where it is near 0 one for each cell."""
    tables = [data] if isinstance(data, KnownRows) else data
    return max(abs(bound), float(sum(rows.x.size for rows in tables)))


def rise_of(bounds: list[float], bound: float, fall: float = FALL) -> float:
    """Return how much the bound rose; NumericalError when it is no number or it fell."""
    if not np.isfinite(bound):
        raise NumericalError("the bound of the mixture of experts is not a finite number")
    if not bounds:
        return np.inf
    rise = bound - bounds[-1]
    if rise < -fall * abs(bound):
        raise NumericalError(
            f"the bound of the mixture of experts fell from {bounds[-1]:.10g} to {bound:.10g}"
        )
    return rise
