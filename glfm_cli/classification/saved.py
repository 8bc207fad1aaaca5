"""A classifier in a folder NAME.glfm, as every saved fit: written during a run, resumed, read.

    run.json, types.yaml                         as for tables; what it says of the label besides
    links.arrow                                  how features and the label are seen
    chain-N.draws.arrow, chain-N.state.arrow     what is left of a restart, and where it stands
    pooling.arrow                                what predicts beside the experts

Numbers and text only, checked before they are trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier, among
from glfm_cli.classification.features import (
    Calibrated,
    LatentColumn,
    label_column,
    seen_as,
    unbound,
)
from glfm_cli.classification.fit import ExpertsFit, plan_of
from glfm_cli.classification.gaps import Indicators
from glfm_cli.classification.keeping import NAMES, POOLING, WEIGHTS, hash_of, layout_of
from glfm_cli.classification.label_trees import LabelTrees
from glfm_cli.classification.pooling import COMPLETE, NONE, NoPooling, StackedPooling
from glfm_cli.classification.trained import Trained
from glfm_cli.encoding import LearntColumn
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.iqgme import FactorExperts, IqgmeConfig, Member
from glfm_cli.latent.iqgme.packing import member_in, under
from glfm_cli.latent.model import FLOAT_MAX, take
from glfm_cli.links import LinkConfig, link_from
from glfm_cli.schema import Column, Role
from glfm_cli.store import (
    ClassifierHeader,
    Header,
    check_folder,
    read_header,
)
from glfm_cli.store.arrays import read_one
from glfm_cli.store.folder import (
    HEADER,
    LINKS,
    map_file,
    read_small,
)
from glfm_cli.store.log import read_draws, read_state

MOST_BYTES = 64 * 2**20  # of run.json
FARTHEST = 1e100  # from 0, of a threshold or of a column's units


def is_classifier(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is that of a classifier, be it damaged or not."""
    path = Path(folder)
    if not (path / HEADER).is_file():
        return False
    try:
        content = json.loads(read_small(path, HEADER, MOST_BYTES))
    except (GlfmError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "classifier" in content


def read_kept(folder: Path) -> tuple[Header, ClassifierHeader]:
    """Return what a folder says of its classifier, checked.

    Raises StoreError: a file is missing or damaged, or it is no classifier.
    """
    check_folder(folder)
    header = read_header(folder)
    if header.classifier is None:
        raise StoreError(
            "does not describe a classifier",
            file=str(folder / HEADER),
            hint="`glfm classify ... --save DIR.glfm` makes such a folder.",
        )
    plan = header.plan
    if plan != plan_of(header.model_config, plan.chains, plan.seed):
        raise StoreError("`plan` does not fit the settings", file=str(folder / HEADER))
    return header, header.classifier


def load_trained(folder: str | os.PathLike[str]) -> Trained:
    """Return a classifier that was saved.

    Raises StoreError: it is no such folder, a file of it is damaged or was changed, or nothing
        predicts yet.
    """
    path = Path(folder)
    header, own = read_kept(path)
    try:
        return _trained(path, header, own)
    except StoreError:
        raise
    except (GlfmError, ValueError, KeyError, TypeError, np.linalg.LinAlgError) as error:
        raise StoreError(f"cannot be used: {error}", file=str(path)) from None


def _read_hashed(path: Path, name: str, expected: str) -> dict[str, Array]:
    buffer = map_file(path, name)
    if hash_of(buffer) != expected:
        raise StoreError("is not what was written: its hash is another", file=str(path / name))
    return read_one(buffer)


@dataclass(frozen=True)
class _Columns:
    """The columns of a kept classifier by their numbers, and how links were configured."""

    features: Mapping[int, LearntColumn]
    target: LearntColumn
    config: LinkConfig

    @classmethod
    def of(cls, header: Header, own: ClassifierHeader, numbers: Mapping[str, Array]) -> _Columns:
        known: dict[int, LearntColumn] = {}
        target = None
        for d, (column, one) in enumerate(zip(header.columns(), header.modelled, strict=True)):
            if column.name == own.target:
                target = LearntColumn(column, own.labels, np.empty(0))
                if not set(own.labels) <= set(one.levels):
                    raise ValueError("'labels' are not levels of the target")
            else:
                part = (numbers, f"{d}.sample", np.float64, (3,))
                known[d] = LearntColumn(
                    column,
                    one.levels,
                    np.empty(0) if one.levels else take(*part, largest=FLOAT_MAX),
                )
        if target is None:
            raise ValueError(f"there is no column '{own.target}'")
        return cls(known, target, header.link_config)

    @property
    def task(self) -> LearntColumn | None:
        every = self.features.values()
        return next((known for known in every if known.column.role is Role.TASK), None)

    def calibrated(self, numbers: Mapping[str, Array]) -> Calibrated:
        """Return how those columns are seen that were used."""
        used = [(d, known) for d, known in self.features.items() if f"{d}.scale" in numbers]
        features = tuple(
            _seen_in(known.column, len(known.levels), unbound(self.config), under(numbers, f"{d}."))
            for d, known in used
        )
        column = label_column(len(self.target.levels))
        of_label = under(numbers, "label.")
        label = _seen_in(column, len(self.target.levels), LinkConfig(), of_label)
        there = take(numbers, "there", np.int64, (None,))
        gaps = _gaps_in(under(numbers, "gaps."), [d for d, _ in used])
        names = tuple(known.column.name for _, known in used)
        return Calibrated(names, features, label, there, gaps)


def _trained(path: Path, header: Header, own: ClassifierHeader) -> Trained:
    numbers = _read_hashed(path, LINKS, header.links_hash)
    columns = _Columns.of(header, own, numbers)
    seen, task, n_levels = columns.calibrated(numbers), columns.task, len(own.labels)
    fitted = _fitted_in(path, header, seen)
    if task is not None:
        there, n_tasks = seen.there, len(task.levels)
        if there.size and not (there.min() >= 0 and there.max() < n_tasks):
            raise ValueError("'there' is out of range")
        members = tuple(among(member, there, n_tasks) for member in fitted.members)
        fitted = replace(fitted, members=members)
    _check_levels(fitted, n_levels)
    name = None if task is None else task.column.name
    classifier = Classifier(seen, fitted, fitted.members, name, config=header.model_config)
    if own.pooling_hash and task is not None:
        arrays = _read_hashed(path, POOLING, own.pooling_hash)
        pooling = _pooling_in(arrays, columns, len(task.levels), header.model_config)
        classifier = replace(classifier, pooling=pooling)
    elif own.pooling_hash:
        arrays = _read_hashed(path, POOLING, own.pooling_hash)
        trees = LabelTrees.unpack(arrays, seen.n_latent, n_levels)
        classifier = replace(classifier, trees=trees)
    counts = (header.n_rows, own.n_labelled, header.plan.seed)
    learnt = tuple(columns.features.values())
    return Trained(header.schema, header.table, learnt, columns.target, classifier, *counts)


def _fitted_in(path: Path, header: Header, seen: Calibrated) -> ExpertsFit:
    """Return what restarts or chains have left, from their logs."""
    layout, chains = layout_of(header, seen), []
    bounds: list[list[float]] = []
    for index in range(header.plan.chains):
        found = read_state(path, index)
        if found is None:
            bounds.append([])
            continue
        chains.append(read_draws(path, index, found[0], layout))
        bounds.append(found[1].get("ascent.bounds", np.empty(0)).tolist())
    kept = tuple(chain for chain in chains if chain)
    hint = f"Continue with `glfm classify ... --resume {quote(str(path))}`."
    if not kept:
        raise StoreError("nothing was saved before the run ended", file=str(path), hint=hint)
    if header.model_config.inference == "gibbs":
        posterior = Posterior(layout.model, (), (), kept)
    else:
        try:
            posterior = Posterior.of_restarts(layout.model, (), (), kept)
        except ValueError as error:
            raise StoreError(f"cannot be used: {error}", file=str(path), hint=hint) from None
    return ExpertsFit.of(posterior, bounds, header.plan)


def _check_levels(fitted: ExpertsFit, n_levels: int) -> None:
    """Raise ValueError unless the fit is of a label of so many levels."""
    every = [*(q.experts for q in fitted.members), *fitted.draws]
    if any(n_levels - 1 != (q.core if isinstance(q, FactorExperts) else q).K for q in every):
        raise ValueError(f"it is not of a label of {n_levels} levels")


def _pooling_in(
    numbers: Mapping[str, Array], columns: _Columns, n_tasks: int, config: IqgmeConfig
) -> StackedPooling:
    """Return what predicts beside shared experts, fitted by their configuration."""
    weights = take(numbers, WEIGHTS, np.float64, (None,))
    if weights.size not in (2, 3) or not np.all(weights > 0) or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError(f"'{WEIGHTS}' does not fit")

    def beside(prefix: str) -> Classifier:
        part = under(numbers, prefix)
        seen, n_levels = columns.calibrated(part), len(columns.target.levels)
        fitted = _members_in(under(part, "fit."), seen, n_levels)
        _check_levels(fitted, n_levels)
        return Classifier(seen, fitted, fitted.members, None, config=config)

    of_task = {j: f"{NONE}.{j}." for j in range(n_tasks)}
    fits = {j: beside(prefix) for j, prefix in of_task.items() if under(numbers, prefix)}
    if (weights.size == 3) != bool(fits):
        raise ValueError(f"'{WEIGHTS}' does not fit the tasks")
    named = dict(zip(NAMES, map(float, weights), strict=False))
    return StackedPooling(named, beside(f"{COMPLETE}."), NoPooling(fits) if fits else None)


def _members_in(part: Mapping[str, Array], seen: Calibrated, n_levels: int) -> ExpertsFit:
    members: list[Member] = []
    while under(part, f"{len(members)}."):
        one = under(part, f"{len(members)}.")
        members.append(member_in(one, seen.n_latent, n_levels, None))
    total = sum(member.weight for member in members)
    if min((m.weight for m in members), default=-1.0) < 0.0 or abs(total - 1.0) > 1e-9:
        raise ValueError("the weights of its fits do not add up to 1")
    return ExpertsFit(tuple(members), converged=True)


def _gaps_in(part: Mapping[str, Array], used: Sequence[int]) -> Indicators:
    """Return the indicators of missing cells among columns with these numbers."""
    if not part:
        return Indicators()
    numbers = take(part, "columns", np.int64, (None,))
    if not set(numbers.tolist()) <= set(used):
        raise ValueError("'gaps' are of a column that is not used")
    codes = take(part, "codes", np.float64, (numbers.size, 2), largest=FARTHEST)
    noise = take(part, "noise", np.float64, (numbers.size,), largest=FARTHEST)
    if np.any(noise < 0.0):
        raise ValueError("the noise of 'gaps' is below 0")
    return Indicators(np.array([used.index(d) for d in numbers]), codes, noise)


def _seen_in(
    column: Column, n_levels: int, config: LinkConfig, part: Mapping[str, Array]
) -> LatentColumn:
    """Return how a column is seen, from its numbers."""
    try:
        link = link_from(seen_as(column, n_levels), n_levels, under(part, "link."), config)
        params = under(part, "params.")
        link.check_params(params)
        shift, scale = (float(take(part, name, np.float64, ())) for name in ("shift", "scale"))
        if not (0 < scale < FARTHEST and abs(shift) < FARTHEST):
            raise ValueError(f"'scale' is {scale:g}, 'shift' is {shift:g}")
        codes = take(part, "codes", np.float64, (None, None))
        noise = take(part, "noise", np.float64, (codes.shape[1],))
        if len(codes) not in (0, n_levels) or np.any(noise < 0.0):
            raise ValueError("'codes' or 'noise' does not fit")
        share = take(part, "share", np.float64, (n_levels,)) if "share" in part else np.empty(0)
        if share.size and (np.any(share < 0.0) or abs(share.sum() - 1.0) > 1e-9):
            raise ValueError("'share' does not add up to 1")
        on = codes == codes.max(axis=0, initial=-np.inf)
        indicators = codes.shape[1] > 1 and not share.size
        if indicators and (np.any(on.sum(axis=0) != 1) or np.any(on.sum(axis=1) > 1)):
            raise ValueError("'codes' are not those of indicators of levels")
        if any(np.any(np.abs(value) > FARTHEST) for value in (*params.values(), codes, noise)):
            raise ValueError("a number is too far from 0")
    except ValueError as error:
        raise ValueError(f"column '{column.name}': {error}") from None
    return LatentColumn(link, params, shift, scale, codes, noise, share)
