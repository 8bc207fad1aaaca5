"""New rows: which expert they belong to, what their label is, what their gaps hold.

The gate of expert h is the posterior predictive of the row's features under it: a Student t
density of what is seen, exact under q whichever features are missing, if they are seen without
noise. Given an expert the missing features are normal, and the label's variables have exact first
two moments: the uncertainty of missing features and of the expert's weights widens the probit.
[iQGME section 3.4.3, with both uncertainties]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.gaps import Gaps
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.local import over, weight_spread
from glfm_cli.latent.iqgme.rows import Block, KnownRows
from glfm_cli.latent.iqgme.seen_law import SeenLaw
from glfm_cli.links import NormalMixture

SHARED_NODES = 10  # by which what utilities share is integrated


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """What the mixture says of rows whose labels it does not know.

    gate : (H, n) probabilities of the experts
    mean, var : (H, n, K) of the label's variables under each, noise included
    wide : (H, n, K) by which several of them move together, by a standard normal number more
    x, x_var : (H, n, P) means and variances of the features, without noise; (H, 0, P) unless asked
        for
    """

    gate: Array
    mean: Array
    var: Array
    wide: Array
    x: Array
    x_var: Array

    @classmethod
    def blank(cls, q: Any, n: int, features: bool) -> LabelLaw:
        """Return arrays to be filled in for n rows; every row is filled in by one batch."""
        x = np.empty((q.H, n if features else 0, q.P))
        mean = np.empty((q.H, n, q.K))
        var, wide = np.empty_like(mean), np.zeros_like(mean)
        return cls(np.empty((q.H, n)), mean, var, wide, x, np.zeros_like(x))

    @classmethod
    def average(cls, laws: Sequence[LabelLaw], weights: Sequence[float] | None = None) -> LabelLaw:
        """Return the mixture of several laws of the same rows, each as probable or by weights."""
        join, each = np.concatenate, weights or [1.0 / len(laws)] * len(laws)
        return cls(
            join([weight * law.gate for weight, law in zip(each, laws, strict=True)]),
            join([law.mean for law in laws]),
            join([law.var for law in laws]),
            join([law.wide for law in laws]),
            join([law.x for law in laws]),
            join([law.x_var for law in laws]),
        )

    @classmethod
    def gathered(cls, parts: Sequence[tuple[Array, LabelLaw]]) -> LabelLaw:
        """Return the law of all rows from those of some, each with the places of its rows."""
        place = np.argsort(np.concatenate([at for at, _ in parts]), kind="stable")

        def together(name: str) -> Array:
            every = np.concatenate([getattr(law, name) for _, law in parts], axis=1)
            return every[:, place] if every.shape[1] else every

        return cls(*(together(field.name) for field in fields(cls)))

    def of_label(self) -> NormalMixture:
        """Return the law of the label's cells, what utilities share integrated by quadrature."""
        nodes: Sequence[tuple[float, float]] = [(0.0, 1.0)]
        if self.wide.any():
            z, share = np.polynomial.hermite_e.hermegauss(SHARED_NODES)
            nodes = list(zip(z, share / share.sum(), strict=True))
        gate = np.concatenate([share * self.gate for _, share in nodes])
        mean = np.concatenate([self.mean + z * self.wide for z, _ in nodes])
        var = np.tile(self.var, (len(nodes), 1, 1))
        return NormalMixture(gate.T, np.swapaxes(mean, 0, 1), np.swapaxes(var, 0, 1))


def full_law(
    rows: KnownRows,
    q: Experts | Drawn,
    *,
    pi: Array | None = None,
    features: bool = False,
    pool: ThreadPoolExecutor | None = None,
) -> LabelLaw:
    """Return the law of the labels of rows, nothing being known of them; see `label_law`."""
    rows = rows.without_label()
    n = len(rows.x)
    log_pi, law = log_shares(q, pi, n), LabelLaw.blank(q, n, features)
    seen = SeenLaw.of(q, rows.noise)

    def work(block: Block) -> None:
        placed, members = gate_rows(block, q, seen, log_pi[:, block.rows]), block.rows
        law.gate[:, members] = np.exp(placed.log_gate - log_sum(placed.log_gate, axis=0))
        law.mean[:, members], law.var[:, members], law.wide[:, members] = scores_law(
            block, q, placed
        )
        if features:
            law.x[:, members] = placed.x
            for places, m, cov in placed.patterns(block):
                spread = np.diagonal(cov, axis1=1, axis2=2)
                law.x_var[:, members[places, None], m] = (spread - rows.noise[m])[:, None, :]

    list(over(pool, work, rows.blocks))
    return law


def log_shares(q: Any, pi: Array | None, n: int) -> Array:
    """Return the logarithms (H, n) of the shares of the experts in what each row is one of."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.broadcast_to(q.pi[:, None], (q.H, n)) if pi is None else pi))


@dataclass(frozen=True, eq=False)
class GatedRows:
    """Rows of a block under every expert, their labels unknown.

    log_gate : (H, b) not normalised;  x : (H, b, P) completed;  gaps : None where there are none
    square : (H, b) how far from the centres
    """

    log_gate: Array
    x: Array
    missing: Gaps | None
    square: Array

    def patterns(self, block: Block) -> Iterator[tuple[Array, Array, Array]]:
        """Yield rows (their places in the block), gaps (c,) and their covariances (H, c, c)."""
        if self.missing is None:
            return
        for g in range(block.labelled.size):
            m = block.missing[block.missing_start[g] : block.missing_start[g + 1]]
            cov = self.missing.cov[:, block.cov_start[g] : block.cov_start[g + 1]]
            cov = cov.reshape(len(cov), m.size, m.size)
            if m.size:
                yield np.arange(block.start[g], block.start[g + 1]), m, cov


def gate_rows(block: Block, q: Experts | Drawn, law: SeenLaw, log_pi: Array) -> GatedRows:
    """Return the gates of a block's rows, and the rows completed."""
    x = np.broadcast_to(block.seen, (q.H, *block.seen.shape))
    missing, log_det = None, np.repeat(-2.0 * law.constant[:, None], block.rows.size, axis=1)
    if block.missing.size:
        x = x.copy()
        linear = law.Am[:, None, :] - block.seen @ law.A + block.pull
        nothing = np.zeros_like(block.labelled)
        missing = Gaps.of(block, law.A, q.Sw[:, :-1, :-1], nothing)
        missing.fill(block, linear, x)
        log_det += np.repeat(missing.log_det, np.diff(block.start), axis=1) - block.log_noise
    square = law.squares(x) + block.misfit(x)
    log_gate = log_pi + q.log_density(square, log_det, block.n_told)
    return GatedRows(log_gate, x, missing, square)


def scores_law(
    block: Block, q: Experts | Drawn, placed: GatedRows
) -> tuple[Array, Array, Array]:
    """Return mean, variance and `wide` (H, b, K) of the label's variables, noise included.

    Of what several have in common by gaps, `wide` is the first of the eigenvectors.
    """
    P, x = q.P, placed.x
    mean = x @ np.swapaxes(q.mw[:, :, :P], 1, 2) + q.mw[:, None, :, P]
    var = np.repeat(1.0 + weight_spread(q, x)[:, :, None], q.K, axis=2)
    wide = np.zeros_like(mean)
    if placed.missing is None:
        return mean, var, wide
    w, every = q.mw[:, :, :P], np.ones_like(block.labelled)
    along = [placed.missing.along(block, w[:, k], every) for k in range(q.K)]
    spread = np.stack(along, axis=2) @ np.swapaxes(w, 1, 2)[:, None]
    own = np.einsum("hgkk->hgk", spread)
    sizes = np.diff(block.start)
    if q.K > 1:
        value, vector = np.linalg.eigh(0.5 * (spread + np.swapaxes(spread, 2, 3)))
        first = vector[..., -1] * np.sqrt(np.maximum(value[..., -1:], 0.0))
        wide, own = np.repeat(first, sizes, axis=1), own - first * first
    own = own + placed.missing.traces(block, q.Sw[:, :P, :P])[:, :, None]
    return mean, var + np.repeat(own, sizes, axis=1), wide
