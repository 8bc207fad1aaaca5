"""Files that are completed some rows at a time: the same bytes as when they are read whole."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import glfm_cli.io.batches as batches
from glfm_cli import GlfmError, impute, load_fit
from glfm_cli.completion import Files, Fitted, prepare
from glfm_cli.completion.batches import BatchedCompletion, summed
from glfm_cli.inference.folding import BATCH
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.sampling import sample
from glfm_cli.io import read_batches, read_table, write_parts
from glfm_cli.latent import MODELS
from glfm_cli.latent.capabilities import JoinsRows
from glfm_cli.schema import Schema
from glfm_cli.streams import seed_of_batch

TYPES = {"columns": {"id": "id", "a": "real", "city": "categorical"}}
N = BATCH + 300


def make(n: int, seed: int = 0) -> dict[str, Any]:
    """Return columns of two groups, some cells missing."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    a = np.where(group, 2.0, -2.0) + 0.3 * rng.standard_normal(n)
    city = np.where(group, "Oslo", "Rome, Lazio").astype(object)
    a[rng.random(n) < 0.1] = np.nan
    city[rng.random(n) < 0.1] = None
    return {"id": np.arange(n), "a": a, "city": city}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fit, and a table of more rows than a batch as CSV, Parquet and a folder."""
    desk = tmp_path_factory.mktemp("batches")
    small, large = make(60, 1), make(N)
    impute(
        pa.table({n: pa.array(v, from_pandas=True) for n, v in small.items()}),
        TYPES,
        save=desk / "f.glfm",
        chains=2,
        warmup=20,
        draws=1,
        threads=1,
    )
    lines = ["id,a,city\r\n"]
    for i, a, city in zip(*large.values(), strict=True):
        # Quotes are where they must be in the first batch, and everywhere in the last.
        name = "" if city is None else f'"{city}"' if i > BATCH or "," in city else city
        lines.append(f"{i},{'' if np.isnan(a) else f'{a:.4f}'},{name}\r\n")
    (desk / "t.csv").write_bytes("".join(lines).encode())
    table = pa.table({n: pa.array(v, from_pandas=True) for n, v in large.items()})
    pq.write_table(table, desk / "t.parquet", row_group_size=5000)
    (desk / "t").mkdir()
    for k, start in enumerate(range(0, N, 7000)):
        pq.write_table(table.slice(start, 7000), desk / "t" / f"{k}.parquet")
    return desk


def completed(desk: Path, name: str, suffix: str, memory: str) -> tuple[Any, list[bytes]]:
    """Return what `impute` gives of a file with the fit, and the bytes of what it writes."""
    out = [desk / f"{what}.{memory}{suffix}" for what in ("table", "cells", "levels")]
    files = Files(out[0], out[1], out[2], flags=True)
    found = impute(desk / name, fit=desk / "f.glfm", files=files, memory=memory, threads=1)
    return found, [path.read_bytes() for path in out]


def test_a_text_in_batches_becomes_the_bytes_of_the_whole(desk: Path) -> None:
    some, in_batches = completed(desk, "t.csv", ".csv", "1k")
    whole, at_once = completed(desk, "t.csv", ".csv", "100G")
    assert isinstance(some, BatchedCompletion)
    assert not isinstance(whole, BatchedCompletion)
    # A column's rule for quotes is one for the whole file, and one for each batch.
    assert in_batches[0].replace(b'"', b"") == at_once[0].replace(b'"', b"")
    assert in_batches[1:] == at_once[1:]
    given = (desk / "t.csv").read_bytes().split(b"\r\n")
    for before, after in zip(given[1:], in_batches[0].split(b"\r\n")[1:], strict=True):
        assert b",," in before or before[-1:] == b"," or after.startswith(before)
    # That of the first batch stands for all: the last has few rows.
    assert 0.9 < some.precision.cells / whole.precision.cells < 1.0
    one, other = some.to_dict(), whole.to_dict()
    for name in ("rows", "columns", "cells_completed", "not_completed"):
        assert one[name] == other[name]
    for ours, theirs in zip(one["per_column"], other["per_column"], strict=True):
        for name in ("levels", "candidates"):
            assert ours.pop(name, None) == theirs.pop(name, None)
        assert ours == pytest.approx(theirs)


def test_how_precise_estimates_are_is_said_where_the_first_batch_has_no_gap(desk: Path) -> None:
    table = pq.read_table(desk / "t.parquet").to_pandas()
    table.loc[: BATCH - 1, "a"], table.loc[: BATCH - 1, "city"] = 1.0, "Oslo"
    table.to_csv(desk / "late.csv", index=False)
    missing = int(table[["a", "city"]].isna().sum().sum())
    some, _ = completed(desk, "late.csv", ".csv", "1k")
    assert isinstance(some, BatchedCompletion)
    assert some.precision.cells == missing > 0


@pytest.mark.parametrize("name", ["t.parquet", "t"])
def test_parquet_in_batches_becomes_the_table_of_the_whole(desk: Path, name: str) -> None:
    some, _ = completed(desk, name, ".parquet", "1k")
    assert isinstance(some, BatchedCompletion)
    completed(desk, name, ".parquet", "100G")
    for what in ("table", "cells", "levels"):
        one, other = (pq.read_table(desk / f"{what}.{m}.parquet") for m in ("1k", "100G"))
        assert one.equals(other)
        assert one.schema.equals(other.schema, check_metadata=True)


def test_a_wrong_cell_is_named_by_its_row_in_the_file(desk: Path, tmp_path: Path) -> None:
    lines = (desk / "t.csv").read_text().splitlines(keepends=True)
    lines[BATCH + 7] = "1,1.5,Bergen\n"
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(GlfmError, match=rf"row {BATCH + 7}: found 'Bergen'"):
        impute(
            tmp_path / "t.csv", fit=desk / "f.glfm", files=Files(tmp_path / "o.csv"), memory="1k"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_notes_on_rows_are_those_of_the_whole(desk: Path, tmp_path: Path) -> None:
    lines = (desk / "t.csv").read_text().splitlines(keepends=True)
    for row in (7000, BATCH + 3, BATCH + 200):
        lines[row] = f"{row},,\n"
    lines[BATCH] = "sum,1.0,Oslo\n"  # the last of its batch, not of the file
    lines[-1] = "total,2.0,Oslo\n"
    (tmp_path / "t.csv").write_text("".join(lines))
    some, whole = (
        impute(
            tmp_path / "t.csv",
            fit=desk / "f.glfm",
            files=Files(tmp_path / f"{memory}.csv"),
            memory=memory,
            threads=1,
        )
        for memory in ("1k", "100G")
    )
    assert isinstance(some, BatchedCompletion)
    assert some.warnings == whole.warnings
    assert some.to_dict()["warnings"] == whole.to_dict()["warnings"]
    empty = [row for row, line in enumerate(lines) if line.strip().endswith(",,")]
    shown = f"{len(empty)} rows (the first: row {empty[0]}) have no observed value"
    assert some.warnings[0].startswith(shown)
    assert some.warnings[1].startswith(f"the last row, {N}, looks like a total")


def test_notes_on_cells_that_break_a_rule_join(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    low = rng.normal(size=N)
    high = low + rng.uniform(0.1, 1.0, N)
    wrong = [4, 5, BATCH + 1, BATCH + 2, BATCH + 3, BATCH + 4]
    high[wrong] = low[wrong] - 1.0
    high[10] = np.nan
    table = pa.table({"low": low, "high": pa.array(high, from_pandas=True)})
    pq.write_table(table, tmp_path / "t.parquet")
    types = {"columns": {"low": {"type": "real", "less_than": "high"}, "high": "real"}}
    how: dict[str, Any] = {"chains": 1, "warmup": 5, "draws": 2, "threads": 1}
    impute(table.slice(20, 100), types, save=tmp_path / "f.glfm", **how)
    files = Files(tmp_path / "o.parquet")
    found = impute(
        tmp_path / "t.parquet", fit=tmp_path / "f.glfm", files=files, memory="1k", threads=1
    )
    shown = ", ".join(str(row + 1) for row in wrong[:5])
    assert found.warnings[0] == (
        f"column 'low': 6 cells are not less than 'high' (rows {shown}, ...)"
    )


def test_cells_that_an_integer_type_cuts_are_counted_over_batches(tmp_path: Path) -> None:
    s = np.random.default_rng(0).standard_normal(N)
    score = pa.array(np.rint(100 + 20 * s), pa.int64(), mask=s > 1.3).cast(pa.int8())
    table = pa.table({"score": score, "s": s})
    pq.write_table(table, tmp_path / "t.parquet")
    how: dict[str, Any] = {"model": "glfm", "chains": 1, "warmup": 10, "draws": 2, "threads": 1}
    types = {"columns": {"score": "count", "s": "real"}}
    impute(table.slice(0, 200), types, save=tmp_path / "f.glfm", **how)
    some, whole = (
        impute(
            tmp_path / "t.parquet",
            fit=tmp_path / "f.glfm",
            files=Files(tmp_path / f"{memory}.parquet"),
            memory=memory,
            threads=1,
        )
        for memory in ("1k", "100G")
    )
    assert isinstance(some, BatchedCompletion)
    noted = [text for text in some.warnings if "beyond what the integer type" in text]
    assert len(noted) == 1
    assert noted[0] in whole.warnings


def test_what_is_asked_of_all_rows_together_reads_them_together(
    desk: Path, tmp_path: Path
) -> None:
    files = Files(tmp_path / "o.csv", multiple=2)
    small = tmp_path / "t.csv"
    small.write_text("".join((desk / "t.csv").read_text().splitlines(keepends=True)[:50]))
    assert impute(small, fit=desk / "f.glfm", files=files, memory="1k").versions is not None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_a_text_in_another_encoding_is_not_read_in_batches(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,é\n2,x\n" * 3, encoding=encoding)
    with pytest.raises(GlfmError, match="cannot be read in batches: it is not UTF-8"):
        list(read_batches(tmp_path / "t.csv", 2))


def test_a_table_to_learn_from_must_fit_into_the_memory(desk: Path) -> None:
    with pytest.raises(GlfmError, match="more than memory"):
        impute(desk / "t.csv", TYPES, memory="10k")
    for wrong in ("0", "many", "-1G", ""):
        with pytest.raises(GlfmError, match="memory"):
            impute(desk / "t.csv", TYPES, memory=wrong)


@pytest.mark.parametrize(
    ("model", "linear"),
    [*((name, 0) for name, m in MODELS.items() if "dense" in m.layouts), ("glfm", 2)],
)
def test_draws_of_parts_of_the_rows_join_to_those_of_all(model: str, linear: int) -> None:
    kind = {"cnpf": "count", "clgp": "categorical"}.get(model, "real")
    x = np.random.default_rng(0).poisson(2, (3, 40))
    table = pa.table({f"c{d}": pa.array(v, mask=v == 2) for d, v in enumerate(x.clip(0, 4))})
    types = {"columns": dict.fromkeys(table.column_names, kind)}
    if kind == "categorical":
        table = pa.table({n: table[n].cast(pa.string()) for n in table.column_names})
    length = {} if MODELS[model].kind == "ascent" else {"warmup": 5, "draws": 2, "thin": 1}
    more = {"settings": {"components": linear}} if linear else {}
    problem, data, plan = prepare(table, types, model=model, chains=1, **length, **more)
    posterior = sample(problem, plan, threads=1).posterior
    parts, laws = [], []
    for number, rows in enumerate((np.arange(25), np.arange(25, 40))):
        fitted = Fitted.of_run(Schema.from_dict(types), data, problem, posterior, 0)
        parts.append(fitted.run(data.take(rows), seed=number).posterior)
        laws.append(predict(parts[-1], {d: np.arange(rows.size) for d in range(3)}))
    latent = problem.model
    assert isinstance(latent, JoinsRows)
    joined = tuple(
        replace(one, latent=latent.join_rows([one.latent, other.latent]))
        for one, other in zip(parts[0].chains[0], parts[1].chains[0], strict=True)
    )
    whole = predict(replace(parts[0], chains=(joined,)), {d: np.arange(40) for d in range(3)})
    for d in range(3):
        both = np.concatenate([law[d].mean for law in laws])
        # Moments are read from tables of the cells at hand, good to 1e-6 of their spread.
        assert np.allclose(whole[d].mean, both, rtol=1e-6, atol=1e-6, equal_nan=True)
        if whole[d].probabilities is not None:
            p = np.concatenate([law[d].probabilities for law in laws])
            assert np.allclose(whole[d].probabilities, p, rtol=1e-9, atol=1e-12)


def test_batches_have_seeds_of_their_own() -> None:
    seeds = [seed_of_batch(3, number) for number in range(100)]
    assert seeds[0] == 3
    assert len({*seeds, *(seed_of_batch(4, number) for number in range(100))}) == 200


def test_summaries_of_parts_add_up() -> None:
    one = {"column": "a", "observed": 5, "completed": 1, "mean": 2.0, "mean_sd": 1.0}
    other = {"column": "a", "observed": 7, "completed": 3, "mean": 6.0, "mean_sd": 2.0}
    both = {"column": "a", "observed": 12, "completed": 4, "mean": 5.0, "mean_sd": 1.75}
    assert summed(summed({}, one), other) == both
    assert summed({"column": "a", "observed": 5, "completed": 0}, other) == other | {"observed": 12}
    of_rows = {"observed": 1, "margin": {"weight": 1.0, "mean": 2.0}}
    more = {"observed": 1, "margin": {"weight": 3.0, "mean": 6.0}}
    assert summed(summed({}, of_rows), more)["margin"] == {"weight": 4.0, "mean": 5.0}
    assert summed(of_rows, {"observed": 1})["margin"] == of_rows["margin"]  # its rows count 0
    shares = [{"weight": weight, "levels": {"x": p}} for weight, p in ((1, 0.0), (3, 1.0))]
    one, other = ({"observed": 1, "margin": margin} for margin in shares)
    assert summed(one, other)["margin"] == {"weight": 4, "levels": {"x": 0.75}}


# Reading -------------------------------------------------------------------------------------

PLAIN = "a,b\n" + "".join(f"{i},x{i}\n" for i in range(23))
TEXTS = {
    "plain": PLAIN,
    "no last line end": PLAIN[:-1],
    "blank lines at the end": PLAIN + "\n\n\n",
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "old line ends": PLAIN.replace("\n", "\r"),
    "quotes": "a;b\n" + "".join(f'{i};"x\n""{i}"";"\n' for i in range(23)),
    "one column": "a\n" + "1\n\n3\n" * 8,
    "a title": "Table 1\n\na,b,c\n" + "1,2,3\n" * 20,
    "notes": PLAIN.replace(",", ",1,") + "\nSource: a survey\n",
    "units": "time,mass\n(s),(kg)\n" + "1.5,2\n" * 20,
    "a mark": "\ufeff" + PLAIN,
    "a row without a line end": "a,b\n1,x",
    "a cell without a line end": "a\n1",
}


@pytest.mark.parametrize("n_rows", [1, 4, 23, 100])
@pytest.mark.parametrize("name", TEXTS)
def test_batches_of_a_text_are_its_rows_and_are_written_back(
    name: str, n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_PIECE", 16)
    raw = TEXTS[name].encode()
    (tmp_path / "t.csv").write_bytes(raw)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(raw))
    whole = read_table(tmp_path / "t.csv").replace_schema_metadata(None)
    for source in ("t.csv", "t.csv.gz", "t.csv.bz2"):
        parts = list(read_batches(tmp_path / source, n_rows))
        assert all(part.num_rows == n_rows for part in parts[:-1])
        plain = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
        assert plain.combine_chunks().equals(whole.combine_chunks())
        write_parts(iter(parts), tmp_path / "again.csv")
        assert (tmp_path / "again.csv").read_bytes() == raw


def test_folding_does_not_depend_on_how_rows_come(desk: Path) -> None:
    """The rows of the second batch, alone with its seed, are those of the whole."""
    fitted = Fitted.of_fit(load_fit(desk / "f.glfm"))
    table = read_table(desk / "t.parquet")
    whole = fitted.run(fitted.encode(table), seed=5).posterior
    second = fitted.encode(table.slice(BATCH, BATCH))
    alone = fitted.run(second, seed=seed_of_batch(5, 1)).posterior
    cells, same = {0: np.arange(BATCH, BATCH + 50)}, {0: np.arange(50)}
    assert np.array_equal(predict(whole, cells)[0].mean, predict(alone, same)[0].mean)
