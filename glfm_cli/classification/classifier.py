"""The mixture of experts fitted to a table: calibrated features, a label's levels, and q."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.features import Calibrated, LatentColumn, cells_of, is_constant
from glfm_cli.classification.fit import ExpertsFit, Fitting, fit_experts
from glfm_cli.classification.gaps import Indicators
from glfm_cli.classification.label_trees import FEWEST, LabelTrees
from glfm_cli.classification.level_scores import FOLDS, level_scores, places_of, wants_scores
from glfm_cli.classification.pooling import STARTS, StackedPooling, compare_pooling
from glfm_cli.classification.stratified import stratified_folds
from glfm_cli.classification.tasks import FitUsage
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import NumericalError, UsageError
from glfm_cli.inference.diagnostics import RHAT_LIMIT, rhat
from glfm_cli.inference.run import Keeper
from glfm_cli.latent.iqgme import (
    MOST_BOTH,
    ROUGH,
    Experts,
    FactorExperts,
    IqgmeConfig,
    KnownRows,
    LabelLaw,
    Member,
    label_law,
    what_forms,
)
from glfm_cli.latent.iqgme.local import sound
from glfm_cli.links import LevelObservation, of_levels
from glfm_cli.schema import Role

MOST_LAWS = 10  # draws from which features are completed
AT_ONCE = 4096  # rows whose features are completed together
DOMINANT = 0.005  # E[pi] from which an expert counts, as in the thesis


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted mixture of experts.

    seen : how the columns are seen
    fitted : the fit
    members : those of the starts that predict together, the best first; none of a fit by sampling.
        Their shares of experts in tasks are by the task's code, (0, H) for one task
    task : name of the column that names tasks, None where there is one task
    note : what is to be said of the forms that experts have, None where there is nothing
    pooling : what predicts beside experts that tasks share, None where nothing does
    trees : what predicts beside those of one task, None where nothing does
    config : of the fit
    """

    seen: Calibrated
    fitted: ExpertsFit
    members: tuple[Member, ...]
    task: str | None
    note: str | None = None
    pooling: StackedPooling | None = None
    config: IqgmeConfig = field(default_factory=IqgmeConfig)
    trees: LabelTrees | None = None

    @property
    def n_levels(self) -> int:
        """Return R, the number of levels of the label."""
        return self.levels_link.n_levels

    @property
    def power(self) -> float:
        """Return to what power forecasts are raised, by the members' weights; 1 of draws."""
        return float(np.prod([member.power**member.weight for member in self.members]))

    @property
    def levels_link(self) -> LevelObservation:
        """Return the link of the label."""
        return of_levels(self.seen.label.link)

    @property
    def task_weights(self) -> Array:
        """Return the share (J, H) of each expert of the best start in each task."""
        shares = self.members[0].shares if self.members else None
        return np.empty((0, 0)) if shares is None else shares

    @property
    def usage(self) -> tuple[FitUsage, ...]:
        """Return which experts tasks use in the starts that predict; of one task nothing."""
        return tuple(
            FitUsage(member.weight, member.shares, member.experts.centers)
            for member in self.members
            if member.shares is not None
        )

    @property
    def n_experts(self) -> int:
        """Return how many experts have a weight that counts."""
        if self.fitted.draws:
            return round(float(np.mean([np.sum(q.pi > DOMINANT) for q in self.fitted.draws])))
        return int(np.sum(self.fitted.experts.pi > DOMINANT))

    @property
    def experts(self) -> Experts | FactorExperts:
        """Return q of the experts of a variational fit."""
        if self.fitted.draws:
            raise TypeError("a fit by sampling has many draws of the experts")
        return self.fitted.experts

    @property
    def n_factors(self) -> int:
        """Return how many factors features depend on, 0 where experts have full covariances."""
        if self.fitted.draws or isinstance(self.experts, Experts):
            return 0
        return self.experts.L

    @property
    def rhat(self) -> float:
        """Return R-hat of the log likelihood, of a fit by sampling; NaN when chains are cut off."""
        return float(rhat(self.fitted.trace))

    @property
    def converged(self) -> bool:
        """Return whether the fit met its tolerance, or its chains agree."""
        if self.fitted.draws:
            return self.rhat < RHAT_LIMIT
        return self.fitted.converged

    def law(
        self,
        columns: Sequence[EncodedColumn],
        pool: ThreadPoolExecutor | None,
        *,
        features: bool = False,
    ) -> LabelLaw:
        """Return the law of the labels of rows, which need not be the training rows.

        Rows of an unknown task have the experts' shares in all tasks.
        """
        if self.task is not None:
            cells = _cells_by_name(columns)
            xs = [cells[name] for name in self.seen.columns]
            return self._law_of_tasks(xs, cells[self.task], pool, features)
        rows = self._rows(columns)
        if self.fitted.draws:
            draws = self.fitted.draws
            if features:  # their law takes much more room
                draws = draws[:: -(-len(draws) // MOST_LAWS)]
            laws = [label_law(rows, q, features=features, pool=pool) for q in draws]
            return LabelLaw.average(laws)
        every = [member.experts for member in self.members]
        laws = [label_law(rows, q, features=features, pool=pool) for q in every]
        return LabelLaw.average(laws, [member.weight for member in self.members])

    def _rows(self, columns: Sequence[EncodedColumn]) -> KnownRows:
        """Return rows of one task as the experts see them."""
        cells, n = _cells_by_name(columns), columns[0].x.size if columns else 0
        return self.seen.rows([cells[name] for name in self.seen.columns], n)

    def filled(self, rows: KnownRows, pool: ThreadPoolExecutor | None = None) -> Array:
        """Return features (n, P), missing ones as the best start expects them without the label."""
        x, gaps = rows.x.copy(), np.flatnonzero(~rows.known.all(axis=1))
        for part in np.array_split(gaps, -(-gaps.size // AT_ONCE)) if gaps.size else ():
            own = rows.take(part)
            law = label_law(own, self.experts, features=True, pool=pool)
            mean = np.einsum("hn,hnp->np", law.gate, law.x)
            x[part] = np.where(own.known, own.x, mean)
        return x

    def _law_of_tasks(
        self, xs: list[Array], task: Array, pool: ThreadPoolExecutor | None, features: bool
    ) -> LabelLaw:
        """Return the law of rows of these tasks (n,), NaN where unknown."""
        code = np.where(np.isnan(task), -1.0, task).astype(np.intp)
        parts = []
        for j in np.unique(code):
            at = np.flatnonzero(code == j)
            rows, laws = self.seen.rows([x[at] for x in xs], at.size), []
            for member in self.members:
                q, pi = member.of_task(j if j >= 0 else None)
                pi = np.tile(pi[:, None], (1, at.size))
                laws.append(label_law(rows, q, pi=pi, features=features, pool=pool))
            law = LabelLaw.average(laws, [member.weight for member in self.members])
            parts.append((at, law))
        return LabelLaw.gathered(parts)

    def label_probabilities(self, law: LabelLaw) -> Array:
        """Return (n, R) the probabilities of the levels under a law of labels."""
        p = self.levels_link.probabilities(law.of_label(), self.seen.label.params)
        p = (1.0 - self.config.slips) * p + self.config.slips / self.n_levels
        if self.power == 1.0:
            return np.asarray(p)
        p = np.maximum(p, 0.0) ** self.power
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def probabilities(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return (n, R) the probabilities of the levels; O(n) memory and time.

        Trees know the labels of rows that they were grown on.
        """
        return self.mixed(self.by_experts(columns, pool), columns, pool)

    def mixed(
        self, p: Array, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return `probabilities` where those by the experts, p (n, R), are known."""
        if self.trees is not None:
            return self.trees.mixed(p, self.filled(self._rows(columns), pool))
        return p if self.pooling is None else self.pooling.mixed(p, columns, pool)

    def by_experts(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return the probabilities (n, R) of the levels by the mixture of experts alone."""
        law = self.law(columns, pool)
        with sound():
            p = self.label_probabilities(law)
        if not np.isfinite(p).all():
            raise NumericalError("the probabilities of labels are not finite numbers")
        return p


def fit_classifier(
    columns: Sequence[EncodedColumn],
    code: Array,
    n_levels: int,
    how: Fitting,
    keep: Callable[[Calibrated], Keeper] | None = None,
) -> Classifier:
    """Return the best of several fits to rows, some of whose labels may be missing.

    columns : the features, of which constant ones are left out, and at most one of role task, whose
        levels share experts
    code : (n,) float64; level of the label 0..R-1, NaN where missing
    n_levels : R, from 2
    keep : given how features are seen, returns where the fit is kept
    """
    config = how.config
    task = next((e for e in columns if e.column.role is Role.TASK), None)
    used = [e for e in columns if e is not task and not is_constant(e)]
    there = np.empty(0, np.intp) if task is None else np.unique(task.x).astype(np.intp)
    features, scores = _features(used, code, n_levels, how)
    label = LatentColumn.of_label(code, n_levels)
    xs = [cells_of(encoded) for encoded in used]
    gaps = Indicators.of(xs) if config.indicators else Indicators()
    seen = Calibrated(tuple(e.column.name for e in used), features, label, there, gaps)

    def rows_at(at: Array | slice) -> KnownRows:
        own = {d: rows[at] for d, rows in scores.items()}
        return seen.rows([x[at] for x in xs], code[at].size, code[at], config.slips, own)

    note = None
    if config.inference == "gibbs":
        _check_sampler(config, task)
    else:
        n_labelled = int(np.sum(~np.isnan(code))) or code.size
        note = what_forms(config, code.size, seen.n_latent, n_labelled, how.chains)
    fit = partial(
        fit_experts, config=config, chains=how.chains, seed=how.seed, threads=how.threads,
        pool=how.pool, stop=how.stop, observer=how.observer,
        keeper=None if keep is None else keep(seen),
    )  # fmt: skip
    if task is None:
        fitted = fit(rows_at(slice(None)))
        found = Classifier(seen, fitted, fitted.members, None, note, config=config)
        return replace(found, trees=_trees_beside(found, rows_at, code, how.seed, how.pool))
    shared = fit([rows_at(np.flatnonzero(task.x == j)) for j in there])
    members = tuple(among(member, there, len(task.levels)) for member in shared.members)
    name = task.column.name
    found = Classifier(seen, shared, members, name, note, config=config)
    if not (config.stack and config.average) or np.isnan(code).all():
        return found
    rough = replace(config, stack=False, tolerance=ROUGH * config.tolerance)
    fewer = Fitting(rough, how.links, min(how.chains, STARTS), how.seed, stop=how.stop)
    again = partial(fit_classifier, n_levels=n_levels, how=fewer)
    many = seen.n_latent > MOST_BOTH
    pooling = compare_pooling(columns, code, again, alone=many, pool=how.pool, stop=how.stop)
    return replace(found, pooling=pooling)


def _trees_beside(
    found: Classifier,
    rows_at: Callable[[Array], KnownRows],
    code: Array,
    seed: int,
    pool: ThreadPoolExecutor | None,
) -> LabelTrees | None:
    """Return trees that predict beside experts of one task; None where they are not to."""
    at, members, config = np.flatnonzero(~np.isnan(code)), found.members, found.config
    wanted = config.stack and config.average and at.size >= FEWEST and found.seen.n_latent
    if not wanted or not members or any(member.left_out is None for member in members):
        return None
    rng = np.random.default_rng([seed, at.size, found.n_levels])
    own = code[at].astype(np.intp)
    x = found.filled(rows_at(at), pool)
    return LabelTrees.of(x, own, found.n_levels, members, rng)


def _cells_by_name(columns: Sequence[EncodedColumn]) -> dict[str, Array]:
    return {encoded.column.name: cells_of(encoded) for encoded in columns}


def _features(
    columns: Sequence[EncodedColumn], code: Array, n_levels: int, how: Fitting
) -> tuple[tuple[LatentColumn, ...], dict[int, Array]]:
    """Return how columns are seen, and the scores of rows where their levels have some."""
    rng = np.random.default_rng([how.seed, len(columns), FOLDS])
    labelled = np.flatnonzero(~np.isnan(code))
    fold = np.full(code.size, -1)
    fold[labelled] = stratified_folds(code[labelled], FOLDS, rng)
    features, scores = [], {}
    for d, e in enumerate(columns):
        if labelled.size and wants_scores(e, n_levels):
            found = level_scores(e.x, code, fold, len(e.levels), n_levels, places_of(e))
            if found.levels.any() or not e.column.ordinal:
                feature, scores[d] = LatentColumn.scored(e, how.links, found)
                features.append(feature)
                continue
        features.append(LatentColumn.calibrate(e, how.links))
    return tuple(features), scores


def _check_sampler(config: IqgmeConfig, task: EncodedColumn | None) -> None:
    """Raise UsageError when the sampler cannot do what is asked for."""
    if task is not None:
        raise UsageError(
            "--set inference=gibbs is only for one task",
            hint=f"Give '{task.column.name}' another role, or leave the setting out.",
        )
    if config.factors:
        raise UsageError(
            "--set inference=gibbs is only for full covariances",
            hint=f"Leave out factors={config.factors}, or the sampler.",
        )


def among(member: Member, there: Array, n_tasks: int) -> Member:
    """Return a member of n tasks, where it knew those at the places `there` in turn."""
    shares = np.tile(member.experts.pi, (n_tasks, 1))  # of tasks without rows
    shares[there] = member.shares
    own = None if member.own is None else member.own.among(there, n_tasks)
    return replace(member, shares=shares, own=own)
