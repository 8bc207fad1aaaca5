"""run.json of a saved classifier: what was fitted, to what, with which versions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from glfm_cli.classification.fit import plan_of
from glfm_cli.encoding import EncodedColumn, LearntColumn
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.inference.run import Plan
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Schema
from glfm_cli.settings import apply_settings
from glfm_cli.store import check_folder, hash_of_types
from glfm_cli.store.folder import HEADER, TYPES, read_small

FORMAT = 1
MOST_BYTES = 64 * 2**20
KIND = "classifier"
OLD = "glfm_classifier"  # a key of earlier formats
MODEL = "iqgme"
HINT = "`glfm classify ... --save DIR.glfm` makes such a folder."


@dataclass(frozen=True)
class ClassifierHeader:
    """What a saved classifier says of itself.

    table : names of the columns of the training table, in order
    features : name, type and levels of each, and whether it is used;  target : the same of it
    data_hash : of what the fit saw of the table;  constants_hash, pooling_hash : of these files,
        the latter empty where nothing predicts beside the fit, or it has not ended
    ended : whether all that predicts is there
    """

    config: IqgmeConfig
    link_config: LinkConfig
    plan: Plan
    schema: Schema
    table: tuple[str, ...]
    features: tuple[dict[str, Any], ...]
    target: dict[str, Any]
    n_rows: int
    n_labelled: int
    data_hash: str
    versions: Mapping[str, str]
    constants_hash: str = ""
    pooling_hash: str = ""
    seconds: float = 0.0
    ended: bool = False

    def to_json(self) -> str:
        """Return the text of run.json."""
        content = {
            "glfm_fit": FORMAT,
            "kind": KIND,
            "versions": dict(self.versions),
            "model": MODEL,
            "model_settings": asdict(self.config),
            "link_settings": asdict(self.link_config),
            "plan": asdict(self.plan),
            "table": list(self.table),
            "features": list(self.features),
            "target": self.target,
            "rows": self.n_rows,
            "labelled": self.n_labelled,
            "data_sha256": self.data_hash,
            "types_sha256": hash_of_types(self.schema),
            "constants_sha256": self.constants_hash,
            "pooling_sha256": self.pooling_hash,
            "seconds": round(self.seconds, 3),
            "ended": self.ended,
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def is_classifier(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is that of a classifier, be it damaged or not."""
    path = Path(folder)
    if not (path / HEADER).is_file():
        return False
    try:
        content = json.loads(read_small(path, HEADER, MOST_BYTES))
    except (GlfmError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and (content.get("kind") == KIND or OLD in content)


def read_classifier_header(folder: Path) -> ClassifierHeader:
    """Return what run.json and types.yaml say, checked.

    Raises
    ------
    StoreError
        A file is missing or damaged, or is of another version.
    """
    check_folder(folder)
    file = str(folder / HEADER)
    try:
        content = json.loads(read_small(folder, HEADER, MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError):
        raise StoreError("is not JSON text", file=file) from None
    if isinstance(content, dict) and OLD in content:
        raise StoreError(
            "is a classifier of an earlier format, which is not read any more",
            file=file,
            hint="Fit it again with `glfm classify ... --save DIR.glfm`.",
        )
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise StoreError("does not describe a classifier", file=file, hint=HINT)
    if content.get("glfm_fit") != FORMAT:
        raise StoreError(
            "this version of the format is not known",
            file=file,
            value=f"glfm_fit: {content.get('glfm_fit')}",
            expected=f"glfm_fit: {FORMAT}",
        )
    types = read_small(folder, TYPES, MOST_BYTES)
    try:
        schema = Schema.from_yaml(types.decode("utf-8"), file=str(folder / TYPES))
        if hash_of(types) != content["types_sha256"]:
            raise StoreError(
                "is not what was written: its hash is another", file=str(folder / TYPES)
            )
        return _header_in(content, schema)
    except StoreError:
        raise
    except (GlfmError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"cannot be used: {error}", file=file) from None


def _header_in(content: dict[str, Any], schema: Schema) -> ClassifierHeader:
    defaults = {"model_settings": IqgmeConfig(), "link_settings": LinkConfig()}
    given = {name: value for label in defaults for name, value in content[label].items()}
    configs = apply_settings(defaults, given)
    whole = {name: content["plan"][name] for name in ("chains", "warmup", "draws", "thin", "seed")}
    whole |= {name: content[name] for name in ("rows", "labelled")}
    wrong = [name for name, value in whole.items() if type(value) is not int or value < 0]
    if wrong or not 1 <= whole["chains"] <= 10_000:
        raise ValueError(f"`{(wrong or ['chains'])[0]}` does not fit")
    config = configs["model_settings"]
    plan = plan_of(config, whole["chains"], whole["seed"])
    hashes = [content[f"{name}_sha256"] for name in ("data", "constants", "pooling")]
    if asdict(plan) != content["plan"] or not all(isinstance(text, str) for text in hashes):
        raise ValueError("the plan or a hash does not fit")
    seconds = content["seconds"]
    if not isinstance(seconds, int | float) or not 0 <= seconds < 1e15:
        raise ValueError("`seconds` does not fit")
    return ClassifierHeader(
        config=config,
        link_config=configs["link_settings"],
        plan=plan,
        schema=schema,
        table=tuple(str(name) for name in content["table"]),
        features=tuple(_column(said, used=True) for said in content["features"]),
        target=_column(content["target"], used=False),
        n_rows=whole["rows"],
        n_labelled=whole["labelled"],
        data_hash=hashes[0],
        versions={str(k): str(v) for k, v in content["versions"].items()},
        constants_hash=hashes[1],
        pooling_hash=hashes[2],
        seconds=float(seconds),
        ended=content["ended"] is True,
    )


def _column(said: Mapping[str, Any], *, used: bool) -> dict[str, Any]:
    levels = said["levels"]
    if not isinstance(levels, list):
        raise ValueError("`levels` is no list")
    column = {"name": str(said["name"]), "type": str(said["type"]), "levels": [*map(str, levels)]}
    return column | ({"used": said["used"] is True} if used else {})


def column_out(known: LearntColumn | EncodedColumn) -> dict[str, Any]:
    """Return name, type and levels of a column."""
    column = known.column
    return {"name": column.name, "type": str(column.type), "levels": list(known.levels)}


def hash_of(content: bytes | pa.Buffer) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(memoryview(content)).hexdigest()
