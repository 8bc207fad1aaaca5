"""Estimates far outside what is observed are named, and others are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import Completion, impute, write_table
from glfm_cli.completion.extremes import cut_estimates
from glfm_cli.inference.folding import BATCH

SHORT = {"model": "glfm", "chains": 2, "warmup": 20, "draws": 10, "thin": 1, "threads": 1}


def completed(**income: str) -> Completion:
    """Return incomes that are 0 in a fifth of the rows, completed."""
    rng = np.random.default_rng(1)
    f = rng.standard_normal(300)
    earned = np.floor(np.exp(9.0 + 0.8 * f + 0.9 * rng.standard_normal(300)))
    x = np.where(rng.random(300) < 0.2, 0.0, earned)
    columns = {
        "income": pa.array(x, mask=rng.random(300) < 0.2),
        "s": f + 0.3 * rng.standard_normal(300),
    }
    return impute(pa.table(columns), {"columns": {"income": income, "s": "real"}}, seed=1, **SHORT)


@pytest.mark.parametrize("transform", [None, "log1p"])
def test_estimates_far_beyond_the_observed_are_named(transform: str | None) -> None:
    """Those beyond by more than three times what the observed cells span."""
    done = completed(type="count", **({"transform": transform} if transform else {}))
    part = next(one for one in done.columns if one.encoded.column.name == "income")
    most = part.encoded.typical.max()
    estimate = part.estimate.copy()
    estimate[:4] = np.array([3.9, 4.1, 1e4, -3.1]) * most  # the least is 0
    rest = [one for one in done.columns if one is not part]
    far = replace(done, columns=(replace(part, estimate=estimate), *rest))
    (line,) = [text for text in far.warnings if "far outside" in text]
    assert line.startswith("column 'income': 3 completed cells are far outside the observed 0 to ")
    assert f"(row {part.marginal.rows[2] + 1}: {1e4 * most:.6g})" in line
    change = "leave `transform` out" if transform else "set `transform: rank`"
    assert line.endswith(f"; {change}, or set `bounds`")


@pytest.mark.parametrize("kind", ["count", "positive"])
def test_usual_estimates_raise_no_alarm(kind: str) -> None:
    assert not [text for text in completed(type=kind).warnings if "far outside" in text]


def test_those_of_a_file_in_batches_are_named_as_those_of_the_whole(
    glfm: Any, tmp_path: Path
) -> None:
    """By the worst of all batches, beside the ends of what was learnt from, not of a batch."""
    rng = np.random.default_rng(3)
    s = rng.standard_normal(BATCH + 600)
    a = s + 0.1 * rng.standard_normal(s.size)
    far = [4, BATCH + 20, BATCH + 21]
    s[far], a[11], a[12] = [65.0, 80.0, 75.0], -6.5, 6.25
    table = pa.table({"a": pa.array(a, mask=np.isin(np.arange(s.size), [*far, 30])), "s": s})
    write_table(table, tmp_path / "t.csv")
    write_table(table.slice(5, 300), tmp_path / "small.csv")
    kinds = "columns: {a: {type: real, transform: none}, s: {type: real, transform: none}}"
    (tmp_path / "t.yaml").write_text(kinds)
    short = ["--chains", "2", "--warmup", "99", "--draws", "9", "--thin", "1", "--model", "bsvd"]
    short += ["--types", "t.yaml", "-o", "o.csv"]
    glfm("impute", "small.csv", *short, "--save", "f.glfm", cwd=tmp_path)
    some = glfm("impute", "t.csv", *short, "--learn-rows", "300", "--memory", "1k", cwd=tmp_path)
    more = ["--fit", "f.glfm", "-o", "o.csv"]
    by_fit = glfm("impute", "t.csv", *more, "--memory", "1k", cwd=tmp_path)
    whole = glfm("impute", "t.csv", *more, "--memory", "100G", cwd=tmp_path)
    said = [_far(done.stderr) for done in (some, by_fit, whole)]
    start = "column 'a': 3 completed cells are far outside the observed -6.5 to 6.25 "
    assert all(line.startswith(f"Warning: {start}") for line in said), said
    assert f"(row {far[1] + 1}: " in said[1]
    assert said[1] == said[2]


def _far(stderr: str) -> str:
    (line,) = [line for line in stderr.splitlines() if "far outside" in line]
    return line


def test_successes_lie_within_their_trials_and_raise_no_alarm() -> None:
    """A count of them is no share, and may well be 30 times the largest of these."""
    rng = np.random.default_rng(4)
    n = rng.integers(20, 60, 80)
    hits = pa.array(rng.binomial(n, 0.5), mask=rng.random(80) < 0.3)
    types = {"columns": {"hits": {"type": "binomial", "trials": "n"}, "n": "count"}}
    done = impute(pa.table({"hits": hits, "n": n}), types, seed=1, **SHORT)
    assert done.n_completed > 10
    assert not [text for text in done.warnings if "far outside" in text]


def test_dates_far_outside_are_named_as_dates() -> None:
    day = pa.array(["2020-01-01", "2020-02-01", None, "2020-03-01", "2020-01-20", "2020-02-07"])
    types = {"columns": {"day": "date", "s": "real"}}
    done = impute(pa.table({"day": day, "s": [1.0, 2.0, 9.0, 3.0, 1.5, 2.2]}), types, **SHORT)
    (part,) = [one for one in done.columns if one.estimate.size]
    for far, text in ((25_000.0, "2038-06-13"), (1e12, "9999-12-31")):
        found = replace(done, columns=(replace(part, estimate=np.array([far])),))
        (line,) = [one for one in found.warnings if "far outside" in one]
        assert f"far outside the observed 2020-01-01 to 2020-03-01 (row 3: {text})" in line


@pytest.mark.parametrize(("kind", "encoded"), [("int8", False), ("int8", True), ("int64", False)])
def test_estimates_beyond_the_integer_type_are_counted(kind: str, encoded: bool) -> None:
    """The table keeps its type, so that 150 in 8 bits becomes 127."""
    rng = np.random.default_rng(2)
    s = np.sort(rng.standard_normal(200))
    score = pa.array(np.rint(100 + 20 * s), pa.int64(), mask=s > 1.3).cast(kind)
    score = score.dictionary_encode() if encoded else score
    table, types = pa.table({"score": score, "s": s}), {"columns": {"score": "count", "s": "real"}}
    done = impute(table, types, seed=1, **SHORT)
    beyond = sum(int((part.estimate.round() > 127).sum()) for part in done.columns)
    assert beyond > 0
    assert done.table.field("score").type == score.type
    noted = [text for text in done.warnings if "beyond what the integer type" in text]
    assert len(noted) == (kind == "int8")
    assert all(f"column 'score': {beyond} completed cells lie" in text for text in noted)


def test_cells_are_cut_at_both_ends_of_an_integer_type() -> None:
    done = completed(type="real")
    part = next(one for one in done.columns if one.encoded.column.name == "income")
    estimate = np.array([-129.0, -128.4, 0.0, 127.4, 127.6, 300.0])
    assert cut_estimates(part.encoded, estimate, pa.int8()) == 3
    assert cut_estimates(part.encoded, estimate, pa.uint8()) == 3
    assert cut_estimates(part.encoded, estimate, pa.float32()) == 0
