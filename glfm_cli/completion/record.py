"""A run record: everything needed to make a result again, as one JSON object."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glfm_cli.completion.estimates import Estimate
from glfm_cli.completion.files import Files
from glfm_cli.completion.result import Completion
from glfm_cli.completion.session import Session
from glfm_cli.inference.sampling import Run
from glfm_cli.io import atomic_write
from glfm_cli.io.location import locate
from glfm_cli.store import versions

FORMAT = 1
_CHUNK = 1 << 20


def run_record(
    session: Session,
    run: Run,
    judged: Mapping[str, Any],
    warnings: Sequence[str],
    request: Mapping[str, Any],
    outputs: Mapping[str, str | os.PathLike[str]],
) -> dict[str, Any]:
    """Return the record of a run, ready for JSON.

    session : what was sampled, from which table, with which options
    judged, warnings : what is said of the result: its precision, or how the chains agree, under its
        name
    request : the other options: what fills a missing cell, the width of intervals, a time limit
    outputs : the files that were written, by the option that names each; they are hashed
    """
    header = session.header
    chains = max(session.plan.chains, len(run.posterior.chains))
    return {
        "glfm_record": FORMAT,
        "versions": {**versions(), "platform": platform.platform()},
        "table": {
            "file": header.file,
            "sha256": _hash_of_file(header.file),
            "data_sha256": header.data_hash,
            "rows": header.n_rows,
            "columns": list(header.table),
        },
        "types": {"sha256": header.types_hash, "content": header.schema.to_yaml()},
        "model": header.model,
        "settings": {**asdict(header.model_config), **asdict(header.link_config)},
        "plan": {**session.plan.options(), "chains": chains},
        "request": dict(request),
        "draws_of_chains": [len(chain) for chain in run.posterior.chains],
        "stopped": run.stopped,
        "seconds": round(header.seconds + run.seconds, 3),
        **judged,
        "warnings": list(warnings),
        "outputs": {
            name: {"file": str(path), "sha256": _hash_of_file(str(path))}
            for name, path in outputs.items()
        },
    }


def write_record(
    files: Files, session: Session, completion: Completion, estimate: Estimate
) -> None:
    """Write the record of a completion, with the hashes of the files written before it."""
    assert files.record is not None
    request: dict[str, Any] = {"estimate": estimate, "interval": completion.interval}
    request |= {"flags": files.flags, "time_limit": session.sampling.time_limit}
    request |= {"multiple": files.multiple, "analysis": files.analysis}
    request |= {"precision": session.sampling.precision}
    judged, notes = {"precision": completion.precision.to_dict()}, completion.warnings
    record = run_record(session, completion.run, judged, notes, request, files.by_option())
    save_record(record, files.record)


def save_record(record: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a record to a file, which is there only when complete."""
    with atomic_write(path, "w") as file:
        json.dump(record, file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def _hash_of_file(file: str | None) -> str | None:
    """Return the SHA-256 of a file's bytes, whichever of its tables is meant; None of no file."""
    path = None if file is None else locate(file).path
    if path is None or not Path(path).is_file():
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
