"""q of rows of which every feature is seen, all in products of two matrices.

Their law is the same for all rows of an expert. Both what rows need of the experts and the sums
that experts need of the rows are therefore linear in the products of pairs of [x, 1], which never
change: O(b H P^2) for b rows, once for each of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.factors import pack, twice, unpack
from glfm_cli.latent.iqgme.local import Local, Terms
from glfm_cli.latent.iqgme.rows import Block, KnownRows
from glfm_cli.latent.iqgme.seen_law import SeenLaw


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows of a block under every expert.

    seen : (b, P);  H : experts;  log_rho : (H, b) unnormalised;  law : what they are placed by
    """

    seen: Array
    log_rho: Array
    law: SeenLaw

    @cached_property
    def x(self) -> Array:
        """Return what is seen, for every expert (H, b, P)."""
        return np.broadcast_to(self.seen, (len(self.log_rho), *self.seen.shape))


def place_seen(
    rows: KnownRows, block: Block, q: Experts, terms: Terms, local: Local
) -> SeenRows:
    """Return q(z) of the rows of a block and renew their t in place."""
    law = terms.seen_law(q, rows.noise)
    quadratic, log_rho = law.quadratic, np.empty((q.H, block.rows.size))
    for part, labelled in block.parts:
        form = quadratic + q.K * q.Sw if labelled and q.K else quadratic
        log_rho[:, part] = pack(form) * twice(q.P + 1) @ block.products[part].T
    log_rho *= -0.5
    log_rho += (terms.constant + law.constant)[:, None]
    at = block.with_label
    if q.K and at.size:
        assert rows.label is not None
        which = block.rows[at]
        location = q.mw.reshape(q.H * q.K, -1) @ block.with_one[at].T
        location = np.swapaxes(location.reshape(q.H, q.K, at.size), 1, 2)
        local.t[:, which], log_z = rows.label.expect(which, np.ascontiguousarray(location))
        log_rho[:, at] += log_z
    return SeenRows(block.seen, log_rho, law)


def sum_seen(s: Statistics, block: Block, done: SeenRows, rho: Array, t: Array) -> None:
    """Add a block's rows to the sums; rho (H, b), t (H, b, K)."""
    law, F = done.law, block.seen.shape[1] + 1
    both = np.zeros((len(rho), F, F))
    for part, labelled in block.parts:
        moments = unpack(rho[:, part] @ block.products[part], F)
        both += moments
        if labelled:
            s.l_n += moments[:, -1, -1]
            s.l_x += moments[:, :-1, -1]
            s.l_xx += moments[:, :-1, :-1]
    n = both[:, -1, -1]
    x, xx = law.of_features(n, both[:, :-1, -1], both[:, :-1, :-1])
    s.n, s.x, s.xx = s.n + n, s.x + x, s.xx + xx
    at = block.with_label
    if at.size and s.tx.shape[1]:
        rt = np.swapaxes(rho[:, at, None] * t[:, at], 1, 2)
        s.tx += (rt.reshape(-1, at.size) @ block.with_one[at]).reshape(s.tx.shape)
