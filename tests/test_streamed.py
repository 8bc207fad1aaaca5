"""Files that are learnt from and completed without being read as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import glfm_cli.completion.sampled_rows as sampled_rows
from glfm_cli import GlfmError, Schema, impute, load_fit, read_table, write_table
from glfm_cli.completion import Files
from glfm_cli.completion.batches import BatchedCompletion
from glfm_cli.completion.learning_rows import FEWEST
from glfm_cli.completion.sampled_rows import sample_rows
from glfm_cli.inference.folding import BATCH

TYPES = {"columns": {"id": "id", "a": "real", "city": "categorical", "n": "count"}}
SHORT: dict[str, Any] = {"chains": 2, "warmup": 10, "draws": 1, "thin": 1, "threads": 1}
N = BATCH + 400


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of more rows than a batch, three cities of which are rare."""
    rng = np.random.default_rng(0)
    group = rng.random(N) < 0.5
    a = np.round(np.where(group, 2.0, -2.0) + 0.3 * rng.standard_normal(N), 4)
    a[7], a[-1] = 9.5, -9.25
    city = np.where(group, "Oslo", "Rome").astype(object)
    city[N - 5 :], city[100:140], city[60] = "Vaduz", "Bern", "Riga"
    n = rng.poisson(np.where(group, 20, 3))
    gaps = {"a": rng.random(N) < 0.1, "city": rng.random(N) < 0.1, "n": rng.random(N) < 0.001}
    gaps["a"][[7, -1]] = gaps["city"][[60, *range(100, 140), *range(N - 5, N)]] = False
    path = tmp_path_factory.mktemp("big") / "big.csv"
    columns = {"a": a, "city": city, "n": n}
    table = {name: pa.array(v, mask=gaps[name]) for name, v in columns.items()}
    write_table(pa.table({"id": np.arange(N), **table}), path)
    return path


def sampled(path: Path, n: int, seed: int = 0) -> pa.Table:
    return sample_rows(path, Schema.from_dict(TYPES), n, seed)[0]


def test_the_sample_does_not_depend_on_how_the_file_is_cut(
    big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sampled(big, 500)
    assert sample_rows(big, Schema.from_dict(TYPES), 500, 0)[1] == N
    assert not whole.equals(sampled(big, 500, seed=1))
    monkeypatch.setattr(sampled_rows, "BATCH", 700)
    assert whole.equals(sampled(big, 500))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_rare_is_in_the_sample_and_the_rest_is_random(big: Path, seed: int) -> None:
    table = sampled(big, 500, seed)
    rows = np.array(table["id"].to_pylist()).astype(int)
    assert rows.size == 500
    assert np.all(np.diff(rows) > 0)
    cities = dict(pc.value_counts(table["city"]).to_pylist()[i].values() for i in range(6))
    assert (cities["Vaduz"], cities["Riga"]) == (5, 1)
    assert cities["Bern"] >= 10  # two by chance
    assert {7, N - 1} <= set(rows)
    holes = [sum(not x for x in t["n"].to_pylist()) for t in (table, read_table(big))]
    assert 5 < holes[0] == holes[1] < FEWEST
    usual = np.isin(table["city"].to_pylist(), ["Oslo"]).sum() / cities["Rome"]
    assert abs(np.log(usual)) < 0.4
    assert abs(np.mean(rows) / N - 0.5) < 4 * 0.29 / np.sqrt(500)
    assert set(rows) < {int(x) for x in sampled(big, 530, seed)["id"].to_pylist()}


def test_a_common_stratum_is_no_larger_than_chance_has_it(big: Path) -> None:
    """Of rows with something common, what is raised to a number is not raised beyond it."""
    shares = [np.mean(pc.is_in(sampled(big, 2000, s)["city"], pa.array(["Oslo"]))) for s in (0, 1)]
    whole = np.mean(pc.is_in(read_table(big)["city"], pa.array(["Oslo"])))
    rows = [np.array(sampled(big, 2000, s)["id"].to_pylist()).astype(float) for s in (0, 1)]
    assert np.allclose([one.mean() / N for one in rows], 0.5, atol=4 * 0.29 / np.sqrt(2000))
    assert np.allclose(shares, whole, atol=4 * 0.5 / np.sqrt(2000))
    everything = set(read_table(big)["city"].to_pylist())
    assert set(sampled(big, 3)["city"].to_pylist()) == everything  # more rows than were asked for
    assert sampled(big, 200)["city"].to_pylist().count("Vaduz") == 5  # the rarest come first


def streamed(path: Path, out: Path, **options: Any) -> Any:
    files = Files(out, flags=options.pop("flags", False))
    found = impute(path, files=files, learn_rows=300, memory="1k", **{**SHORT, **options})
    assert isinstance(found, BatchedCompletion)
    return found


def test_all_rows_are_completed_as_new_rows_of_the_fit(big: Path, tmp_path: Path) -> None:
    done = streamed(big, tmp_path / "out.csv", types=TYPES, save=tmp_path / "f.glfm", seed=3)
    fit = load_fit(tmp_path / "f.glfm")
    assert fit.n_rows == 300
    impute(big, fit=fit, files=Files(tmp_path / "again.csv"), threads=2)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    before, after = read_table(big), read_table(tmp_path / "out.csv")
    assert after.column_names == before.column_names
    empty = 0
    for name in before.column_names:
        old, new = before[name].to_pylist(), after[name].to_pylist()
        gone = [x is None or x == "" for x in old]
        assert all(g or x == y for g, x, y in zip(gone, old, new, strict=True))
        assert not any(y is None or y == "" for y in new)
        empty += sum(gone)
    assert done.n_completed == empty
    assert done.to_dict()["rows"] == N


def test_a_run_that_goes_on_is_that_of_one_sitting(big: Path, tmp_path: Path) -> None:
    streamed(big, tmp_path / "one.csv", types=TYPES, draws=2)
    streamed(big, tmp_path / "two.csv", types=TYPES, save=tmp_path / "f.glfm")
    more = dict.fromkeys(SHORT) | {"draws": 2}
    streamed(big, tmp_path / "two.csv", resume=tmp_path / "f.glfm", **more)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"learn_rows": None}, "more than memory"),
        ({"files": {"multiple": 2}}, "more than memory"),
        ({"estimate": "draw"}, "more than memory"),
        ({"types": {"columns": {**TYPES["columns"], "id": "group"}}}, "more than memory"),
    ],
    ids=str,
)
def test_what_needs_all_rows_together_is_refused(
    big: Path, tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    options = {"types": TYPES, "learn_rows": 300, "memory": "1k", **SHORT, **more}
    options["files"] = Files(tmp_path / "out.csv", **more.get("files", {}))
    with pytest.raises(GlfmError, match=said):
        impute(big, **options)
    assert not list(tmp_path.iterdir())


def test_a_wrong_cell_is_named_by_its_row_before_anything_is_learnt(
    big: Path, tmp_path: Path
) -> None:
    lines = big.read_text().splitlines(keepends=True)
    lines[N - 20] = "1,much,Oslo,4\n"
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(GlfmError, match=rf"column 'a', row {N - 20}: found 'much'"):
        streamed(tmp_path / "t.csv", tmp_path / "o.csv", types=TYPES)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_file_without_gaps_is_written_as_it_is_and_nothing_is_learnt(
    big: Path, tmp_path: Path
) -> None:
    whole = read_table(big)
    full = [pc.and_(pc.is_valid(c), pc.not_equal(c, "")) for c in map(_texts, whole.columns)]
    write_table(whole.filter(pc.and_(pc.and_(*full[:2]), pc.and_(*full[2:]))), tmp_path / "t.csv")
    done = streamed(tmp_path / "t.csv", tmp_path / "o.csv", types=TYPES, flags=True)
    impute(tmp_path / "t.csv", TYPES, files=Files(tmp_path / "p.csv", flags=True))
    assert done.posterior.n_draws == done.n_completed == 0
    assert [said for said in done.warnings if "no model is fitted" in said]
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    kept = streamed(tmp_path / "t.csv", tmp_path / "o.csv", types=TYPES, save=tmp_path / "f.glfm")
    assert kept.posterior.n_draws == 2


def test_a_single_gap_outside_the_sample_is_completed(tmp_path: Path) -> None:
    """Intervals, which stay, are empty cells of the sample; the gap is in a row that is not."""
    rng = np.random.default_rng(2)
    dose = rng.gamma(2.0, 5.0, N)
    text = np.where(dose < 5, "<5", np.round(dose, 2).astype(str))
    text[N - 3] = ""
    table = pa.table({"dose": text, "x": np.round(dose + rng.standard_normal(N), 3)})
    write_table(table, tmp_path / "t.csv")
    sample = sample_rows(tmp_path / "t.csv", Schema.from_dict(types := {"rest": "real"}), 300, 0)[0]
    assert "" not in sample["dose"].to_pylist()
    done = streamed(tmp_path / "t.csv", tmp_path / "o.csv", types=types)
    assert done.n_completed == 1
    after = read_table(tmp_path / "o.csv")["dose"].to_pylist()
    assert after[: N - 3] == text[: N - 3].tolist()
    assert np.isfinite(float(after[N - 3]))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())
