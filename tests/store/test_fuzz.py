"""Saved fits damaged at random: each is one clear error or a sound fit, never a crash.

A child process with a bounded memory loads every damaged copy and completes a table with it: a
crash ends the child, and the test with it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import classify, impute, load_fit
from glfm_cli.errors import GlfmError
from glfm_cli.latent import MODELS
from glfm_cli.store.arrays import read_batches, read_note, read_one, to_batch, to_stream

MEMORY = 1 << 30  # bytes that a damaged fit may take beyond what the process has
TYPES = {"columns": {"a": "real", "n": "count", "city": "categorical", "k": "ordinal"}}
TABLE = {
    "a": [None if i % 5 == 0 else i / 7 for i in range(20)],
    "n": [None if i % 7 == 1 else i % 4 for i in range(20)],
    "city": [None if i % 6 == 2 else "xyz"[i % 3] for i in range(20)],
    "k": [i % 3 for i in range(20)],
}
ROLES = {"who": {"role": "row"}, "what": {"role": "column"}}
MATRICES: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "real": ({"y": {"role": "value", "type": "real"}}, {"y": [(i * i) % 7 / 2 for i in range(18)]}),
    "ordinal": ({"y": {"role": "value", "type": "ordinal"}}, {"y": [i % 3 for i in range(18)]}),
    "binomial": (
        {"y": {"role": "value", "type": "binomial", "trials": "n"}, "n": "ignore"},
        {"y": [i % 4 for i in range(18)], "n": [4 + i % 3 for i in range(18)]},
    ),
    "counts": (
        {"y": {"role": "value", "type": "count", "absent": "zero"}},
        {"y": [1 + i % 3 for i in range(18)]},
    ),
}
SHORT_ASCENT = {"iterations": 2, "inducing": 3, "dimensions": 2}
# What run.json says the hash of a file by.
HASHED = {
    "links_sha256": "links.arrow",
    "sha256": "matrix.arrow",
    "pooling_hash": "pooling.arrow",
}
WHO = {
    "who": [f"r{i // 3}" for i in range(18)],
    "what": [f"c{(i + i // 3) % 5}" for i in range(18)],
}


CLASSIFIERS: dict[str, dict[str, Any]] = {
    "classifier": {"factors": 0},
    "factors": {"factors": 2},
    "tasks": {"stack": False},
    "pooled": {"stack": True},
    "sampler": {"inference": "gibbs", "sweeps": 4, "draws": 2},
}


def make(kind: str, folder: Path) -> Callable[[], None]:
    """Save a fit of a kind and return what uses it."""
    if kind in CLASSIFIERS:
        return make_classifier(kind, folder)
    if kind in MATRICES:
        types, values = MATRICES[kind]
        table = pa.table({**WHO, **values})
        schema = {"columns": {**ROLES, **types}}
        short: dict[str, Any] = {"warmup": 2, "draws": 2}
        if kind == "counts":
            short = {"model": "cnpf", "settings": {"passes": 12, "components": 3}}
        impute(table, schema, chains=1, save=folder, **short)

        def use() -> None:
            load_fit(folder)
            impute(table, fit=folder)
            impute(table, resume=folder, draws=3 if "draws" in short else None)

        return use
    table = pa.table(TABLE)
    ascent = MODELS[kind].kind == "ascent"
    lasting = {"settings": SHORT_ASCENT} if ascent else {"warmup": 2, "draws": 2}
    chains = 3 if kind == "auto" else 1  # one of each of its models
    impute(table, TYPES, model=kind, chains=chains, save=folder, **lasting)

    def use_table() -> None:
        load_fit(folder)
        impute(table, fit=folder)
        impute(table, resume=folder, draws=None if ascent else 3)

    return use_table


def make_classifier(kind: str, folder: Path) -> Callable[[], None]:
    """Save a classifier and return what uses it."""
    site = {"site": {"role": "task"}} if kind in ("tasks", "pooled") else {}
    schema = {"columns": {**TYPES["columns"], **site, "sick": "categorical"}}
    table = pa.table({**TABLE, **{name: ["st"[i // 10] for i in range(20)] for name in site}})
    sick = [None if i == 3 else "abc"[i % (2 if site else 3)] for i in range(20)]
    table = table.append_column("sick", [sick])
    short = {"experts": 3, "iterations": 3, "short": 2, **CLASSIFIERS[kind]}
    one = {"chains": 1, "threads": 1}
    classify(table, schema, target="sick", save=folder, settings=short, **one)

    def use() -> None:
        classify(table, fit=folder, threads=1, complete=True)
        if kind != "pooled":  # which is fitted anew, and takes long
            classify(table, resume=folder, threads=1)

    return use


# ------------------------------------------------------------------------------ damage


def damage(folder: Path, rng: np.random.Generator) -> str:
    """Change something in a folder, and return what."""
    names = sorted(path.name for path in folder.iterdir() if path.stat().st_size)
    way, name = rng.choice(["flip", "cut", "swap", "value", "value", "value"]), rng.choice(names)
    path, content = folder / name, bytearray((folder / name).read_bytes())
    if way == "flip":
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
    elif way == "cut":
        path.write_bytes(content[: rng.integers(len(content))])
    elif way == "swap":
        name = f"{name} and {(other := rng.choice(names))}"
        path.write_bytes((folder / other).read_bytes())
        (folder / other).write_bytes(content)
    else:
        return f"value {change_value(folder, rng)}"
    return f"{way} {name}"


def change_value(folder: Path, rng: np.random.Generator) -> str:
    """Change a number of a file and everything that vouches for it: sums and hashes."""
    names = [*sorted(path.name for path in folder.glob("*.arrow")), "run.json"]
    name = str(rng.choice(names))
    header = json.loads((folder / "run.json").read_text())
    if name == "run.json":
        where = _change_json(header, rng)
        (folder / name).write_text(json.dumps(header))
        return f"{name} {where}"
    buffer = pa.py_buffer((folder / name).read_bytes())
    if not name.endswith("draws.arrow"):
        arrays = {key: value.copy() for key, value in read_one(buffer).items()}
        where = _change_array(arrays, rng)
        (folder / name).write_bytes(to_stream(arrays))
    else:
        note, draws = read_note(buffer), [dict(one) for one in read_batches(buffer)]
        which = int(rng.integers(len(draws)))
        arrays = {key: value.copy() for key, value in draws[which].items()}
        where = _change_array(arrays, rng)
        draws[which] = arrays
        batches = [to_batch(one) for one in draws]
        schema = batches[0].schema.with_metadata({"names": note})
        sink = pa.BufferOutputStream()
        try:
            with pa.ipc.new_stream(sink, schema) as stream:
                for batch in batches:
                    stream.write_batch(batch)
        except (pa.ArrowException, ValueError):
            return f"{name} {where} (no stream)"
        (folder / name).write_bytes(sink.getvalue())
    _seal(folder, header)
    return f"{name} {where}"


def _seal(folder: Path, header: dict[str, Any]) -> None:
    """Make checksums and hashes right again."""
    for state in folder.glob("chain-*.state.arrow"):
        draws = folder / state.name.replace("state", "draws")
        arrays = {k: v.copy() for k, v in read_one(pa.py_buffer(state.read_bytes())).items()}
        if draws.exists() and "log.bytes" in arrays:
            content = draws.read_bytes()
            arrays["log.bytes"] = np.array(len(content), dtype=np.int64)
            arrays["log.checksum"] = np.array(zlib.crc32(content), dtype=np.int64)
            state.write_bytes(to_stream(arrays))
    text = json.dumps(header)
    for key, value in _strings(header):
        if key in HASHED and value:
            path = folder / HASHED[key]
            if path.exists():
                text = text.replace(value, hashlib.sha256(path.read_bytes()).hexdigest())
    (folder / "run.json").write_text(text)


def _strings(content: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(content, dict):
        return [pair for name, value in content.items() for pair in _strings(value, name)]
    return [(key, content)] if isinstance(content, str) else []


def _change_array(arrays: dict[str, Any], rng: np.random.Generator) -> str:
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    if rng.random() < 0.2:
        arrays[name] = np.ravel(array)[: max(array.size // 2, 0)].copy()
        return f"{name} halved"
    if array.size == 0:
        return f"{name} is empty"
    at = int(rng.integers(array.size))
    if array.dtype.kind == "f":
        value = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e300, -1e300, 0.5, 1e9])
    else:
        info = np.iinfo(array.dtype)
        value = rng.choice(np.array([info.max, info.min, 0, 1, 2**7 - 1], dtype=array.dtype))
    np.reshape(array, -1)[at] = value
    return f"{name}[{at}] = {value}"


def _change_json(content: Any, rng: np.random.Generator) -> str:
    key = rng.integers(len(content)) if isinstance(content, list) else rng.choice(sorted(content))
    key = int(key) if isinstance(content, list) else str(key)
    value = content[key]
    if isinstance(value, (dict, list)) and value:
        return f"{key}.{_change_json(value, rng)}"
    odd: list[Any] = [None, -1, 0, 10**12, 1.5, "", "x", [], {}, True, [[]], "1e999"]
    content[key] = odd[int(rng.integers(len(odd)))]
    return f"{key} = {content[key]!r}"


# ------------------------------------------------------------------------------- the child


def use_all_damaged(kinds: Sequence[str], root: Path, seed: int, n: int) -> None:
    """Damage `n` copies of a fit of every kind, use each, and write a line for each."""
    for kind in kinds:
        (root / kind).mkdir()
        use_damaged(kind, root / kind, seed, n, root / f"{kind}.txt")


def use_damaged(kind: str, root: Path, seed: int, n: int, out: Path) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sound, copy = root / "sound.glfm", root / "fit.glfm"
    use = make(kind, copy)
    shutil.copytree(copy, sound)
    use()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    rng = np.random.default_rng(seed)
    with out.open("w") as lines:
        for _ in range(n):
            shutil.rmtree(copy)
            shutil.copytree(sound, copy)
            what = damage(copy, rng)
            lines.write(f"{what}\t")
            lines.flush()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    use()
                answer = "used"
            except GlfmError as error:
                answer = "error" if "\n" not in str(error) else f"lines {error}"
            except Exception as error:
                answer = f"{type(error).__name__} {error}"
            lines.write(answer.replace("\n", " ") + "\n")
            lines.flush()


def check(kinds: Sequence[str], root: Path, seed: int, n: int) -> None:
    """Let a child damage fits of some kinds, and check what came of each."""
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=use_all_damaged, args=(kinds, root, seed, n))
    child.start()
    child.join()
    for kind in kinds:
        out = root / f"{kind}.txt"
        lines = [line.split("\t") for line in out.read_text().splitlines()] if out.exists() else []
        if child.exitcode and len(lines) < n:
            raise AssertionError(f"{kind}: {lines[-1:]} ended the process with {child.exitcode}")
        assert [line for line in lines if line[1] not in ("used", "error")] == [], kind
        assert len(lines) == n
        assert sum(line[1] == "error" for line in lines) > n / 3
    assert child.exitcode == 0


TABLES = ("glfm", "bsvd", "mixture", "clgp", "auto")


# A process of its own takes longer to start than to use what was damaged.
@pytest.mark.parametrize("kinds", [TABLES, tuple(MATRICES), tuple(CLASSIFIERS)], ids="-".join)
def test_damaged_fits_are_errors_or_sound(
    kinds: tuple[str, ...], tmp_path: Path, seed: int
) -> None:
    check(kinds, tmp_path, seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*TABLES, *MATRICES, *CLASSIFIERS])
def test_two_thousand_damaged_fits_are_errors_or_sound(
    kind: str, tmp_path: Path, seed: int
) -> None:
    check([kind], tmp_path, seed, 2000)


def test_numbers_that_do_not_go_together_are_errors(tmp_path: Path) -> None:
    folder = tmp_path / "fit.glfm"
    use = make("classifier", folder)
    header, links = (folder / "run.json").read_text(), (folder / "links.arrow").read_bytes()
    other = json.loads(header)
    other["model_settings"]["factors"] = 2
    (folder / "run.json").write_text(json.dumps(other))
    with pytest.raises(GlfmError, match="another number of factors than the settings say"):
        use()
    arrays = {name: value.copy() for name, value in read_one(pa.py_buffer(links)).items()}
    wide = next(n for n, v in arrays.items() if n.endswith(".codes") and v.shape[1] > 1)
    arrays[wide][:] = arrays[wide][:1]
    (folder / "links.arrow").write_bytes(to_stream(arrays))
    _seal(folder, json.loads(header))
    with pytest.raises(GlfmError, match="are not those of indicators of levels"):
        use()


@pytest.mark.parametrize("value", [1e9, -1e9])
def test_experts_so_far_away_that_variances_are_lost_are_errors(
    value: float, tmp_path: Path
) -> None:
    folder = tmp_path / "fit.glfm"
    use = make("classifier", folder)
    state = folder / "chain-0.state.arrow"
    stored = read_one(pa.py_buffer(state.read_bytes()))
    arrays = {name: array.copy() for name, array in stored.items()}
    arrays["latent.experts.m"][0, 1] = value
    state.write_bytes(to_stream(arrays))
    _seal(folder, json.loads((folder / "run.json").read_text()))
    with pytest.raises(GlfmError, match="'m' has values that are not finite numbers, or huge"):
        use()
