"""A classifier in a folder NAME.glfm, as every saved fit: written during a run, gone on with, read.

    run.json, types.yaml                         as for tables, of the kind "classifier"
    constants.arrow                              how features are seen
    chain-N.draws.arrow, chain-N.state.arrow     what is left of a restart, and where it stands
    pooling.arrow                                what predicts beside experts that tasks share

Numbers and text only, checked before they are trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier, among
from glfm_cli.classification.features import Calibrated, LatentColumn, seen_as, unbound
from glfm_cli.classification.fit import Fitted, model_of
from glfm_cli.classification.header import (
    ClassifierHeader,
    column_out,
    hash_of,
    read_classifier_header,
)
from glfm_cli.classification.pooling import COMPLETE, NONE, PARTIAL, NoPooling, StackedPooling
from glfm_cli.classification.trained import Trained
from glfm_cli.encoding import LearntColumn
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.iqgme import FactorExperts, Member
from glfm_cli.latent.iqgme.packing import member_in, out, prefixed, under
from glfm_cli.latent.model import take
from glfm_cli.links import LinkConfig, link_from
from glfm_cli.schema import COLUMN_TYPES, Column, Role
from glfm_cli.store import EVERY, new_folder
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.store.folder import (
    HEADER,
    TYPES,
    clear_temporaries,
    map_file,
    replace_file,
    writing,
)
from glfm_cli.store.lock import lock
from glfm_cli.store.log import FolderLog, Layout, read_draws, read_state

CONSTANTS, POOLING = "constants.arrow", "pooling.arrow"
NAMES = (PARTIAL, COMPLETE, NONE)  # in the order of their weights
WEIGHTS = "weights"
FARTHEST = 1e100  # from 0, of a threshold or of a column's units


class ClassifierStore:
    """The folder of a classifier while a run writes to it: its keeper."""

    def __init__(
        self, folder: Path, header: ClassifierHeader, n_latent: int, every: float = EVERY
    ) -> None:
        self.folder, self.header = folder, header
        self._layout = _layout(header, n_latent)
        self._every = every
        self._lock = lock(folder)

    @classmethod
    def create(
        cls, folder: Path, header: ClassifierHeader, constants: bytes, n_latent: int, every: float
    ) -> ClassifierStore:
        """Write a new folder, which appears as a whole, and return it open.

        Raises
        ------
        OutputError
            Something of that name exists, or it cannot be written.
        """
        header = replace(header, constants_hash=hash_of(constants))
        with new_folder(folder) as draft:
            replace_file(draft, CONSTANTS, [constants])
            replace_file(draft, TYPES, [header.schema.to_yaml().encode()])
            replace_file(draft, HEADER, [header.to_json().encode()])
        return cls(folder, header, n_latent, every)

    @classmethod
    def reopen(
        cls, folder: Path, header: ClassifierHeader, constants: bytes, n_latent: int, every: float
    ) -> ClassifierStore:
        """Return a folder open to go on with; StoreError when it is of another table."""
        if hash_of(constants) != header.constants_hash:
            raise StoreError(
                "the features are not seen as this table would have them",
                file=str(folder / CONSTANTS),
            )
        store = cls(folder, header, n_latent, every)
        with writing(folder):
            clear_temporaries(folder)
        return store

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def chain(self, index: int) -> FolderLog:
        """Open the log of a restart."""
        return FolderLog(self.folder, index, self._layout, self.header.plan.seed, self._every)

    def finish(
        self, pooling: StackedPooling | None, place: Mapping[str, int], seconds: float, ended: bool
    ) -> None:
        """Keep what predicts beside the fit, and note how it ended."""
        content = b"" if pooling is None else to_stream(_pooling_out(pooling, place))
        if content:
            replace_file(self.folder, POOLING, [content])
        self.header = replace(
            self.header,
            pooling_hash=hash_of(content) if content else "",
            seconds=self.header.seconds + seconds,
            ended=ended,
        )
        replace_file(self.folder, HEADER, [self.header.to_json().encode()])


@dataclass(frozen=True)
class Keeping:
    """Where a classifier is kept: a new folder, or that of a run to go on with."""

    folder: Path
    header: ClassifierHeader
    resumed: bool
    every: float = EVERY

    def begun(self, seen: Calibrated, learnt: Sequence[LearntColumn]) -> ClassifierStore:
        """Return the folder, made or opened again."""
        place = {known.column.name: d for d, known in enumerate(learnt)}
        used = set(seen.columns)
        features = tuple(
            column_out(known) | {"used": known.column.name in used} for known in learnt
        )
        arrays = _calibrated_out(seen, place)
        for known in learnt:
            if not known.levels:
                ends = np.quantile(known.sample, [0.0, 0.5, 1.0], method="nearest")
                arrays[f"{place[known.column.name]}.sample"] = ends
        header = replace(self.header, features=features)
        begin = ClassifierStore.reopen if self.resumed else ClassifierStore.create
        return begin(self.folder, header, to_stream(arrays), seen.n_latent, self.every)


def load_trained(folder: str | os.PathLike[str]) -> Trained:
    """Return a classifier that was saved.

    Raises
    ------
    StoreError
        It is no such folder, a file of it is damaged or was changed, or nothing predicts yet.
    """
    path = Path(folder)
    header = read_classifier_header(path)
    try:
        numbers = _read_hashed(path, CONSTANTS, header.constants_hash)
        return _trained(path, header, numbers)
    except StoreError:
        raise
    except (GlfmError, ValueError, KeyError, TypeError, np.linalg.LinAlgError) as error:
        raise StoreError(f"cannot be used: {error}", file=str(path)) from None


def _layout(header: ClassifierHeader, n_latent: int) -> Layout:
    return Layout(model_of(header.config), (), header.n_rows, n_latent)


# ----------------------------------------------------------------------------------- writing


def _calibrated_out(seen: Calibrated, place: Mapping[str, int]) -> dict[str, Array]:
    """Return the numbers of the label, and of features by the place of their column."""
    arrays = prefixed("label.", _column_out(seen.label)) | {"there": seen.there.astype(np.int64)}
    for name, feature in zip(seen.columns, seen.features, strict=True):
        arrays |= prefixed(f"{place[name]}.", _column_out(feature))
    return arrays


def _pooling_out(pooling: StackedPooling, place: Mapping[str, int]) -> dict[str, Array]:
    arrays = {WEIGHTS: np.array([pooling.weights[n] for n in NAMES if n in pooling.weights])}
    fits = {f"{COMPLETE}.": pooling.pooled}
    if pooling.alone is not None:
        fits |= {f"{NONE}.{j}.": one for j, one in pooling.alone.fits.items()}
    for prefix, one in fits.items():
        assert isinstance(one, Classifier)
        arrays |= prefixed(prefix, _calibrated_out(one.seen, place))
        for i, latent in enumerate(one.fitted.members or one.fitted.draws):
            arrays |= prefixed(f"{prefix}fit.{i}.", out(latent))
    return arrays


def _column_out(seen: LatentColumn) -> dict[str, Array]:
    units = {"shift": np.array(seen.shift), "scale": np.array(seen.scale)}
    return units | prefixed("link.", seen.link.constants()) | prefixed("params.", seen.params)


# ----------------------------------------------------------------------------------- reading


def _read_hashed(path: Path, name: str, expected: str) -> dict[str, Array]:
    buffer = map_file(path, name)
    if hash_of(buffer) != expected:
        raise StoreError("is not what was written: its hash is another", file=str(path / name))
    return read_one(buffer)


def _trained(path: Path, header: ClassifierHeader, numbers: dict[str, Array]) -> Trained:
    resolved = {column.name: column for column in header.schema.resolve(header.table)}
    learnt = [
        _column_in(said, resolved, under(numbers, f"{d}."))
        for d, said in enumerate(header.features)
    ]
    used = [d for d, said in enumerate(header.features) if said["used"]]
    target = _column_in(header.target, resolved, {})
    task = next((known for known in learnt if known.column.role is Role.TASK), None)
    seen = _calibrated_in(numbers, learnt, used, target, header.link_config)
    fitted = _fitted_in(path, header, seen)
    if task is not None:
        there, n_tasks = seen.there, len(task.levels)
        if there.size and not (there.min() >= 0 and there.max() < n_tasks):
            raise ValueError("'there' is out of range")
        members = tuple(among(member, there, n_tasks) for member in fitted.members)
        fitted = replace(fitted, members=members)
    name = None if task is None else task.column.name
    _check_levels(fitted, len(target.levels))
    classifier = Classifier(seen, fitted, fitted.members, name)
    if header.pooling_hash and task is not None:
        arrays = _read_hashed(path, POOLING, header.pooling_hash)
        pooling = _pooling_in(arrays, learnt, target, len(task.levels), header.link_config)
        classifier = replace(classifier, pooling=pooling)
    counts = (header.n_rows, header.n_labelled, header.plan.seed)
    return Trained(header.schema, header.table, tuple(learnt), target, classifier, *counts)


def _fitted_in(path: Path, header: ClassifierHeader, seen: Calibrated) -> Fitted:
    """Return what restarts or chains have left, from their logs."""
    layout, chains = _layout(header, seen.n_latent), []
    bounds: list[list[float]] = []
    for index in range(header.plan.chains):
        found = read_state(path, index)
        if found is None:
            bounds.append([])
            continue
        chains.append(read_draws(path, index, found[0], layout))
        bounds.append(found[1].get("ascent.bounds", np.empty(0)).tolist())
    kept = tuple(chain for chain in chains if chain)
    hint = f"Go on with `glfm classify ... --resume {path}`."
    if not kept:
        raise StoreError("nothing was kept before the run ended", file=str(path), hint=hint)
    if header.config.inference == "gibbs":
        posterior = Posterior(layout.model, (), (), kept)
    else:
        try:
            posterior = Posterior.of_restarts(layout.model, (), (), kept)
        except ValueError as error:
            raise StoreError(f"cannot be used: {error}", file=str(path), hint=hint) from None
    return Fitted.of(posterior, bounds, header.plan)


def _check_levels(fitted: Fitted, n_levels: int) -> None:
    """Raise ValueError unless the fit is of a label of so many levels."""
    every = [*(q.experts for q in fitted.members), *fitted.draws]
    if any(n_levels - 1 != (q.core if isinstance(q, FactorExperts) else q).K for q in every):
        raise ValueError(f"it is not of a label of {n_levels} levels")


def _calibrated_in(
    numbers: Mapping[str, Array],
    learnt: Sequence[LearntColumn],
    used: Sequence[int],
    target: LearntColumn,
    config: LinkConfig,
) -> Calibrated:
    """Return how the columns at the places `used` are seen."""
    names = tuple(learnt[d].column.name for d in used)
    each = [(learnt[d].column, len(learnt[d].levels), under(numbers, f"{d}.")) for d in used]
    features = tuple(_seen_in(*one[:2], unbound(config), one[2]) for one in each)
    column = target.column.of_levels()
    label = _seen_in(column, len(target.levels), LinkConfig(), under(numbers, "label."))
    there = take(numbers, "there", np.int64, (None,))
    return Calibrated(names, features, label, there)


def _pooling_in(
    numbers: Mapping[str, Array],
    learnt: Sequence[LearntColumn],
    target: LearntColumn,
    n_tasks: int,
    config: LinkConfig,
) -> StackedPooling:
    """Return what predicts beside shared experts."""
    weights = take(numbers, WEIGHTS, np.float64, (None,))
    if weights.size not in (2, 3) or not np.all(weights > 0) or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError(f"'{WEIGHTS}' does not fit")

    def beside(prefix: str) -> Classifier:
        part = under(numbers, prefix)
        used = [d for d in range(len(learnt)) if under(part, f"{d}.")]
        seen = _calibrated_in(part, learnt, used, target, config)
        fitted = _members_in(under(part, "fit."), seen, len(target.levels))
        _check_levels(fitted, len(target.levels))
        return Classifier(seen, fitted, fitted.members, None)

    of_task = {j: f"{NONE}.{j}." for j in range(n_tasks)}
    fits = {j: beside(prefix) for j, prefix in of_task.items() if under(numbers, prefix)}
    if (weights.size == 3) != bool(fits):
        raise ValueError(f"'{WEIGHTS}' does not fit the tasks")
    named = dict(zip(NAMES, map(float, weights), strict=False))
    return StackedPooling(named, beside(f"{COMPLETE}."), NoPooling(fits) if fits else None)


def _members_in(part: Mapping[str, Array], seen: Calibrated, n_levels: int) -> Fitted:
    members: list[Member] = []
    while under(part, f"{len(members)}."):
        one = under(part, f"{len(members)}.")
        members.append(member_in(one, seen.n_latent, n_levels, None))
    total = sum(member.weight for member in members)
    if min((m.weight for m in members), default=-1.0) < 0.0 or abs(total - 1.0) > 1e-9:
        raise ValueError("the weights of its fits do not add up to 1")
    return Fitted(tuple(members), converged=True)


def _column_in(
    said: Mapping[str, Any], resolved: Mapping[str, Column], part: Mapping[str, Array]
) -> LearntColumn:
    column = replace(resolved[str(said["name"])], type=COLUMN_TYPES[said["type"]])
    levels = tuple(str(level) for level in said["levels"])
    sample = np.empty(0) if levels else take(part, "sample", np.float64, (3,))
    return LearntColumn(column, levels, sample)


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
        if any(np.any(np.abs(value) > FARTHEST) for value in params.values()):
            raise ValueError("a number is too far from 0")
    except ValueError as error:
        raise ValueError(f"column '{column.name}': {error}") from None
    return LatentColumn(link, params, shift, scale)
