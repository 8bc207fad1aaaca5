"""How well a fit predicts labels that are left out, without fitting anew.

The bound is about features more than about labels, and which start is better for these it does not
say, least of all of two forms of experts. Where a label is left out, scores move as
`label_responses` says; of tasks, whose rules share much, all other scores t stay where they are,
and a rule without row i has at that row, of leverage h = rho f' Cov(w) f, by the formula of least
squares

    location (m - h t_i) / (1 - h),  variance f' Cov(w) f / (1 - h)

The expert of a row is told by its features alone, and an expert of full covariances is without the
row, too: with its share rho, u' = u - rho, nu' = nu - rho, d = |x - m|^2 in the metric of B

    d' = (u / u')^2 d / (1 - k d),  log|B'^-1| = log|B^-1| + log(1 - k d),  k = rho u / u'

which is exact for rows without missing features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.forms import Form
from glfm_cli.latent.iqgme.gates import GatedRows, gate_rows, log_shares, scores_law
from glfm_cli.latent.iqgme.label_responses import Responses, ScoredRows
from glfm_cli.latent.iqgme.level_data import LevelData
from glfm_cli.latent.iqgme.local import Local, weight_spread
from glfm_cli.latent.iqgme.rows import Block, KnownRows
from glfm_cli.latent.iqgme.seen_law import SeenLaw
from glfm_cli.links import of_levels

LEAST = 1e-6  # of what is left of a volume without a row
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
    total = 0.0
    for j, (rows, local) in enumerate(zip(tables, kept, strict=True)):
        rules = None if own is None else own.seen(q.rules, j)
        if rows.label is not None:
            own_law = form, rows, q, rules, shares[j], local
            log_p = left_out_levels(*own_law, [rows.label], alone=False)
            total += float(log_p[rows.labelled].sum())
    return total


def left_out_levels(
    form: Form, rows: KnownRows, q: Any, rules: tuple[Array, Array] | None, shares: Array,
    local: Local, levels: Sequence[LevelData], *, alone: bool = True,
) -> Array:  # fmt: skip
    """Return the log probability (n, R) of levels of each labelled row, NaN of others.

    rules : mean and covariances of coefficients that are not the experts' own
    shares : (H,) of the experts
    levels : the rows' own labels, or `every_level`
    alone : whether these are all rows that the rules are of
    """
    terms, out = form.terms(q), np.full((len(rows.x), len(levels)), np.nan)
    if rules is not None:
        q, terms = form.with_rules(q, terms, *rules)
    log_share = np.log(shares + NONE) - q.log_pi
    bare = replace(rows, labelled=np.zeros(len(rows.x), dtype=bool))
    scratch = replace(local, t=local.t.copy())

    assert rows.label is not None

    def scored() -> Iterator[tuple[ScoredRows, Array]]:
        """Yield the labelled rows of every block, and the log of each expert's share in them."""
        for block in form.blocks(bare):
            placed = form.place(bare, block, q, terms, scratch)
            at = np.flatnonzero(rows.labelled[block.rows])
            if not at.size:
                continue
            log_gate = placed.log_rho[:, at] + log_share[:, None]
            log_gate -= log_sum(log_gate, axis=0)
            of = block.rows[at], form.inputs(placed)[:, at], np.exp(log_gate)
            yield ScoredRows.of(*of, q.rules), log_gate

    if alone:
        responses = Responses.of((one for one, _ in scored()), rows.label, q.rules)
    else:
        responses = Responses.held(rows.label, q.rules)
    for one, log_gate in scored():
        mean, var = responses.without(one)
        eta = mean / np.sqrt(var)
        for r, level in enumerate(levels):
            out[one.rows, r] = log_sum(log_gate + level.expect(one.rows, eta)[1], axis=0)
    return out


def every_level(rows: KnownRows) -> list[LevelData]:
    """Return the label as if all rows had each of its levels in turn."""
    label = rows.label
    if label is None:
        return []
    n_levels = of_levels(label.link).n_levels
    return [replace(label, x=np.full(label.x.size, float(r))) for r in range(n_levels)]


def left_out_labels(
    rows: KnownRows, q: Experts, local: Local, u0: float, levels: Sequence[LevelData]
) -> Array:
    """Return the same (n, R) of experts of full covariances, which are without the row, too.

    u0 : how many rows the prior centre of an expert is worth
    """
    log_pi, law = log_shares(q, None, len(rows.x)), SeenLaw.of(q, rows.noise)
    out = np.full((len(rows.x), len(levels)), np.nan)

    assert rows.label is not None

    def scored() -> Iterator[tuple[ScoredRows, Array, Array]]:
        """Yield labelled rows, the log of each expert's share, and how several variables move."""
        for block in rows.blocks:
            at = block.with_label
            if not at.size:
                continue
            which = block.rows[at]
            rho = np.minimum(local.rho[:, which], q.u[:, None] - u0)  # q may be older than rho
            placed = gate_rows(block, q, law, log_pi[:, block.rows])
            mean, var, wide = (one[:, at] for one in scores_law(block, q, placed))
            log_gate = placed.log_gate[:, at] + _without_row(q, rows, block, placed, rho)
            log_gate -= log_sum(log_gate, axis=0)
            x = placed.x[:, at]
            spread = weight_spread(q, x)[:, :, None]
            yield ScoredRows(which, x, rho, mean, var - spread, spread), log_gate, wide

    responses = Responses.of((one for one, _, _ in scored()), rows.label, q)
    for one, log_gate, wide in scored():
        mean, var = responses.without(one)
        sd = np.sqrt(var)
        for r, level in enumerate(levels):
            if wide.any():
                log_p = level.expect_shifted(one.rows, mean / sd, wide / sd)[2]
            else:
                log_p = level.expect(one.rows, mean / sd)[1]
            out[one.rows, r] = log_sum(log_gate + log_p, axis=0)
    return out


def _without_row(
    q: Experts, rows: KnownRows, block: Block, placed: GatedRows, rho: Array
) -> Array:
    """Return by how much the log density (H, l) of labelled rows changes without them."""
    at = block.with_label
    p = rows.known[block.rows[at]].sum(axis=1)
    d, u, nu = placed.square[:, at] / q.nu[:, None], q.u[:, None], q.nu[:, None]
    left = np.maximum(1.0 - rho * u / (u - rho) * d, LEAST)

    def log_t(u: Array, nu: Array, d: Array) -> Array:
        df = nu + 1.0 - q.P
        out = gammaln(0.5 * (df + p)) - gammaln(0.5 * df) - 0.5 * p * np.log((u + 1.0) / u)
        return np.asarray(out - 0.5 * (df + p) * np.log1p(d * u / (u + 1.0)))

    without = log_t(u - rho, nu - rho, (u / (u - rho)) ** 2 * d / left)
    return without - 0.5 * np.log(left) - log_t(u, nu, d)
