"""How far tasks' own rules may be off the shared one, from labels that are foretold.

The features are completed by one expert that knows no labels. Rules of that expert and of the
tasks, which act on what it says of each row, are then fitted without a fifth of each task's labels,
for one omega after another, and foretell those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.deviations import OwnSums, TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.forms import Form, Opening, local_step
from glfm_cli.latent.iqgme.level_data import LevelData, stacked
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.rows import KnownRows

Stop = Callable[[], bool]

GRID = (1e3, 3e2, 1e2, 3e1, 1e1, 3.0, 1.0, 0.3)
PATIENCE = 2
FOLDS = 5
ROUNDS = 10  # in which the expert that completes the features settles
TURNS, STEPS = 3, 10  # of covariances, each with so many of means, of a fit


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The labelled rows of all tasks, those of each together.

    f (n, F + 1) : what rules act on, 1 last;  label : of the rows
    task (n,) : which;  start (J,) : the first row of each task;  fold (n,) : 0..FOLDS - 1
    """

    f: Array
    label: LevelData
    task: NDArray[np.intp]
    start: NDArray[np.intp]
    fold: NDArray[np.intp]


def choose_omega(tables: Sequence[KnownRows], form: Form, stop: Stop | None = None) -> float:
    """Return the omega of `GRID` under which labels are foretold best.

    The search goes from tasks that share their rules to those that do not, until it has become
    worse twice running, or `stop` says to end.
    """
    stop = stop or (lambda: False)
    seen = see(tables, form, stop)
    if seen is None:
        return GRID[0]
    best, highest, worse = GRID[0], -np.inf, 0
    for omega in GRID:
        score = foretold(seen, form.prior.rules, omega, stop)
        if score is None:
            break
        best, highest, worse = (omega, score, 0) if score > highest else (best, highest, worse + 1)
        if worse == PATIENCE:
            break
    return best


def see(tables: Sequence[KnownRows], form: Form, stop: Stop) -> LabelledRows | None:
    """Return the rows, completed; None where fewer than two tasks have labels to learn from.

    None, too, where there is no time for that.
    """
    bare = [replace(rows, labelled=np.zeros(len(rows.x), dtype=bool)) for rows in tables]
    q, kept = form.begin(bare, Opening([np.ones((1, len(rows.x))) for rows in bare]))
    for _ in range(ROUNDS):
        total = form.zero(q)
        if stop():
            return None
        for rows, local in zip(bare, kept, strict=True):
            total.add(local_step(form, rows, q, local))
        q.update(form.prior, total)
    terms, parts, labels, folds = form.terms(q), [], [], []
    tasks: list[Array] = []
    for j, (rows, local) in enumerate(zip(bare, kept, strict=True)):
        f = np.ones((len(rows.x), q.rules.F + 1))
        for block in form.blocks(rows):
            f[block.rows, :-1] = form.inputs(form.place(rows, block, q, terms, local))[0]
        at = np.flatnonzero(tables[j].labelled)
        if at.size < 2 or rows.label is None:
            continue
        fold = np.empty(at.size, dtype=np.intp)
        by_label = np.lexsort(tables[j].first_scores[at].T)
        fold[by_label] = (np.arange(at.size) + j) % FOLDS
        tasks.append(np.full(at.size, len(tasks)))
        parts.append(f[at])
        folds.append(fold)
        labels.append((rows.label, at))
    if len(tasks) < 2:
        return None
    task = np.concatenate(tasks)
    start = np.flatnonzero(np.diff(task, prepend=-1))
    return LabelledRows(np.vstack(parts), stacked(labels), task, start, np.concatenate(folds))


def foretold(seen: LabelledRows, prior: Prior, omega: float, stop: Stop) -> float | None:
    """Return the log probability of the labels, each by a fit without it and a fifth of all.

    None where there is no time for that.
    """
    total = 0.0
    for i in range(FOLDS):
        if stop():
            return None
        total += _fold(seen, prior, omega, seen.fold == i)
    return total


def _fold(seen: LabelledRows, prior: Prior, omega: float, hidden: NDArray[np.bool_]) -> float:
    """Return the log probability of hidden labels, by a fit to the others."""
    f, every = seen.f, np.arange(seen.task.size)
    J, F, K = seen.start.size, seen.f.shape[1] - 1, seen.label.n_latent
    weight = np.where(hidden, 0.0, 1.0)
    X = np.array([
        (weight[one] * f[one].T) @ f[one] for one in np.split(every, seen.start[1:])
    ])  # fmt: skip
    q = Experts.from_prior(prior, 1, K)  # of which only the rule matters
    own = TaskDeviations.unknown(prior, J, K, F, omega)
    whole = X.sum(axis=0)
    s = Statistics.zero(1, F, K)
    s = replace(s, l_n=whole[None, -1, -1], l_x=whole[None, :-1, -1], l_xx=whole[None, :-1, :-1])
    for _ in range(TURNS):
        for i in range(STEPS):
            location = f @ q.mw[0].T + np.einsum("np,nkp->nk", f, own.mv[seen.task])
            t = seen.label.expect(every, location[None])[0][0] * weight[:, None]
            T = np.add.reduceat(t[:, :, None] * f[:, None, :], seen.start, axis=0)
            sums = OwnSums(X[:, None], T[:, None])
            own = (own.with_spread(sums) if i == 0 else own).with_means(q, sums)
            q.update_weights(replace(s, tx=own.rest(sums)))
        own = own.with_intercepts(prior)
        q.update_weight_prior(prior)
    new = np.flatnonzero(hidden)
    f, task = f[new], seen.task[new]
    location = f @ q.mw[0].T + np.einsum("np,nkp->nk", f, own.mv[task])
    spread = np.einsum("np,npq,nq->n", f, q.Sw[0] + own.C[task], f)
    scaled = location / np.sqrt(1.0 + spread)[:, None]
    return float(seen.label.expect(new, scaled[None])[1].sum())
