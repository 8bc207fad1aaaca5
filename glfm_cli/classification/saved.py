"""A classifier kept in a folder NAME.glfm: `run.json`, `types.yaml` and the numbers `fit.arrow`.

Numbers and text only, checked before they are trusted, as every saved fit.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.features import Choice, Feature, Number, Steps
from glfm_cli.classification.pooling import COMPLETE, NONE, PARTIAL, NoPooling, StackedPooling
from glfm_cli.classification.saved_experts import (
    experts_in,
    experts_out,
    field_names,
    own_in,
    own_out,
)
from glfm_cli.classification.trained import Trained
from glfm_cli.encoding import LearntColumn
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.latent.iqgme import (
    Drawn,
    Experts,
    FactorExperts,
    Fitted,
    FittedDraws,
    FittedTasks,
    Member,
    TaskDeviations,
)
from glfm_cli.latent.model import take
from glfm_cli.links import LinkConfig, link_from
from glfm_cli.schema import Column, ColumnType, Role, Schema
from glfm_cli.store import check_folder, new_folder, versions
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.store.folder import HEADER, TYPES, map_file, read_small, replace_file

FORMAT = 5
OLDER = (3, 4)  # are read, too: tasks have nothing beside shared experts, in 3 no own rules
NUMBERS = "fit.arrow"
NAMES = (PARTIAL, COMPLETE, NONE)  # in the order of their weights
WEIGHTS = "pooling.weights"
MOST_BYTES = 64 * 2**20
KEY = "glfm_classifier"
FOLLOWS = "nB"  # of a draw: is not kept, since it is root root'


def is_classifier(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is one that `save_trained` made, be it damaged or not."""
    path = Path(folder)
    if not (path / HEADER).is_file():
        return False
    try:
        content = json.loads(read_small(path, HEADER, MOST_BYTES))
    except (GlfmError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and KEY in content


def save_trained(trained: Trained, folder: str | os.PathLike[str]) -> None:
    """Keep a fitted classifier in a new folder.

    Raises
    ------
    OutputError
        The folder is there already, or cannot be written.
    """
    numbers = to_stream(_numbers_out(trained))
    types = trained.schema.to_yaml().encode()
    used = set(trained.classifier.columns)
    content = {
        KEY: FORMAT,
        "versions": versions(),
        "table": list(trained.columns),
        "features": [_column_out(known) | {"used": known.column.name in used}
                     for known in trained.features],
        "target": _column_out(trained.target),
        "rows": trained.n_rows,
        "labelled": trained.n_labelled,
        "seed": trained.seed,
        "converged": trained.classifier.converged,
        "types_sha256": hashlib.sha256(types).hexdigest(),
        "numbers_sha256": hashlib.sha256(numbers).hexdigest(),
    }  # fmt: skip
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with new_folder(Path(folder)) as path:
        replace_file(path, TYPES, [types])
        replace_file(path, NUMBERS, [numbers])
        replace_file(path, HEADER, [text.encode()])


def load_trained(folder: str | os.PathLike[str]) -> Trained:
    """Return a classifier that was kept.

    Raises
    ------
    StoreError
        It is no such folder, or a file of it is damaged or was changed.
    """
    path = Path(folder)
    check_folder(path)
    content = _read_header(path)
    types = _read_hashed(path, TYPES, content.get("types_sha256"))
    try:
        schema = Schema.from_yaml(types.decode("utf-8"), file=str(path / TYPES))
        numbers = _read_numbers(path, content.get("numbers_sha256"))
        return _trained(content, schema, numbers)
    except StoreError:
        raise
    except (GlfmError, ValueError, KeyError, TypeError, np.linalg.LinAlgError) as error:
        raise StoreError(f"cannot be used: {error}", file=str(path)) from None


# ----------------------------------------------------------------------------------- writing


def _column_out(known: LearntColumn) -> dict[str, Any]:
    column = known.column
    return {"name": column.name, "type": str(column.type), "levels": list(known.levels)}


def _numbers_out(trained: Trained) -> dict[str, Array]:
    classifier = trained.classifier
    place = {known.column.name: d for d, known in enumerate(trained.features)}
    out = _classifier_out(classifier, place)
    for known in trained.features:
        if not known.levels:
            ends = np.quantile(known.sample, [0.0, 0.5, 1.0], method="nearest")
            out[f"{place[known.column.name]}.sample"] = ends
    pooling = classifier.pooling
    if pooling is not None:
        out[WEIGHTS] = np.array(
            [pooling.weights[name] for name in NAMES if name in pooling.weights]
        )
        beside = {f"{COMPLETE}.": pooling.pooled}
        beside |= (
            {f"{NONE}.{j}.": one for j, one in pooling.alone.fits.items()} if pooling.alone else {}
        )
        for prefix, one in beside.items():
            assert isinstance(one, Classifier)
            out |= {prefix + key: value for key, value in _classifier_out(one, place).items()}
    return out


def _classifier_out(classifier: Classifier, place: Mapping[str, int]) -> dict[str, Array]:
    """Return the numbers of a classifier but for what may predict beside it."""
    out: dict[str, Array] = {}
    for name, feature in zip(classifier.columns, classifier.features, strict=True):
        for key, value in _feature_out(feature).items():
            out[f"{place[name]}.{key}"] = value
    out |= _fit_out(classifier.fitted, classifier.members)
    return out | {"reference": np.array(classifier.reference, dtype=np.int64)}


def _fit_out(
    fitted: Fitted | FittedTasks | FittedDraws, members: tuple[Member, ...]
) -> dict[str, Array]:
    """Return q of the members' experts and the bounds, or all draws and their chains' traces."""
    if isinstance(fitted, FittedDraws):
        draws = {
            name: np.array([getattr(q, name) for q in fitted.draws], dtype=np.float64)
            for name in field_names(Drawn)
            if name != FOLLOWS
        }
        flat = {k: v.reshape(-1, *v.shape[2:]) if v.ndim > 3 else v for k, v in draws.items()}
        return {f"draws.{name}": value for name, value in flat.items()} | {"trace": fitted.trace}
    out = {"bounds": fitted.bounds, "weights": np.array([member.weight for member in members])}
    for i, member in enumerate(members):
        out |= {f"{i}.experts.{k}": array for k, array in experts_out(member.experts).items()}
        if member.shares is not None:
            out[f"{i}.shares"] = member.shares
        if member.own is not None:
            out |= {f"{i}.own.{k}": array for k, array in own_out(member.own).items()}
    return {f"fit.{name}": array for name, array in out.items()}


def _feature_out(feature: Feature) -> dict[str, Array]:
    if isinstance(feature, Number):
        scale = {"mean": np.array(feature.mean), "sd": np.array(feature.sd)}
        return scale | {f"link.{k}": v for k, v in feature.link.constants().items()}
    if isinstance(feature, Steps):
        return {"cuts": feature.cuts}
    assert isinstance(feature, Choice)
    return {"reference": np.array(feature.reference, dtype=np.int64)}


# ----------------------------------------------------------------------------------- reading


def _read_header(path: Path) -> dict[str, Any]:
    file = str(path / HEADER)
    try:
        content = json.loads(read_small(path, HEADER, MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError):
        raise StoreError("is not JSON text", file=file) from None
    if not isinstance(content, dict) or KEY not in content:
        raise StoreError(
            "does not describe a classifier",
            file=file,
            hint="`glfm classify ... --save DIR.glfm` makes such a folder.",
        )
    if content[KEY] not in (*OLDER, FORMAT):
        raise StoreError(
            "this version of the format is not known",
            file=file,
            value=f"{KEY}: {content[KEY]}",
            expected=f"{KEY}: {FORMAT}",
        )
    return content


def _read_hashed(path: Path, name: str, expected: object) -> bytes:
    found = read_small(path, name, MOST_BYTES)
    if hashlib.sha256(found).hexdigest() != expected:
        raise StoreError("is not what was written: its hash is another", file=str(path / name))
    return found


def _read_numbers(path: Path, expected: object) -> dict[str, Array]:
    buffer = map_file(path, NUMBERS)
    if hashlib.sha256(memoryview(buffer)).hexdigest() != expected:
        raise StoreError("is not what was written: its hash is another", file=str(path / NUMBERS))
    return read_one(buffer)


def _trained(content: dict[str, Any], schema: Schema, numbers: dict[str, Array]) -> Trained:
    names = [str(name) for name in content["table"]]
    resolved = {column.name: column for column in schema.resolve(names)}
    learnt = [
        _column_in(said, resolved, _under(numbers, f"{d}."))
        for d, said in enumerate(content["features"])
    ]
    used = [d for d, said in enumerate(content["features"]) if said["used"]]
    target = _column_in(content["target"], resolved, {})
    task = next((known for known in learnt if known.column.role is Role.TASK), None)
    converged = content["converged"] is True
    classifier = _classifier_in(numbers, learnt, used, target, task, converged)
    if task is not None:
        classifier = replace(classifier, pooling=_ways_in(numbers, learnt, target, task))
    counts = (int(content["rows"]), int(content["labelled"]), int(content["seed"]))
    return Trained(schema, tuple(names), tuple(learnt), target, classifier, *counts)


def _classifier_in(
    numbers: Mapping[str, Array],
    learnt: Sequence[LearntColumn],
    used: Sequence[int],
    target: LearntColumn,
    task: LearntColumn | None,
    converged: bool,
) -> Classifier:
    """Return a classifier of the columns at the places `used`, but for what may predict beside."""
    names = tuple(learnt[d].column.name for d in used)
    features = tuple(_feature_in(learnt[d], _under(numbers, f"{d}.")) for d in used)
    n_latent, n_levels = sum(feature.n_latent for feature in features), len(target.levels)
    n_tasks = None if task is None else len(task.levels)
    fitted = _fit_in(numbers, n_latent, n_levels, n_tasks, converged)
    reference = int(take(numbers, "reference", np.int64, ()))
    if not 0 <= reference < n_levels:
        raise ValueError(f"'reference' is {reference}")
    name = None if task is None else task.column.name
    members = () if isinstance(fitted, FittedDraws) else fitted.members
    return Classifier(names, features, n_levels, reference, fitted, members, name)


def _ways_in(
    numbers: Mapping[str, Array],
    learnt: Sequence[LearntColumn],
    target: LearntColumn,
    task: LearntColumn,
) -> StackedPooling | None:
    """Return what predicts beside shared experts, None where nothing does."""
    if WEIGHTS not in numbers:
        return None
    weights = take(numbers, WEIGHTS, np.float64, (None,))
    if weights.size not in (2, 3) or not np.all(weights > 0) or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError(f"'{WEIGHTS}' does not fit")

    def beside(prefix: str) -> Classifier:
        part = _under(numbers, prefix)
        used = [d for d in range(len(learnt)) if _under(part, f"{d}.")]
        return _classifier_in(part, learnt, used, target, None, True)

    of_task = {j: f"{NONE}.{j}." for j in range(len(task.levels))}
    fits = {j: beside(prefix) for j, prefix in of_task.items() if _under(numbers, prefix)}
    if (weights.size == 3) != bool(fits):
        raise ValueError(f"'{WEIGHTS}' does not fit the tasks")
    named = dict(zip(NAMES, map(float, weights), strict=False))
    return StackedPooling(named, beside(f"{COMPLETE}."), NoPooling(fits) if fits else None)


def _under(numbers: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {k.removeprefix(prefix): v for k, v in numbers.items() if k.startswith(prefix)}


def _column_in(
    said: Mapping[str, Any], resolved: Mapping[str, Column], part: Mapping[str, Array]
) -> LearntColumn:
    column = replace(resolved[str(said["name"])], type=ColumnType(said["type"]))
    levels = tuple(str(level) for level in said["levels"])
    sample = np.empty(0) if levels else take(part, "sample", np.float64, (3,))
    return LearntColumn(column, levels, sample)


def _feature_in(known: LearntColumn, part: Mapping[str, Array]) -> Feature:
    column, n_levels = known.column, len(known.levels)
    if not n_levels:
        constants = _under(part, "link.")
        link = link_from(column, 0, constants, LinkConfig())
        mean, sd = (float(take(part, name, np.float64, ())) for name in ("mean", "sd"))
        if not sd > 0:
            raise ValueError(f"column '{column.name}': 'sd' is {sd:g}")
        return Number(link, mean, sd)
    if n_levels == 2 or column.ordinal:
        cuts = np.asarray(part["cuts"])
        if cuts.shape != (n_levels + 1,) or not np.all(np.diff(cuts) > 0):
            raise ValueError(f"column '{column.name}': 'cuts' does not fit")
        return Steps(cuts)
    reference = int(take(part, "reference", np.int64, ()))
    if not 0 <= reference < n_levels:
        raise ValueError(f"column '{column.name}': 'reference' is {reference}")
    return Choice(n_levels, reference)


def _fit_in(
    numbers: Mapping[str, Array], P: int, n_levels: int, n_tasks: int | None, converged: bool
) -> Fitted | FittedDraws:
    draws = _under(numbers, "draws.")
    if draws:
        trace = np.asarray(numbers["trace"])  # NaN where a chain was ended early
        if trace.ndim != 2 or trace.dtype != np.float64:
            raise ValueError("'trace' does not fit")
        return FittedDraws(_draws_in(draws, P, n_levels - 1), trace)
    part = _under(numbers, "fit.")
    bounds, weights = (take(part, name, np.float64, (None,)) for name in ("bounds", "weights"))
    if not weights.size or not np.all(weights >= 0.0) or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError("'weights' does not fit")
    members = []
    for i, weight in enumerate(weights):
        own = _under(part, f"{i}.")
        experts, shares = experts_in(_under(own, "experts."), P, n_levels), None
        if n_tasks is not None:
            shares = take(own, "shares", np.float64, (n_tasks, experts.H))
        members.append(Member(experts, float(weight), shares, _own_in(own, experts, n_tasks)))
    none = np.empty((experts.H, 0))
    return Fitted(tuple(members), none, bounds, bounds[-1:], converged)


def _own_in(
    part: Mapping[str, Array], experts: Experts | FactorExperts, n_tasks: int | None
) -> TaskDeviations | None:
    own = _under(part, "own.")
    if not own or n_tasks is None:
        return None
    return own_in(own, experts.rules, n_tasks)


def _draws_in(part: Mapping[str, Array], P: int, K: int) -> tuple[Drawn, ...]:
    n, H = take(part, "m", np.float64, (None, None, P)).shape[:2]
    if not n:
        raise ValueError("there is no draw")
    shapes: dict[str, tuple[int, ...]] = {
        "sticks": (n, H - 1),
        "alpha": (n,),
        "m": (n, H, P),
        "root": (n * H, P, P),
        "r": (n, H),
        "mw": (n * H, K, P + 1),
        "zeta": (n, K, P + 1),
        "lam": (n, P + 1),
    }
    values = {name: take(part, name, np.float64, shape) for name, shape in shapes.items()}
    for name in ("root", "mw"):  # files have at most three axes
        values[name] = values[name].reshape(n, H, *shapes[name][1:])
    out = []
    for i in range(n):
        one: dict[str, Any] = {name: np.array(value[i]) for name, value in values.items()}
        one["alpha"] = float(one["alpha"])
        one[FOLLOWS] = one["root"] @ np.swapaxes(one["root"], 1, 2)
        out.append(Drawn(**one))
    return tuple(out)
