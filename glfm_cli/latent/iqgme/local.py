"""q of the rows given the experts: missing features, labels, responsibilities.

For a row with pattern (known o, gaps m) under expert h:

    Q = A + E[w w']_xx (if labelled) + precision of what is told,   Cov(x_m | t) = (Q_mm)^-1

with A the precision of x under the expert, E[Lam] but for what is seen with noise (seen_law.py).

The variable t of a label of two levels is kept together with the gaps: with k = (Q_mm)^-1 w_m and
v = 1 / (1 - w_m' k)

    q(t, x_m) = N(t; v s, v) within what the label says  x  N(x_m; x* + k t, (Q_mm)^-1)

where x* = (Q_mm)^-1 (c_m - Q_mo x_o) and s is its score. Apart from one another they would not see
that the gaps are uncertain, and rows with gaps would pull w_m to 0. Of several variables the one is
kept together with the gaps that they have most to do with, see `_see_levels`; what is left of the
others is renewed given x, x given them.

One inverse for each pattern and expert; O(b H (P^2 + c^2)) for b rows with c gaps. Arrays have the
experts in front: (H, b, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme.coefficients import Coefficients
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.gaps import Gaps
from glfm_cli.latent.iqgme.gibbs_draw import LOG_2PI, Drawn
from glfm_cli.latent.iqgme.rows import Block, KnownRows
from glfm_cli.latent.iqgme.seen_law import SeenLaw

SHARE = 1e-6  # of an expert in a row that is none where rows keep to theirs
SMALL = 1e-10  # share of a utility's variance that gaps have


@dataclass(eq=False)
class Local:
    """What is kept of q of the rows from one iteration to the next.

    rho : (H, n) responsibilities
    t : (H, n, K) means of the label's variables
    """

    rho: Array
    t: Array

    def ordered(self, order: Array) -> Local:
        """Return the same of some experts, in another order."""
        return Local(self.rho[order], self.t[order])

    def joined(self, a: int, b: int, n: Array) -> Local:
        """Return a copy in which expert a stands for b, too; n (H,) are the rows of each."""
        share = n[[a, b]] / n[[a, b]].sum()
        t = self.t.copy()
        t[a] = share[0] * t[a] + share[1] * t[b]
        return Local(self.rho, t)


@dataclass(frozen=True, eq=False)
class Completed:
    """Rows of one block under every expert.

    x : (H, b, P) means
    missing : second moments given t, None where nothing is missing
    log_rho : (H, b) unnormalised
    coupled : how t and the gaps go together, None where they do not
    law : of f given x, None where they are one
    """

    x: Array
    missing: Gaps | None
    log_rho: Array
    coupled: Coupled | None = None
    law: SeenLaw | None = None


@dataclass(frozen=True, eq=False)
class Coupled:
    """How gaps go with what a label says of t, or of one variable a't; 0 without a label.

    gain : (H, b) log of what integrating t gives
    along : (H, G, P) of the gaps of each pattern with a't
    var : (H, b) of a't;  t_cov : (H, b, K) of t and a't
    """

    gain: Array
    along: Array
    var: Array
    t_cov: Array

    @classmethod
    def none(cls, x: Array, along: Array, K: int) -> Coupled:
        """Return that of rows x (H, b, P) without labels."""
        gain, var = np.zeros((2, *x.shape[:2]))
        return cls(gain, along, var, np.zeros((*x.shape[:2], K)))


@dataclass(frozen=True, eq=False)
class Terms:
    """What the experts say of the rows, in the form that the updates use.

    WW : (H, P + 1, P + 1) sum over k of E[w_k w_k'];  Qm : (H, P) E[Lam] m
    constant : (H,) terms of log rho that are the same for all rows
    narrow : whether rows with gaps keep to the experts that they have a share of
    """

    WW: Array
    Qm: Array
    constant: Array
    narrow: bool = False
    _made: list[SeenLaw] = field(default_factory=list)

    def seen_law(self, q: Experts, noise: Array) -> SeenLaw:
        """Return the law of what is seen; made once for all blocks, whatever the rules."""
        if not self._made:
            self._made.append(SeenLaw.of(q, noise))
        return self._made[0]

    @classmethod
    def of(cls, q: Experts, narrow: bool = False) -> Terms:
        """Return them; O(H P^2 (K + 1))."""
        Qm = np.einsum("hpq,hq->hp", q.nB, q.m)
        constant = q.log_pi + 0.5 * (q.log_Lam - q.P * LOG_2PI - q.P / q.u)
        return cls(q.WW, Qm, constant, narrow)


def complete_block(
    rows: KnownRows, block: Block, q: Experts, terms: Terms, local: Local
) -> Completed:
    """Return q(x, z) of a block's rows and renew their t in place."""
    law = terms.seen_law(q, rows.noise)
    log_rho = np.repeat((terms.constant + law.constant)[:, None], block.rows.size, axis=1)
    x = np.broadcast_to(block.seen, (q.H, block.rows.size, q.P))
    missing, sizes, held = None, np.diff(block.start), None
    if block.missing.size:
        x = x.copy()
        held = local.rho[:, block.rows] > SHARE if terms.narrow else None
        missing = Gaps.of(block, law.A, terms.WW, block.labelled, held)
        missing.fill(block, _linear(block, q, terms, law), x)
        spread = np.diff(block.missing_start) * LOG_2PI - missing.log_det
        log_rho += 0.5 * np.repeat(spread, sizes, axis=1)
        if held is not None:
            log_rho[~held] = -np.inf
    log_rho -= 0.5 * (law.squares(x) + block.misfit(x))
    if block.noise is not None:
        log_rho += 0.5 * (block.log_noise - LOG_2PI * (block.noise > 0.0).sum(axis=1))
    if missing is not None and block.with_label.size:
        see = _see_label if rows.n_label == 1 else _see_levels
        coupled, shift = see(rows, block, q, local, x, missing, held)
        log_rho += coupled.gain
        x += shift
        return Completed(x, missing, log_rho, coupled, law)
    if block.with_label.size:
        at = _positions(block.with_label, block.rows.size)
        log_rho[:, at] += _label_terms(rows, block.rows[at], q, local, x[:, at])
    return Completed(x, missing, log_rho, None, law)


def _positions(at: Array, n: int) -> Array | slice:
    """Return a slice for all of n places, which copies nothing."""
    return slice(None) if at.size == n else at


def _linear(block: Block, q: Experts, terms: Terms, law: SeenLaw) -> Array:
    """Return c - Q x_known (H, b, P) for t = 0: of it the gaps' part, times Cov(x_m), is E(x_m)."""
    P, seen, at = q.P, block.seen, block.with_label
    if at.size == block.rows.size:
        linear = seen @ -(law.A + terms.WW[:, :P, :P])
        linear += (law.Am - terms.WW[:, :P, P])[:, None, :]
    else:
        linear = law.Am[:, None, :] - seen @ law.A
        linear[:, at] -= terms.WW[:, None, :P, P] + seen[at] @ terms.WW[:, :P, :P]
    if block.noise is not None:
        linear += block.pull
    return linear


def _label_terms(rows: KnownRows, which: Array, q: Experts, local: Local, x: Array) -> Array:
    """Renew t at its new location; return E[log p(t | x)] plus the entropy of q(t), (H, b).

    What the gaps' covariance takes from it is in their normaliser.
    """
    assert rows.label is not None
    location = x @ np.swapaxes(q.mw[:, :, :-1], 1, 2) + q.mw[:, None, :, -1]
    local.t[:, which], log_z = rows.label.expect(which, location)
    return log_z - 0.5 * q.K * weight_spread(q, x)


def _see_label(
    rows: KnownRows,
    block: Block,
    q: Experts,
    local: Local,
    x: Array,
    missing: Gaps,
    held: Array | None,
) -> tuple[Coupled, Array]:
    """Renew the only t; return how gaps go along, and their shift from x (H, b, P), of t = 0."""
    along = missing.along(block, q.mw[:, 0, :-1], block.labelled)
    gain, t_cov = np.zeros(x.shape[:2]), np.zeros((*x.shape[:2], 1))
    at = _positions(block.with_label, block.rows.size)
    seen = see_label(rows, block, q, x, along, held)
    local.t[:, block.rows[at]], t_cov[:, at, 0] = seen.mean[:, :, None], seen.var
    gain[:, at] = seen.log_z - 0.5 * weight_spread(q, x[:, at])
    shift = np.repeat(along, np.diff(block.start), axis=1)
    shift *= local.t[:, block.rows]
    return Coupled(gain, along, t_cov[:, :, 0], t_cov), shift


def _see_levels(
    rows: KnownRows,
    block: Block,
    q: Experts,
    local: Local,
    x: Array,
    missing: Gaps,
    held: Array | None,
) -> tuple[Coupled, Array]:
    """Renew t of several variables, the gaps going along with a't; x as for `_see_label`.

    With A = (Q_mm)^-1 W', s the scores and a the first of the eigenvectors of M = W A, M a = l a,
    and T what is left of E[t] beside a

        q(t) = N(s + M T + a a's l / (1 - l), I + a a' l / (1 - l)) within what the label says.

    Its shift along a is integrated by quadrature: z, of which E[z | t] is linear in a't, so that
    Cov(t, a't) = Cov(t, z) / sqrt(l (1 - l)).
    """
    assert rows.label is not None
    at = _positions(block.with_label, block.rows.size)
    which, W = block.rows[at], q.mw[:, :, :-1]
    A = np.stack([missing.along(block, W[:, k], block.labelled) for k in range(q.K)], axis=2)
    M = A @ np.swapaxes(W, 1, 2)[:, None]
    every, vectors = np.linalg.eigh(0.5 * (M + np.swapaxes(M, 2, 3)))
    first, a = np.clip(every[..., -1], SMALL, 1.0 - SMALL), vectors[..., -1]
    along = np.einsum("hgkp,hgk->hgp", A, a)
    pattern = np.repeat(np.arange(block.labelled.size), np.diff(block.start))[at]
    first, a, M, A = (each[:, pattern] for each in (first, a, M, A))
    score = x[:, at] @ np.swapaxes(W, 1, 2) + q.mw[:, None, :, -1]
    t = local.t[:, which]
    rest = t - a * _dot(a, t)[:, :, None]
    pull = np.einsum("hlkj,hlj->hlk", M, rest)
    on, off = _dot(a, score), score - a * _dot(a, score)[:, :, None] + pull
    wide = a * np.sqrt(first / (1.0 - first))[:, :, None]
    location = off + a * (on / (1.0 - first))[:, :, None]
    held = None if held is None else held[:, at]
    t, cov, log_norm = rows.label.expect_shifted(which, location, wide, held)
    cov /= np.sqrt(first * (1.0 - first))[:, :, None]
    gain = log_norm - 0.5 * (np.log1p(-first) + _dot(rest, pull) + _dot(score, score))
    gain += 0.5 * (on * on / (1.0 - first) + _dot(off, off))
    gain -= 0.5 * q.K * weight_spread(q, x[:, at])
    out = Coupled.none(x, along, q.K)
    out.gain[:, at], out.t_cov[:, at], out.var[:, at] = gain, cov, _dot(a, cov)
    shift = np.zeros(x.shape)
    shift[:, at] = np.einsum("hlkp,hlk->hlp", A, rest + a * _dot(a, t)[:, :, None])
    local.t[:, which] = t
    return out, shift


def _dot(a: Array, b: Array) -> Array:
    return np.asarray((a * b).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """The law of the only label variable of the labelled rows of a block, their gaps going along.

    All (H, l): N(location, scale^2), and within what the label says its mean and variance
    log_z : log of what integrating it out gives
    """

    location: Array
    scale: Array
    mean: Array
    var: Array
    log_z: Array


def see_label(
    rows: KnownRows,
    block: Block,
    q: Experts | Drawn,
    x: Array,
    along: Array,
    held: Array | None = None,
) -> ScoreLaw:
    """Return that law, 0 where not `held` (H, b).

    x : (H, b, P) rows, gaps as for t = 0;  along : (H, G, P) as of `Gaps`
    """
    assert rows.label is not None
    at = _positions(block.with_label, block.rows.size)
    score = (x[:, at] @ q.mw[:, 0, :-1, None])[:, :, 0] + q.mw[:, :1, -1]
    explained = (along @ q.mw[:, 0, :-1, None])[:, :, 0]
    v = np.repeat(1.0 / (1.0 - explained), np.diff(block.start), axis=1)[:, at]
    location, scale = v * score, np.sqrt(v)
    which = np.nonzero(np.ones(score.shape, bool) if held is None else held[:, at])
    mean, var, log_z = np.zeros((3, *score.shape))
    mean[which], var[which], log_z[which] = (
        one[0, :, 0]
        for one in rows.label.moments(
            block.rows[at][which[1]], location[which][None, :, None], scale[which][None, :, None]
        )
    )
    log_z += np.log(scale) + 0.5 * (v - 1.0) * score * score
    return ScoreLaw(location, scale, mean, var, log_z)


def weight_spread(q: Coefficients | Drawn, x: Array) -> Array:
    """Return [x, 1]' Sw [x, 1] (H, b) of rows x (H, b, P)."""
    square = np.einsum("hbp,hbp->hb", x @ q.Sw[:, :-1, :-1], x)
    cross = (x @ q.Sw[:, :-1, -1, None])[:, :, 0]
    return square + 2.0 * cross + q.Sw[:, None, -1, -1]


# ------------------------------------------------------------------------------- statistics


def sum_block(s: Statistics, block: Block, done: Completed, rho: Array, t: Array) -> None:
    """Add a block's rows to the sums; rho (H, b), t (H, b, K)."""
    weighted = rho[:, :, None] * done.x
    part = Statistics.zero(len(s.n), s.x.shape[1], s.tx.shape[1])
    part.n += rho.sum(axis=1)
    part.x += weighted.sum(axis=1)
    part.xx += np.swapaxes(weighted, 1, 2) @ done.x
    del weighted  # as large as x
    weight = np.add.reduceat(rho, block.start[:-1], axis=1)
    if done.missing is not None:
        done.missing.add(block, weight, part.xx)
    if block.with_label.size == block.rows.size:
        part.l_n, part.l_x, part.l_xx = part.n, part.x, part.xx
    elif block.with_label.size:
        at = _positions(block.with_label, block.rows.size)
        own = rho[:, at, None] * done.x[:, at]
        part.l_n += rho[:, at].sum(axis=1)
        part.l_x += own.sum(axis=1)
        part.l_xx += np.swapaxes(own, 1, 2) @ done.x[:, at]
        if done.missing is not None:
            done.missing.add(block, weight * block.labelled, part.l_xx)
    if block.with_label.size:
        at = _positions(block.with_label, block.rows.size)
        rt = rho[:, at, None] * t[:, at]
        part.tx[:, :, :-1] += np.swapaxes(rt, 1, 2) @ done.x[:, at]
        part.tx[:, :, -1] += rt.sum(axis=1)
    _add_spread_along(part, block, done, rho)
    if done.law is not None:
        part.x, part.xx = done.law.of_features(part.n, part.x, part.xx)
    s.add(part)


def _add_spread_along(part: Statistics, block: Block, done: Completed, rho: Array) -> None:
    """Add what the spread of t makes of the second moments of what goes with it."""
    if done.coupled is None:
        return
    along = done.coupled.along
    spread = np.add.reduceat(rho * done.coupled.var, block.start[:-1], axis=1)[:, :, None]
    part.xx += np.swapaxes(spread * along, 1, 2) @ along
    if part.l_xx is not part.xx:
        part.l_xx += np.swapaxes(spread * along, 1, 2) @ along
    both = np.add.reduceat(rho[:, :, None] * done.coupled.t_cov, block.start[:-1], axis=1)
    part.tx[:, :, :-1] += np.swapaxes(both, 1, 2) @ along


def over(pool: ThreadPoolExecutor | None, work: Callable[[Any], Any], blocks: Sequence[Any]) -> Any:
    """Return the results of `work` on every block, in order."""

    def soundly(block: Any) -> Any:
        with sound():
            return work(block)

    return map(soundly, blocks) if pool is None else pool.map(soundly, blocks)


@contextmanager
def sound() -> Iterator[None]:
    """Let numbers that break down end as one error, or be found out by the bound they lead to.

    Raises NumericalError: a matrix is none that can be decomposed.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError as error:
        problem = f"the numbers of the mixture of experts broke down: {error}"
        raise NumericalError(problem) from None
