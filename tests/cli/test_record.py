"""`--record`: what it says is so, and makes the same table again."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glfm_cli import Schema, impute, write_table

Here = Callable[..., Any]
PLAN = ("--chains", "2", "--warmup", "4", "--draws", "5", "--thin", "1", "--seed", "7")


@pytest.fixture(scope="module")
def folder(here: Here, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    data = sample_data / "airquality.csv"
    files = {"-o": "out.csv", "--cells": "cells.csv", "--record": "record.json"}
    options = [word for name, file in files.items() for word in (name, str(folder / file))]
    set_ = ("--set", "max_features=9", "--set", "link_noise=0.01", "--estimate", "median")
    said = here("impute", data, "--types", data.with_suffix(".types.yaml"), *PLAN, *set_, *options)
    assert said.status == 0, said.stderr
    return folder


@pytest.fixture(scope="module")
def record(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return content


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_hashes_are_those_of_the_files(
    folder: Path, record: dict[str, Any], sample_data: Path
) -> None:
    assert record["table"]["sha256"] == sha256(sample_data / "airquality.csv")
    assert record["outputs"] == {
        "--output": {"file": str(folder / "out.csv"), "sha256": sha256(folder / "out.csv")},
        "--cells": {"file": str(folder / "cells.csv"), "sha256": sha256(folder / "cells.csv")},
    }


def test_the_table_is_made_again_from_the_record_alone(
    record: dict[str, Any], tmp_path: Path
) -> None:
    again = impute(
        record["table"]["file"],
        Schema.from_yaml(record["types"]["content"]),
        model=record["model"],
        settings=record["settings"],
        estimate=record["request"]["estimate"],
        interval=record["request"]["interval"],
        **record["plan"],
    )
    write_table(again.table, tmp_path / "again.csv")
    write_table(again.cells(), tmp_path / "cells.csv")
    for name, path in (("--output", "again.csv"), ("--cells", "cells.csv")):
        assert sha256(tmp_path / path) == record["outputs"][name]["sha256"]
    assert again.precision.to_dict() == record["precision"]
    assert [len(chain) for chain in again.posterior.chains] == record["draws_of_chains"]


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in ("settings", "outputs"):
                yield from keys_of(inner)


def test_every_key_is_documented(record: dict[str, Any], repository: Path) -> None:
    document = (repository / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    section = document.partition("\n## `glfm impute --record`")[2].partition("\n## ")[0]
    assert [key for key in keys_of(record) if f"`{key}`" not in section] == []


def test_a_record_of_streams_names_no_hash(
    here: Here, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = sample_data / "airquality.csv"
    types = data.with_suffix(".types.yaml")
    said = here("impute", data, "--types", types, *PLAN, "--record", "r.json")
    assert said.status == 0
    record = json.loads(Path("r.json").read_text())
    assert record["outputs"] == {}
    assert record["stopped"] is None


def test_a_table_of_a_store_is_known_by_the_bytes_of_the_store(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = sqlite3.connect("store.db")
    store.execute("create table visits (a real, b real)")
    store.executemany("insert into visits values (?, ?)", [(i, i % 7 or None) for i in range(20)])
    store.commit()
    store.close()
    place = "sqlite:store.db?table=visits"
    said = here("impute", place, "--types", "auto", *PLAN, "-o", "out.csv", "--record", "r.json")
    assert said.status == 0, said.stderr
    record = json.loads(Path("r.json").read_text())
    assert record["table"]["sha256"] == sha256(Path("store.db"))


def test_a_run_in_parts_adds_up_its_seconds(
    here: Here, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = sample_data / "airquality.csv"
    types = data.with_suffix(".types.yaml")
    common = ("-o", "out.csv", "-q", "--record", "r.json")
    here("impute", data, "--types", types, *PLAN, "--model", "glfm", "--save", "fit.glfm", *common)
    before = json.loads(Path("r.json").read_text())
    here("impute", data, "--resume", "fit.glfm", "--draws", "30", *common)
    after = json.loads(Path("r.json").read_text())
    assert after["seconds"] > before["seconds"] > 0
    assert (after["plan"]["draws"], after["draws_of_chains"]) == (30, [30, 30])
    assert re.fullmatch(r"[0-9a-f]{64}", after["table"]["data_sha256"])
    assert after["types"] == before["types"]


def test_a_record_that_cannot_be_written_is_an_error_before_the_work(
    here: Here, sample_data: Path, tmp_path: Path
) -> None:
    data = sample_data / "airquality.csv"
    record = tmp_path / "none" / "r.json"
    said = here("impute", data, "--types", data.with_suffix(".types.yaml"), "--record", record)
    assert (said.status, said.stdout) == (2, "")
    assert len(said.lines("Error")) == 1
