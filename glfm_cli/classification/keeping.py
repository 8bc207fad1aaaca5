"""A classifier kept while it is fitted: in a new folder, or in that of an earlier run."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.features import Calibrated, LatentColumn
from glfm_cli.classification.fit import Fitting, plan_of
from glfm_cli.classification.pooling import COMPLETE, NONE, PARTIAL, StackedPooling
from glfm_cli.classification.task import Task
from glfm_cli.classification.trained import learnt_features
from glfm_cli.encoding import LearntColumn
from glfm_cli.errors import StoreError
from glfm_cli.inference.run import Stop
from glfm_cli.latent.iqgme import ExpertAscent
from glfm_cli.latent.iqgme.packing import out, prefixed
from glfm_cli.store import (
    EVERY,
    ClassifierHeader,
    Header,
    Modelled,
    Store,
    hash_of_data,
    hash_of_types,
    versions,
)
from glfm_cli.store.arrays import to_stream
from glfm_cli.store.folder import (
    LINKS,
    clear_temporaries,
    replace_file,
    writing,
)
from glfm_cli.store.log import Layout

POOLING = "pooling.arrow"
NAMES = (PARTIAL, COMPLETE, NONE)  # in the order of their weights
WEIGHTS = "weights"


class ClassifierStore(Store):
    """The folder of a classifier while a run writes to it: its keeper."""

    @classmethod
    def resume(
        cls, folder: Path, header: Header, content: bytes, layout: Layout, every: float
    ) -> Self:
        """Return a folder open to go on with; StoreError when it is of another table."""
        if hash_of(content) != header.links_hash:
            raise StoreError(
                "the features are not seen as this table would have them", file=str(folder / LINKS)
            )
        store = cls(folder, header, (), every, layout)
        with writing(folder):
            clear_temporaries(folder)
        return store

    def keep_beside(self, classifier: Classifier) -> None:
        """Keep what predicts beside the fit."""
        content = b""
        if classifier.pooling is not None:
            content = to_stream(_pooling_out(classifier.pooling, self.header))
        elif classifier.trees is not None:
            content = to_stream(classifier.trees.pack())
        if content:
            replace_file(self.folder, POOLING, [content])
        assert self.header.classifier is not None
        pooling_hash = hash_of(content) if content else ""
        own = replace(self.header.classifier, pooling_hash=pooling_hash)
        self.header = replace(self.header, classifier=own)


@dataclass(frozen=True)
class Keeping:
    """Where a classifier is kept: a new folder, or that of a run to go on with."""

    folder: Path
    header: Header
    resumed: bool
    every: float = EVERY

    @classmethod
    def of(
        cls, folder: Path, task: Task, table: pa.Table, how: Fitting, kept: Header | None
    ) -> Keeping:
        """Return where a fit is kept; `kept` is what an earlier run says of itself, if any.

        Raises StoreError: the earlier run was of another table.
        """
        data_hash, columns = hash_of_data(task.data), (*task.features, task.target)
        if kept is not None:
            if kept.data_hash == data_hash:
                return cls(folder, kept, True)
            raise StoreError(
                "was made with another table than the one given now",
                file=str(folder),
                hint="Give the table of the first run.",
            )
        header = Header(
            model=ExpertAscent.name,
            model_config=how.config,
            link_config=how.links,
            plan=plan_of(how.config, how.chains, how.seed),
            schema=task.schema,
            n_rows=task.data.n_rows,
            table=tuple(table.column_names),
            modelled=tuple(
                Modelled(e.column.name, str(e.column.type), e.index, e.levels)
                for e in sorted(columns, key=lambda e: e.index)
            ),
            ids=task.data.ids,
            notes=task.data.notes,
            data_hash=data_hash,
            types_hash=hash_of_types(task.schema),
            has_data=False,
            file=None,
            versions=versions(),
            classifier=ClassifierHeader(task.name, task.levels, int(np.sum(~np.isnan(task.code)))),
        )
        return cls(folder, header, False)

    def begun(self, seen: Calibrated, learnt: Sequence[LearntColumn]) -> ClassifierStore:
        """Return the folder, made or opened again."""
        arrays, place = _calibrated_out(seen, self.header), _places(self.header)
        for known in learnt:
            if not known.levels:
                ends = np.quantile(known.sample, [0.0, 0.5, 1.0], method="nearest")
                arrays[f"{place[known.column.name]}.sample"] = ends
        header, content = self.header, to_stream(arrays)
        layout = layout_of(header, seen)
        if self.resumed:
            return ClassifierStore.resume(self.folder, header, content, layout, self.every)
        return ClassifierStore.create(
            self.folder, header, (), None, every=self.every, content=content, layout=layout
        )


def fit_and_keep(
    fit: Callable[..., Classifier], keeping: Keeping, task: Task, stop: Stop
) -> Classifier:
    """Return the classifier that `fit` gives, each of its states kept on the way."""
    began, learnt, stores = time.monotonic(), learnt_features(task), []

    def keep(seen: Calibrated) -> ClassifierStore:
        stores.append(keeping.begun(seen, learnt))
        return stores[0]

    try:
        classifier = fit(keep=keep)
        stores[0].keep_beside(classifier)
        stores[0].finish(time.monotonic() - began)
        return classifier
    finally:
        for store in stores:
            store.close()


def hash_of(content: bytes | pa.Buffer) -> str:
    return hashlib.sha256(memoryview(content)).hexdigest()


def _places(header: Header) -> dict[str, int]:
    """Return the number of every column by its name."""
    return {one.name: d for d, one in enumerate(header.modelled)}


def layout_of(header: Header, seen: Calibrated) -> Layout:
    return Layout(header.latent, (), header.n_rows, seen.n_latent)


def _calibrated_out(seen: Calibrated, header: Header) -> dict[str, Array]:
    """Return the numbers of the label, and of features by the number of their column."""
    place = _places(header)
    arrays = prefixed("label.", _column_out(seen.label)) | {"there": seen.there.astype(np.int64)}
    for name, feature in zip(seen.columns, seen.features, strict=True):
        arrays |= prefixed(f"{place[name]}.", _column_out(feature))
    gaps = seen.gaps
    if gaps.columns.size:
        numbers = [place[seen.columns[d]] for d in gaps.columns]
        own = {"columns": np.array(numbers), "codes": gaps.codes, "noise": gaps.noise}
        arrays |= prefixed("gaps.", own)
    return arrays


def _pooling_out(pooling: StackedPooling, header: Header) -> dict[str, Array]:
    arrays = {WEIGHTS: np.array([pooling.weights[n] for n in NAMES if n in pooling.weights])}
    fits = {f"{COMPLETE}.": pooling.pooled}
    if pooling.alone is not None:
        fits |= {f"{NONE}.{j}.": one for j, one in pooling.alone.fits.items()}
    for prefix, one in fits.items():
        assert isinstance(one, Classifier)
        arrays |= prefixed(prefix, _calibrated_out(one.seen, header))
        for i, latent in enumerate(one.fitted.members or one.fitted.draws):
            arrays |= prefixed(f"{prefix}fit.{i}.", out(latent))
    return arrays


def _column_out(seen: LatentColumn) -> dict[str, Array]:
    units = {"shift": np.array(seen.shift), "scale": np.array(seen.scale)}
    units |= {"codes": seen.codes, "noise": seen.noise}
    if seen.share.size:
        units["share"] = seen.share
    return units | prefixed("link.", seen.link.constants()) | prefixed("params.", seen.params)
