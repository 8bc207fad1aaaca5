"""What the experts of a classifier are: how many rows each has, where they lie, what drives labels.

share    of the rows; where there are tasks, the mean of its shares in them
label    probabilities of the levels for a row of which only the expert is known
centre   median, and range of the middle 80 %, of every column among an expert's rows
drive    by how much the score of a label moves, in the noise's standard deviations, when a
         feature moves by one standard deviation of the expert's rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.belief import Belief, believed
from glfm_cli.classification.classifier import DOMINANT
from glfm_cli.classification.complete import as_posterior
from glfm_cli.classification.tasks import TaskUsage
from glfm_cli.classification.trained import Trained
from glfm_cli.errors import UsageError
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.latent.iqgme import Experts, FactorExperts, LabelLaw, LowRank
from glfm_cli.links import Link

RANGE = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Place:
    """One column among the rows of an expert.

    center : median, or the most probable level;  low, high : of the middle 80 %, of numbers
    share : probability of the level that is the centre
    """

    column: str
    center: float | str
    low: float | None
    high: float | None
    share: float | None


@dataclass(frozen=True)
class Drive:
    """What one feature does to the score of one label: effect and its uncertainty (sd)."""

    label: str
    feature: str
    effect: float
    sd: float


@dataclass(frozen=True)
class Expert:
    """One expert; `drives` has the strongest first."""

    number: int
    share: float
    labels: dict[str, float]
    places: tuple[Place, ...]
    drives: tuple[Drive, ...]

    def to_dict(self, top: int) -> dict[str, Any]:
        """Return it with its `top` strongest drives of each label."""
        return {
            "expert": self.number,
            "share": self.share,
            "labels": self.labels,
            "columns": [vars(place) for place in self.places],
            "drives": [vars(drive) for drive in self.strongest(top)],
        }

    def strongest(self, top: int) -> list[Drive]:
        """Return the `top` strongest drives of each label."""
        kept: list[Drive] = []
        for label in self.labels:
            kept += [drive for drive in self.drives if drive.label == label][:top]
        return kept


@dataclass(frozen=True, eq=False)
class ExpertsFound:
    """The experts of a classifier, those with the largest shares first.

    after, before : what is believed of their number and of alpha, given the data and without them
    """

    target: str
    levels: tuple[str, ...]
    n_rows: int
    n_labelled: int
    experts: tuple[Expert, ...]
    tasks: TaskUsage | None
    after: Belief
    before: Belief

    def to_dict(self, top: int = 5) -> dict[str, Any]:
        """Return what `glfm explore --json` prints."""
        out: dict[str, Any] = {
            "target": self.target,
            "levels": list(self.levels),
            "rows": self.n_rows,
            "labelled": self.n_labelled,
            "experts": [expert.to_dict(top) for expert in self.experts],
        }
        out |= {"posterior": self.after.to_dict(), "prior": self.before.to_dict()}
        return out if self.tasks is None else out | {"tasks": self.tasks.to_dict()}


def describe_experts(trained: Trained) -> ExpertsFound:
    """Return the experts of weight above 0.005; O(H P^3).

    Raises UsageError: the fit was made by sampling.
    """
    classifier = trained.classifier
    if classifier.fitted.draws:
        raise UsageError(
            "a fit by sampling has no experts to show: each draw has its own",
            hint="Fit without --set inference=gibbs to see experts.",
        )
    q = classifier.experts
    share = q.pi if classifier.task is None else classifier.task_weights.mean(axis=0)
    seen = _see(q)
    law = seen.law
    p = classifier.label_probabilities(law)
    named = {known.column.name: known for known in trained.features}
    used = [named[name] for name in classifier.seen.columns]
    posterior = as_posterior(classifier.seen.features, law)
    rows = np.arange(q.H)
    marginals = predict(posterior, dict.fromkeys(range(len(used)), rows), RANGE)
    found: list[Expert] = []
    for h in np.argsort(-share, kind="stable"):
        if share[h] > DOMINANT:
            places = tuple(
                _place(known.column.name, known.levels, posterior.links[d], marginals[d], int(h))
                for d, known in enumerate(used)
            )
            labels = dict(zip(trained.levels, map(float, p[h]), strict=True))
            drives = _drives(trained, seen, int(h))
            found.append(Expert(len(found) + 1, float(share[h]), labels, places, drives))
    return ExpertsFound(
        trained.target.column.name,
        trained.levels,
        trained.n_rows,
        trained.n_labelled,
        tuple(found),
        trained.tasks,
        *believed(classifier),
    )


@dataclass(frozen=True, eq=False)
class _Seen:
    """What experts say of features.

    law : of H rows, of which row h is known to be of expert h and nothing else
    effect (H, K, P), sd (H, P) : what a standard deviation of a feature does to a score
    """

    law: LabelLaw
    effect: Array
    sd: Array


def _see(q: Experts | FactorExperts) -> _Seen:
    if isinstance(q, FactorExperts):
        low = LowRank.of(q)
        coefficients = low.coefficients
        law = _own_law(q.core, low.cov, low.center, low.spread)
        effect = np.einsum("hpl,hkl->hkp", coefficients, q.core.mw[:, :, :-1])
        own = q.core.Sw[:, :-1, :-1]
        sd = np.sqrt(np.einsum("hpk,hkl,hpl->hp", coefficients, own, coefficients, optimize=True))
        return _Seen(law, effect * low.spread[:, None], sd * low.spread)
    cov = np.linalg.inv(q.nB)
    spread = np.sqrt(np.einsum("hpp->hp", cov))
    sd = np.sqrt(np.einsum("hpp->hp", q.Sw)[:, :-1]) * spread
    law = _own_law(q, cov, q.m, spread)
    return _Seen(law, q.mw[:, :, :-1] * spread[:, None], sd)


def _own_law(q: Experts, cov: Array, center: Array, spread: Array) -> LabelLaw:
    """Return the law of H rows, each of its own expert; cov is of what the rules act on."""
    H, w = q.H, q.mw[:, :, :-1]
    xb = np.hstack([q.m, np.ones((H, 1))])
    mean = np.einsum("hkp,hp->hk", q.mw, xb)
    var = 1.0 + np.einsum("hp,hpq,hq->h", xb, q.Sw, xb)
    var = var + np.einsum("hpq,hqp->h", q.Sw[:, :-1, :-1], cov)
    var = var[:, None] + np.einsum("hkp,hpq,hkq->hk", w, cov, w)

    def tiled(values: Array) -> Array:
        return np.broadcast_to(values, (H, *values.shape))

    none = np.zeros((H, H, q.K))
    return LabelLaw(np.eye(H), tiled(mean), tiled(var), none, tiled(center), tiled(spread**2))


def _place(name: str, levels: tuple[str, ...], link: Link, marginal: Marginal, h: int) -> Place:
    """Return where a column lies among the rows of expert h."""
    if link.discrete:
        assert marginal.probabilities is not None
        best = int(np.argmax(marginal.probabilities[h]))
        return Place(name, levels[best], None, None, float(marginal.probabilities[h, best]))
    low, center, high = (float(value) for value in marginal.quantiles[h])
    return Place(name, center, low, high, None)


def _drives(trained: Trained, seen: _Seen, h: int) -> tuple[Drive, ...]:
    """Return what the features do to the scores of labels in expert h, the strongest first."""
    seen_as = trained.classifier.seen
    named = {known.column.name: known for known in trained.features}
    features = [
        text
        for name, feature in zip(seen_as.columns, seen_as.features, strict=True)
        for text in feature.names(name, named[name].levels, trained.levels)
    ]
    features += [f"{seen_as.columns[d]} missing" for d in seen_as.gaps.columns]
    of_label = seen_as.label.link.latent_levels()  # of two levels the second has the score
    scored = [trained.levels[r if isinstance(r, int) else -1] for r in of_label]
    drives = [
        Drive(label, feature, float(seen.effect[h, k, p]), float(seen.sd[h, p]))
        for k, label in enumerate(scored)
        for p, feature in enumerate(features)
    ]
    return tuple(sorted(drives, key=lambda drive: -abs(drive.effect)))
