"""Folders from elsewhere: each kind of damage is one clear line, and nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glfm_cli import GlfmError, __version__, impute, load_fit
from glfm_cli.cli import app
from glfm_cli.errors import OutputError, StoreError
from glfm_cli.store.arrays import read_batches, read_note, read_one, to_batch, to_stream
from glfm_cli.store.drafts import new_folder
from glfm_cli.store.matrix import SIDES, MatrixHeader

Change = Callable[[Path], None]
DRAWS, STATE = "chain-0.draws.arrow", "chain-0.state.arrow"
TYPES = {"columns": {"a": "real", "n": "count", "city": "categorical", "k": "ordinal"}}
TABLE = {
    "a": [None if i % 5 == 0 else i / 7 for i in range(20)],
    "n": [None if i % 7 == 1 else i % 4 for i in range(20)],
    "city": [None if i % 6 == 2 else "xyz"[i % 3] for i in range(20)],
    "k": [i % 3 for i in range(20)],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("sound") / "fit.glfm"
    impute(pa.table(TABLE), TYPES, model="glfm", chains=2, warmup=2, draws=3, save=folder)
    load_fit(folder)
    return folder


# What is done to it --------------------------------------------------------------------------


def header(**changes: object) -> Change:
    """Change entries of run.json; `a__b` is an entry of an entry."""

    def change(folder: Path) -> None:
        path = folder / "run.json"
        content = json.loads(path.read_text())
        for name, value in changes.items():
            *outer, last = name.split("__")
            where = content
            for part in outer:
                where = where[int(part)] if isinstance(where, list) else where[part]
            where[last] = value
        path.write_text(json.dumps(content))

    return change


def without(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def cut(name: str, share: float) -> Change:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return change


def filled(name: str, content: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(content) and None


def flipped(name: str, share: float) -> Change:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[int(len(content) * share)] ^= 0x10
        (folder / name).write_bytes(bytes(content))

    return change


def state(**changes: object) -> Change:
    """Change arrays of a chain's state; None removes one. `__` stands for a dot."""

    def change(folder: Path) -> None:
        path = folder / STATE
        arrays = dict(read_one(pa.py_buffer(path.read_bytes())))
        for name, value in changes.items():
            name = name.replace("__", ".")
            arrays.pop(name)
            if value is not None:
                arrays[name] = value(arrays_of(folder)[name]) if callable(value) else value
        path.write_bytes(to_stream(arrays))

    return change


def arrays_of(folder: Path) -> dict[str, Any]:
    return read_one(pa.py_buffer((folder / STATE).read_bytes()))


def draws(**changes: Callable[[Any], Any]) -> Change:
    """Change an array in every draw, with lengths and checksums that agree: only values are bad."""

    def change(folder: Path) -> None:
        buffer = pa.py_buffer((folder / DRAWS).read_bytes())
        batches = []
        for arrays in read_batches(buffer):
            arrays = dict(arrays)
            for name, value in changes.items():
                name = name.replace("__", ".")
                arrays[name] = value(np.array(arrays[name]))
            batches.append(to_batch(arrays, read_note(buffer)))
        rewrite(folder, batches[0].schema, batches)

    return change


def rewrite(folder: Path, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
    parts = [schema.serialize(), *(batch.serialize() for batch in batches)]
    content = b"".join(part.to_pybytes() for part in parts)
    (folder / DRAWS).write_bytes(content)
    vouch(folder, content)


def vouch(folder: Path, content: bytes, n_draws: int = 3) -> None:
    """Make the state say that these are the draws."""
    state(
        log__bytes=np.array(len(content), np.int64),
        log__checksum=np.array(zlib.crc32(content), np.int64),
        log__draws=np.array(n_draws, np.int64),
    )(folder)


def compressed(folder: Path) -> None:
    """Make the draws a small file that would need much memory."""
    note = read_note(pa.py_buffer((folder / DRAWS).read_bytes()))
    table = pa.table({"latent.B": pa.array([np.zeros(1_000_000)], pa.large_list(pa.float64()))})
    table = table.replace_schema_metadata({"glfm": note})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    (folder / DRAWS).write_bytes(sink.getvalue().to_pybytes())
    vouch(folder, sink.getvalue().to_pybytes(), 1)


def huge_message(folder: Path) -> None:
    """Make a message claim a body of exabytes, or metadata of gigabytes."""
    content = (folder / DRAWS).read_bytes() + struct.pack("<iI", -1, 0x7FFFFFF0) + b"\0" * 64
    (folder / DRAWS).write_bytes(content)
    vouch(folder, content, 4)


def huge_rows(folder: Path) -> None:
    """Claim a table of so many rows that its masks alone would not fit in memory."""
    header(rows=2**40)(folder)


def linked(name: str) -> Change:
    """Put a symbolic link to a file outside in the place of one inside."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to("../secret")

    return change


def hard_linked(name: str) -> Change:
    def change(folder: Path) -> None:
        os.link(folder / name, folder.parent / "other")

    return change


def piped(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def a_folder(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return change


def not_a_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a file")


def duplicate_draws(folder: Path) -> None:
    buffer = pa.py_buffer((folder / DRAWS).read_bytes())
    batches = [to_batch(one, read_note(buffer)) for one in read_batches(buffer)]
    rewrite(folder, batches[0].schema, batches + batches)


def noted(change: Callable[[str], str]) -> Change:
    """Change what the draws' schema says of them."""

    def change_note(folder: Path) -> None:
        buffer = pa.py_buffer((folder / DRAWS).read_bytes())
        note = change(read_note(buffer))
        batches = [to_batch(one, note) for one in read_batches(buffer)]
        rewrite(folder, batches[0].schema, batches)

    return change_note


def swapped_chains(folder: Path) -> None:
    first, second = folder / STATE, folder / "chain-1.state.arrow"
    content = first.read_bytes(), second.read_bytes()
    first.write_bytes(content[1])
    second.write_bytes(content[0])


def nan(array: Any) -> Any:
    return np.full_like(array, np.nan)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdef", "bcdefg", strict=True)
)

# What is loaded: kind of damage -> (what is done, the file that is named, what is said of it).
LOADED: dict[str, tuple[Change, str, str]] = {
    "no folder": (shutil.rmtree, "", "there is no such folder"),
    "a file": (not_a_folder, "", "is a file, not the folder of a saved fit"),
    "an empty folder": (
        lambda f: [p.unlink() for p in f.iterdir()] and None,
        "",
        "has no run.json",
    ),
    "no types": (without("types.yaml"), "types.yaml", "is missing"),
    "no links": (without("links.arrow"), "links.arrow", "is missing"),
    "no data": (without("data.arrow"), "data.arrow", "is missing"),
    "no draws": (without(DRAWS), DRAWS, "is missing"),
    "a newer format": (header(glfm_fit=2), "run.json", "this version of the format is not known"),
    "no format": (header(glfm_fit="x"), "run.json", "this version of the format is not known"),
    "not JSON": (filled("run.json", b"\x80\x04K\x01."), "run.json", "is not JSON text"),
    "nested JSON": (filled("run.json", b"[" * 200_000), "run.json", "is not JSON text"),
    "another JSON": (filled("run.json", b"[1]"), "run.json", "does not describe a saved fit"),
    "an unknown model": (header(model="os.system"), "run.json", "the model is not known here"),
    "an unknown setting": (header(model_settings__x=1), "run.json", "`model_settings`, found 'x'"),
    "a wild setting": (
        header(model_settings__max_features=10**9),
        "run.json",
        "max_features, found 1000000000",
    ),
    "so many chains": (header(plan__chains=10**7), "run.json", "`chains`, found 10000000"),
    "true chains": (header(plan__chains=True), "run.json", "`chains`, found True"),
    "a negative seed": (header(plan__seed=-1), "run.json", "`seed`, found -1"),
    "no rows": (header(rows=0), "run.json", "`rows`, found 0"),
    "so many rows": (huge_rows, DRAWS, "cannot be used: 'bits' is"),
    "a column outside": (header(modelled__0__index=9), "run.json", "`index`, found 9"),
    "a column twice": (header(modelled__1__index=0), "run.json", "found 'n', expected the table's"),
    "another type": (header(modelled__0__type="count"), "run.json", "does not fit types.yaml"),
    "a level twice": (header(modelled__2__levels=["x", "x"]), "run.json", "`modelled`"),
    "an odd style": (header(modelled__0__style={"places": -1}), "run.json", "`style`, found"),
    "another style": (header(modelled__0__style={"form": "%Y"}), "run.json", "`style`, found"),
    "other letters": (
        header(modelled__0__style={"form": "%b", "steps": 1, "letters": "loud"}),
        "run.json",
        "`style`, found",
    ),
    "a level more": (header(modelled__2__levels=list("wxyz")), "links.arrow", "'slot' is"),
    "other types": (
        filled("types.yaml", b"columns: {a: real, n: count, city: categorical, k: categorical}"),
        "types.yaml",
        "its hash is another",
    ),
    "types that explode": (filled("types.yaml", BOMB.encode()), "types.yaml", ""),
    "types that run code": (
        filled("types.yaml", b"columns: !!python/object/apply:os.system ['touch ran']"),
        "types.yaml",
        "",
    ),
    "other links": (flipped("links.arrow", 0.9), "links.arrow", "its hash is another"),
    "another table": (flipped("data.arrow", 0.6), "data.arrow", ""),
    "an empty stream": (filled(DRAWS, b""), DRAWS, "is cut off, found 0 bytes"),
    "half a stream": (cut(DRAWS, 0.5), DRAWS, "is cut off"),
    "a flipped bit": (flipped(DRAWS, 0.7), DRAWS, "its checksum is another"),
    "an empty state": (filled(STATE, b""), STATE, "cannot be used"),
    "half a state": (cut(STATE, 0.5), STATE, "cannot be used: it is broken or cut off"),
    "a pickle": (filled(STATE, b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c\x02os"), STATE, "cannot be"),
    "a negative count": (state(log__draws=np.array(-1, np.int64)), STATE, "it counts below 0"),
    "more draws than there are": (state(log__draws=np.array(9, np.int64)), DRAWS, "it holds 3"),
    "draws twice": (duplicate_draws, DRAWS, "it holds 6 draws where 3 are expected"),
    "compressed draws": (compressed, DRAWS, "it is compressed"),
    "a huge message": (huge_message, DRAWS, "it is broken or cut off"),
    "weights that are NaN": (draws(latent__B=nan), DRAWS, "'B' has values"),
    "weights of another shape": (draws(latent__B=lambda a: a[:, :-1]), DRAWS, "'B' is"),
    "weights of another kind": (draws(latent__B=lambda a: a.astype(np.int64)), DRAWS, "of int64"),
    "no noise": (draws(latent__noise=lambda a: 0 * a), DRAWS, "not above 0"),
    "absurdly many features": (
        draws(latent__n_columns=lambda a: np.array(2**62, np.int64)),
        DRAWS,
        "'bits' is",
    ),
    "thresholds that fall": (
        draws(params=lambda a: np.r_[a[:2], a[3:1:-1], a[4:]]),
        DRAWS,
        "'thresholds' does not increase",
    ),
    "parameters that are NaN": (draws(params=nan), DRAWS, "'params' has values that are not"),
    "parameters too few": (draws(params=lambda a: a[1:]), DRAWS, "'params' is"),
    "traces too many": (draws(trace=lambda a: np.r_[a, 1.0]), DRAWS, "'trace' is not a number"),
    "no names": (noted(lambda note: ""), DRAWS, "its schema does not name"),
    "wild names": (
        noted(lambda note: note.replace("[[", "[[99999,")),
        DRAWS,
        "its schema does not name",
    ),
    "names twice": (
        noted(lambda note: note.replace("alpha", "log_likelihood")),
        DRAWS,
        "its schema does not name",
    ),
    "names of another column": (
        noted(lambda note: note.replace("thresholds", "tresholds")),
        DRAWS,
        "column 'k': 'thresholds' is missing",
    ),
    "a link outside": (linked("types.yaml"), "types.yaml", "is a link to another place"),
    "a header outside": (linked("run.json"), "run.json", "is a link to another place"),
    "draws outside": (linked(DRAWS), DRAWS, "is a link to another place"),
    "a pipe": (piped(STATE), STATE, "is not an ordinary file"),
    "a folder inside": (a_folder("links.arrow"), "links.arrow", "is not an ordinary file"),
}

# What is found only when the run is gone on with, as its state is not needed before.
RESUMED: dict[str, tuple[Change, str, str]] = {
    "a state of NaN": (state(y=nan), STATE, "'y' has values that are not finite"),
    "a state of huge numbers": (state(y=lambda a: a + 1e300), STATE, "'y' has values that are not"),
    "a state of other rows": (state(y=lambda a: a[:-1]), STATE, "'y' is"),
    "bits of other rows": (state(latent__bits=lambda a: a[:-1]), STATE, "'bits' is"),
    "rows without bias": (state(latent__bits=lambda a: 0 * a), STATE, "a row without the bias"),
    "more features than allowed": (
        state(latent__n_columns=np.array(10**6, np.int64)),
        STATE,
        "'bits' is",
    ),
    "no random state": (state(random__streams=None), STATE, "the random state is missing"),
    "a wild random state": (
        state(random__streams=lambda a: np.full_like(a, 2**63)),
        STATE,
        "the random state is out of range",
    ),
    "another chain's state": (swapped_chains, "chain-", ""),
    "a state of no sweep": (state(sweep=np.array(0, np.int64)), STATE, "'sweep' is 0"),
    "a hard link": (hard_linked(DRAWS), DRAWS, "a hard link"),
    "a lock outside": (linked("lock"), "lock", "is a link to another place"),
}


@pytest.fixture
def desk(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the fit, the table and something that is nobody's business."""
    shutil.copytree(sound, tmp_path / "fit.glfm")
    (tmp_path / "secret").write_text("secret")
    pq.write_table(pa.table(TABLE), tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outside(desk: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in desk.iterdir()
        if path.is_file() and path.name != "fit.glfm"
    }


def test_there_are_enough_kinds() -> None:
    assert len(LOADED) + len(RESUMED) >= 20


@pytest.mark.parametrize("kind", LOADED)
def test_a_broken_folder_is_not_loaded(desk: Path, kind: str) -> None:
    change, name, said = LOADED[kind]
    change(desk / "fit.glfm")
    before = outside(desk)
    with pytest.raises(StoreError) as caught:
        load_fit("fit.glfm")
    assert str(caught.value).startswith(os.path.join("fit.glfm", name).rstrip("/"))
    assert said in str(caught.value)
    assert caught.value.exit_status == 2
    assert outside(desk) == before


def test_a_fit_with_settings_of_another_version_names_that_version(desk: Path) -> None:
    header(model_settings__x=1, versions__glfm="0.0.9")(desk / "fit.glfm")
    with pytest.raises(StoreError) as caught:
        load_fit("fit.glfm")
    now = f"this is {__version__}: use that version, or make a new fit."
    assert caught.value.hint == f"glfm 0.0.9 wrote it, and {now}"
    header(versions__glfm=__version__)(desk / "fit.glfm")
    with pytest.raises(StoreError) as caught:
        load_fit("fit.glfm")
    assert caught.value.hint is None


@pytest.mark.parametrize("kind", [*LOADED, *RESUMED])
def test_a_broken_folder_is_not_gone_on_with(
    desk: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, name, _ = (LOADED | RESUMED)[kind]
    change(desk / "fit.glfm")
    before = outside(desk)
    arguments = ["impute", "table.parquet", "--resume", "fit.glfm", "--draws", "5", "-o", "o.csv"]
    status = app.run(arguments, app.Console())
    lines = capsys.readouterr().err.splitlines()
    if kind in ("no data", "another table"):  # the table is given, so that its copy is not read
        assert status == 0
        return
    assert status == 2
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1
    assert errors[0].startswith("Error: " + os.path.join("fit.glfm", name).rstrip("/"))
    assert (LOADED | RESUMED)[kind][2] in errors[0]
    assert not [line for line in lines if not line.startswith(("Error: ", "Hint: ", "Warning: "))]
    assert outside(desk) == before


def test_a_sound_folder_is_loaded_and_gone_on_with(desk: Path) -> None:
    assert load_fit("fit.glfm").posterior.n_draws == 6
    done = impute("table.parquet", resume="fit.glfm", draws=5)
    assert done.posterior.n_draws == 10


def test_a_fit_without_a_draw_says_so(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    class Stopper:
        def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
            if sweep == 3:
                raise Enough

    folder = tmp_path / "fit.glfm"
    with pytest.raises(Enough):
        impute(
            pa.table(TABLE),
            TYPES,
            chains=1,
            warmup=8,
            save=folder,
            checkpoint=0,
            observer=Stopper(),
        )
    with pytest.raises(GlfmError, match="had made 3 of its 8 warm-up sweeps"):
        load_fit(folder)


@pytest.mark.parametrize("few", [[], 0, False, "", 1.0])
def test_a_number_of_covariates_is_none_or_a_whole_number_from_1(few: object) -> None:
    side = {"features": None, "ids": "u", "kind": "string", "covariates": []}
    said = {**dict.fromkeys(SIDES, side), "columns": 2, "cells": 3, "missingness": None}
    assert MatrixHeader.from_dict({**said, "sha256": "0"}).missingness is None
    with pytest.raises(ValueError):
        MatrixHeader.from_dict({**said, "missingness": few, "sha256": "0"})


def test_a_folder_that_another_run_has_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "fit.glfm"

    def overtaken() -> None:
        with new_folder(folder):
            folder.mkdir()
            (folder / "run.json").touch()

    with pytest.raises(OutputError, match="another run has begun") as caught:
        overtaken()
    assert caught.value.exit_status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["fit.glfm"]
    assert [path.name for path in folder.iterdir()] == ["run.json"]
