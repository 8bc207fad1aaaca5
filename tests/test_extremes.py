"""Estimates far outside what is observed are named, and others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import Completion, impute
from glfm_cli.completion.extremes import cut_estimates

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
