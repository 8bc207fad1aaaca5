"""How well a fit of many tasks foretells labels that are left out, without fitting anew.

Where features are many the bound is about them nearly alone, and which start is better for labels
it does not say. With scores t of all other rows held where they are, a rule without row i has at
that row, of leverage h = rho f' Cov(w) f, by the formula of least squares

    location (m - h t_i) / (1 - h),  variance f' Cov(w) f / (1 - h)

The expert of a row is told by its features alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.forms import Form
from glfm_cli.latent.iqgme.local import Local, weight_spread
from glfm_cli.latent.iqgme.rows import KnownRows

MOST = 0.99  # of a leverage
NONE = 1e-300  # share of an expert that a task does not use


def left_out_score(
    form: Form,
    tables: Sequence[KnownRows],
    q: Any,
    own: TaskDeviations | None,
    shares: Array,
    kept: Sequence[Local],
) -> float:
    """Return the sum over labelled rows of the log probability of the label, were it not known.

    shares : (J, H) of the experts in each task
    """
    terms, total = form.terms(q), 0.0
    for j, (rows, local) in enumerate(zip(tables, kept, strict=True)):
        if rows.label is None or not rows.labelled.any():
            continue
        mine, said = q, terms
        if own is not None:
            mine, said = form.with_rules(q, terms, *own.seen(q.rules, j))
        log_share = np.log(shares[j] + NONE) - q.log_pi
        bare = replace(rows, labelled=np.zeros(len(rows.x), dtype=bool))
        scratch = replace(local, t=local.t.copy())
        for block in form.blocks(bare):
            placed = form.place(bare, block, mine, said, scratch)
            at = np.flatnonzero(rows.labelled[block.rows])
            which, f = block.rows[at], form.inputs(placed)[:, at]
            log_gate = placed.log_rho[:, at] + log_share[:, None]
            log_gate -= logsumexp(log_gate, axis=0)
            rules = mine.rules
            location = f @ np.swapaxes(rules.mw[:, :, :-1], 1, 2) + rules.mw[:, None, :, -1]
            spread = weight_spread(rules, f)[:, :, None]
            h = np.minimum(spread * np.exp(log_gate)[:, :, None], MOST)
            location = (location - h * local.t[:, which]) / (1.0 - h)
            location /= np.sqrt(1.0 + spread / (1.0 - h))
            log_p = rows.label.expect(which, location)[1]
            total += float(logsumexp(log_gate + log_p, axis=0).sum())
    return total
