"""run.json and types.yaml of a saved fit: what was run, on what, with which versions."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from glfm_cli import __version__
from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.encoding.number_style import NumberStyle, style_from_dict
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.inference.recalibration import KNOTS, Recalibration
from glfm_cli.inference.sampling import Plan
from glfm_cli.io.zones import is_known
from glfm_cli.latent import MODELS
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.grouped import with_groups
from glfm_cli.latent.model import LatentModel
from glfm_cli.links import LinkConfig
from glfm_cli.schema import COLUMN_TYPES, Column, Role, Schema, with_calendar
from glfm_cli.schema.moments import MomentStyle
from glfm_cli.settings import apply_settings
from glfm_cli.store.folder import HEADER, TYPES, read_small
from glfm_cli.store.matrix import MatrixHeader

Part = TypeVar("Part")
FORMAT = 1
MOST_BYTES = 64 * 2**20  # of run.json and of types.yaml
LIMITS = {"chains": 10_000, "warmup": 10**9, "draws": 10**9, "thin": 10**9, "seed": 2**128}
_LEAST = {"chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}


@dataclass(frozen=True)
class Modelled:
    """One modelled column: its name, type and position in the table, and its levels by code.

    follows : the column whose formula is taken to say what this one is
    group_level : whether it is the same in all rows of a group
    style : how its numbers are written, of which draws know nothing; None where not known
    """

    name: str
    type: str
    index: int
    levels: tuple[str, ...]
    follows: str | None = None
    group_level: bool = False
    style: NumberStyle | MomentStyle | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ClassifierHeader:
    """What run.json says of a classifier.

    target : name of the column that it predicts;  labels : those of its levels that occur
    n_labelled : rows with a label
    pooling_hash : SHA-256 of pooling.arrow, empty where nothing predicts beside the fit
    """

    target: str
    labels: tuple[str, ...]
    n_labelled: int
    pooling_hash: str = ""

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ClassifierHeader:
        """Return what `asdict` gave; raise ValueError, TypeError or KeyError otherwise."""
        labels, n = entries["labels"], entries["n_labelled"]
        if not isinstance(labels, list) or len(set(labels)) < max(len(labels), 2):
            raise ValueError("'labels' is no list of two or more")
        if type(n) is not int or not 0 < n < 2**40:
            raise ValueError("'n_labelled' is no whole number from 1")
        return cls(str(entries["target"]), tuple(map(str, labels)), n, str(entries["pooling_hash"]))


@dataclass(frozen=True)
class Header:
    """What a saved fit says of itself.

    table : names of all columns of the table, in order;  file : the table's name, for people
    data_hash, types_hash : SHA-256 of what the model saw of the table, and of the types
    links_hash : SHA-256 of the file with the links' constants, once it is written
    seconds : of sampling so far, over all sittings that ended
    recalibration : how forecasts are corrected; None before the run has ended
    matrix : of a fit of triplets, whose `n_rows` are those of the matrix; None of a table
    classifier : of a fit that predicts a label; None of others
    learn_rows : rows of a larger table that the fit was made from; None where it had no others
    groups : that the fit knows, by number; None where rows do not belong together
    """

    model: str
    model_config: Any
    link_config: LinkConfig
    plan: Plan
    schema: Schema
    n_rows: int
    table: tuple[str, ...]
    modelled: tuple[Modelled, ...]
    ids: tuple[str, ...]
    notes: tuple[str, ...]
    data_hash: str
    types_hash: str
    has_data: bool
    file: str | None
    versions: Mapping[str, str]
    links_hash: str = ""
    seconds: float = 0.0
    recalibration: Recalibration | None = None
    matrix: MatrixHeader | None = None
    classifier: ClassifierHeader | None = None
    learn_rows: int | None = None
    groups: tuple[str, ...] | None = None

    @property
    def latent(self) -> LatentModel:
        """Return the latent model."""
        if self.classifier is not None:
            from glfm_cli.latent.iqgme import experts_model  # large, and of classifiers alone

            return experts_model(self.model_config)
        model = MODELS[self.model]
        return model if self.groups is None else with_groups(model)

    def columns(self) -> tuple[Column, ...]:
        """Return what the modelled columns mean, patterns resolved and types filled in."""
        resolved = with_calendar(self.schema.resolve(self.table))
        return tuple(_typed(resolved[m.index], m) for m in self.modelled)

    def to_json(self) -> str:
        """Return the text of run.json."""
        content = {
            "glfm_fit": FORMAT,
            "versions": dict(self.versions),
            "model": self.model,
            "model_settings": asdict(self.model_config),
            "link_settings": asdict(self.link_config),
            "plan": {n: value for n, value in asdict(self.plan).items() if value is not None},
            "file": self.file,
            "rows": self.n_rows,
            "table": list(self.table),
            "modelled": [asdict(m) for m in self.modelled],
            "ids": list(self.ids),
            "notes": list(self.notes),
            "data_sha256": self.data_hash,
            "types_sha256": self.types_hash,
            "links_sha256": self.links_hash,
            "has_data": self.has_data,
            "seconds": round(self.seconds, 3),
        }
        if self.learn_rows is not None:
            content["learn_rows"] = self.learn_rows
        if self.matrix is not None:
            content["matrix"] = self.matrix.to_dict()
        if self.classifier is not None:
            content["classifier"] = asdict(self.classifier)
        if self.groups is not None:
            content["groups"] = list(self.groups)
        if self.recalibration is not None:
            content["recalibration"] = _of_corrections(self.recalibration)
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _of_corrections(by: Recalibration) -> dict[str, Any]:
    """Return corrections as JSON; of groups without a value their numbers, by column."""
    arrays = {name: getattr(by, name) for name in ("exponents", "tilts", "log_sds", "weights")}
    content = {name: array.tolist() for name, array in arrays.items() if array is not None}
    if by.lone is not None and by.without is not None:
        content["lone"] = _of_corrections(by.lone)
        content["without"] = [np.flatnonzero(column).tolist() for column in by.without.T]
    return content


def versions() -> dict[str, str]:
    """Return the versions of what the draws depend on."""
    found = {"glfm": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def hash_of_types(schema: Schema) -> str:
    """Return the SHA-256 of the types, whatever the layout and comments of their file."""
    return hashlib.sha256(schema.to_yaml().encode()).hexdigest()


def hash_of_data(data: Data) -> str:
    """Return the SHA-256 of what a model sees of a table: values, gaps, levels, order; and weights.

    Other columns, and the way in which a number was written, do not count.
    """
    digest = hashlib.sha256(f"glfm data {data.n_rows}".encode())
    for encoded in data.columns:
        column = encoded.column
        entries = [column.name, str(column.type), str(column.role), *encoded.levels]
        digest.update(json.dumps(entries).encode())
        # One NaN for all: their bits may differ.
        x = np.where(encoded.observed, encoded.x, 0.0).astype("<f8")
        digest.update(x.tobytes())
        digest.update(np.packbits(encoded.observed).tobytes())
        digest.update(np.packbits(encoded.requested).tobytes())
        if encoded.ends is not None:
            digest.update(np.nan_to_num(encoded.ends).tobytes())
            digest.update(np.packbits(~np.isnan(encoded.ends[:, 0])).tobytes())
        if encoded.trials is not None:
            digest.update(np.nan_to_num(encoded.trials, nan=-1.0).tobytes())
    if data.groups is not None:
        digest.update(json.dumps(data.groups.labels).encode())
        digest.update(data.groups.code.astype("<i8").tobytes())
    if data.weights is not None:  # by which a fit is explored and its margins are taken
        digest.update(b"weights" + data.weights.astype("<f8").tobytes())
    return digest.hexdigest()


def read_header(folder: Path) -> Header:
    """Return what run.json and types.yaml say, everything checked.

    Raises StoreError: a file is missing or damaged, or was written by a version that this one
        cannot read.
    """
    content = _read_json(folder)
    try:
        return _header_of(folder, content)
    except StoreError as error:
        error.hint = error.hint or _of_another_version(content)
        raise


def _of_another_version(content: dict[str, Any]) -> str | None:
    """Return the hint that another glfm wrote the fit; None of one that this version wrote."""
    versions = content.get("versions")
    then = versions.get("glfm") if isinstance(versions, dict) else None
    if then == __version__ or not re.fullmatch(r"[\w.+]{1,20}", str(then)):
        return None
    return f"glfm {then} wrote it, and this is {__version__}: use that version, or make a new fit."


def _header_of(folder: Path, content: dict[str, Any]) -> Header:
    file = str(folder / HEADER)
    entries = _Reader(content, file)
    schema = _read_types(folder)
    model, classifier = entries.text("model"), entries.classifier()
    known = list(MODELS)
    if classifier is not None:
        from glfm_cli.latent.iqgme import ExpertAscent, IqgmeConfig

        known = [ExpertAscent.name]
    if model not in known:
        raise StoreError(
            "the model is not known here", file=file, value=model, expected=" or ".join(known)
        )
    config = MODELS[model].Config() if classifier is None else IqgmeConfig()
    configs = entries.settings({"model_settings": config, "link_settings": LinkConfig()})
    try:
        names = [column.name for column in with_calendar(schema.resolve(entries.texts("table")))]
    except GlfmError as error:
        raise StoreError(f"does not fit {TYPES}: {error}", file=file) from None
    plan = entries.mapping("plan")
    whole = {name: entries.whole(plan, name, _LEAST[name], LIMITS[name]) for name in LIMITS}
    if "most_chains" in plan:
        whole["most_chains"] = entries.whole(plan, "most_chains", 1, LIMITS["chains"])
    header = Header(
        model=model,
        model_config=configs["model_settings"],
        link_config=configs["link_settings"],
        plan=Plan(**whole),
        schema=schema,
        n_rows=entries.whole(content, "rows", 1, 2**40),
        table=entries.texts("table"),
        modelled=entries.modelled(names),
        ids=entries.texts("ids"),
        notes=entries.texts("notes"),
        data_hash=entries.text("data_sha256"),
        types_hash=entries.text("types_sha256"),
        links_hash=entries.text("links_sha256"),
        has_data=content.get("has_data") is True,
        file=content["file"] if isinstance(content.get("file"), str) else None,
        versions={str(k): str(v) for k, v in entries.mapping("versions").items()},
        seconds=entries.seconds(),
        recalibration=entries.recalibration(),
        matrix=entries.matrix(),
        classifier=classifier,
        learn_rows=entries.whole(content, "learn_rows", 1, 2**40)
        if "learn_rows" in content
        else None,
        groups=entries.texts("groups") if "groups" in content else None,
    )
    if header.types_hash != hash_of_types(schema):
        raise StoreError(
            "is not the types file that the fit was made with: its hash is another",
            file=str(folder / TYPES),
        )
    try:
        header.columns()
    except (GlfmError, IndexError) as error:
        raise StoreError(f"does not fit {TYPES}: {error}", file=file) from None
    return header


def _read_json(folder: Path) -> dict[str, Any]:
    file = str(folder / HEADER)
    try:
        content = json.loads(read_small(folder, HEADER, MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError):
        raise StoreError("is not JSON text", file=file) from None
    if not isinstance(content, dict) or "glfm_fit" not in content:
        raise StoreError("does not describe a saved fit", file=file)
    found = content["glfm_fit"]
    if found != FORMAT or isinstance(found, bool):
        newer = isinstance(found, int) and found > FORMAT
        raise StoreError(
            "this version of the format is not known",
            file=file,
            value=f"glfm_fit: {found}",
            expected=f"glfm_fit: {FORMAT}",
            hint="Install a newer glfm." if newer else None,
        )
    return content


def _read_types(folder: Path) -> Schema:
    file = str(folder / TYPES)
    try:
        text = read_small(folder, TYPES, MOST_BYTES).decode("utf-8")
        return Schema.from_yaml(text, file=file)
    except UnicodeDecodeError:
        raise StoreError("is not UTF-8 text", file=file) from None
    except StoreError:
        raise
    except GlfmError as error:
        raise StoreError(error.message().removeprefix(f"{file}: "), file=file) from None


@dataclass(frozen=True)
class _Reader:
    """Takes values out of run.json, each checked."""

    content: dict[str, Any]
    file: str

    def wrong(self, name: str, value: object, expected: str) -> StoreError:
        return StoreError(f"`{name}`", file=self.file, value=repr(value), expected=expected)

    def text(self, name: str) -> str:
        return self._of_type(name, str, "text")

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(name, value, "a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        return self._of_type(name, dict, "a mapping")

    def _of_type(self, name: str, kind: type, expected: str) -> Any:
        value = self.content.get(name)
        if not isinstance(value, kind):
            raise self.wrong(name, value, expected)
        return value

    def whole(self, content: Mapping[str, Any], name: str, least: int, most: int) -> int:
        value = content.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, value, f"a whole number from {least} to {most}")
        return value

    def seconds(self) -> float:
        value = self.content.get("seconds")
        if not isinstance(value, int | float) or not 0 <= value < 1e15:
            raise self.wrong("seconds", value, "a number from 0")
        return float(value)

    def recalibration(self) -> Recalibration | None:
        """Return the correction of every modelled column's forecasts, None where there is none."""
        value = self.content.get("recalibration")
        if value is None:
            return None
        found = self._corrections(value)
        if not isinstance(value, dict) or "lone" not in value:
            return found
        return replace(found, lone=self._corrections(value["lone"]), without=self._without(value))

    def _corrections(self, value: Any) -> Recalibration:
        """Return the correction of every modelled column's forecasts."""
        shape = (len(self.content["modelled"]),)
        model = MODELS.get(self.text("model"))
        n = len(model.candidates) if isinstance(model, Candidates) else 0
        try:
            exponents = np.array(value["exponents"], dtype=np.float64)
            tilts = np.array(value["tilts"], dtype=np.float64)
            log_sds = np.array(value["log_sds"], dtype=np.float64)
            weights = np.array(value["weights"], dtype=np.float64) if n else np.ones((*shape, n))
        except (AttributeError, TypeError, ValueError, KeyError):
            exponents = tilts = log_sds = weights = np.empty(0)
        found = exponents, tilts, log_sds
        expected = (*shape, 2), (*shape, KNOTS, 4), (*shape, 2)
        whole = tuple(one.shape for one in found) == expected
        whole = whole and all(np.isfinite(one).all() for one in found)
        if not (whole and np.all(exponents > 0) and np.all(np.diff(log_sds) >= 0)):
            raise self.wrong("recalibration", value, "exponents, tilts and sds of every column")
        if not n:
            return Recalibration(*found)
        stacked = weights.shape == (*shape, n) and np.all(weights >= 0)
        if not (stacked and np.allclose(weights.sum(axis=1), 1.0)):
            raise self.wrong("recalibration", value, "weights of each column that add up to 1")
        return Recalibration(*found, weights)

    def _without(self, value: dict[str, Any]) -> Array:
        """Return which groups (G, D) have no value of a column."""
        listed, groups = value.get("without"), self.content.get("groups")
        n_groups = len(groups) if isinstance(groups, list) else 0
        found = np.zeros((n_groups, len(self.content["modelled"])), dtype=bool)
        right = isinstance(listed, list) and len(listed) == found.shape[1]
        right = right and all(
            isinstance(numbers, list)
            and all(type(number) is int and 0 <= number < n_groups for number in numbers)
            for numbers in listed or ()
        )
        if not right:
            raise self.wrong("recalibration", listed, "the numbers of groups, for every column")
        for d, numbers in enumerate(listed or ()):
            found[numbers, d] = True
        return found

    def matrix(self) -> MatrixHeader | None:
        """Return what is said of a matrix, None of a table."""
        return self._part("matrix", MatrixHeader.from_dict, "the sizes, ids and covariates")

    def classifier(self) -> ClassifierHeader | None:
        """Return what is said of a label, None where there is none."""
        return self._part("classifier", ClassifierHeader.from_dict, "the target and its labels")

    def _part(self, name: str, read: Callable[[Any], Part], expected: str) -> Part | None:
        """Return a part that not every fit has, None where it is not there."""
        value = self.content.get(name)
        if value is None:
            return None
        try:
            return read(value)
        except (ValueError, TypeError, KeyError) as error:
            raise self.wrong(name, str(error), expected) from None

    def settings(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configurations, every field of which must be given."""
        entries: dict[str, object] = {}
        for label, config in defaults.items():
            mapping = self.mapping(label)
            names = {field.name for field in fields(config)}
            if mapping.keys() != names:
                odd = sorted(mapping.keys() ^ names)
                raise self.wrong(label, odd[0], "the settings of this model, each of them")
            entries |= mapping
        try:
            return apply_settings(defaults, entries)
        except GlfmError as error:
            raise StoreError(error.message().removeprefix("--set "), file=self.file) from None

    def modelled(self, names: Sequence[str]) -> tuple[Modelled, ...]:
        """Return what is modelled of columns with these names."""
        value = self.content.get("modelled")
        if not isinstance(value, list) or not value:
            raise self.wrong("modelled", value, "a list of columns")
        found = [self._column(item, names) for item in value]
        indices = [column.index for column in found]
        if indices != sorted(set(indices)) or len({c.name for c in found}) < len(found):
            raise self.wrong("modelled", indices, "each column once, in the order of the table")
        return tuple(found)

    def _column(self, item: Any, names: Sequence[str]) -> Modelled:
        levels = item.get("levels") if isinstance(item, dict) else None
        named = isinstance(item, dict) and all(
            isinstance(item.get(name), str) for name in ("name", "type")
        )
        texts = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        if not named or not texts or len(set(levels or ())) < len(levels or ()):
            raise self.wrong("modelled", item, "a column with name, type, index and levels")
        kind = COLUMN_TYPES.get(item["type"])
        if kind is None or (kind.values == "levels") != bool(levels):
            raise self.wrong("modelled", item["type"], "a type, with levels where it has some")
        index = self.whole(item, "index", 0, len(names) - 1)
        if names[index] != item["name"]:
            raise self.wrong("modelled", item["name"], f"the table's column {names[index]}")
        follows = item.get("follows")
        if follows is not None and follows not in names:
            raise self.wrong("follows", follows, "a column of the table")
        group_level = item.get("group_level", False)
        if not isinstance(group_level, bool):
            raise self.wrong("group_level", group_level, "true or false")
        try:
            style = None if item.get("style") is None else style_from_dict(item["style"])
        except (ValueError, TypeError, AttributeError) as error:
            raise self.wrong("style", str(error), "how numbers are written") from None
        if isinstance(style, MomentStyle) and not is_known(style.zone):
            raise StoreError(
                f"the time zone {style.zone!r} is not known on this machine",
                file=self.file,
                column=item["name"],
                hint="Install the system's time zone data, of most systems the package tzdata.",
            )
        modelled = item["name"], item["type"], index, tuple(levels or ())
        return Modelled(*modelled, follows, group_level, style)


def _typed(column: Column, modelled: Modelled) -> Column:
    """Return a resolved column with the type it was fitted with; a predictor may have had none."""
    kind = COLUMN_TYPES[modelled.type]
    modelled_here = column.modelled or column.role in (Role.VALUE, Role.TASK)
    if not modelled_here or column.type not in (None, kind):
        raise StoreError(f"column '{column.name}' is {column.type}, not {kind}")
    if column.levels is not None and tuple(column.levels) != modelled.levels:
        raise StoreError(f"column '{column.name}' has other levels")
    column = replace(column, type=kind, group_level=modelled.group_level)
    return replace(column, follows=modelled.follows)
