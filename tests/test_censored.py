"""Cells that are known only to lie below a limit of detection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kstest, norm, truncnorm

from glfm_cli import guess_schema, impute
from glfm_cli.encoding import encode
from glfm_cli.errors import GlfmError
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"chains": 2, "warmup": 60, "draws": 60, "threads": 1, "seed": 3}
LIMIT = 1.1


def lognormal(n: int, seed: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Return a table, the values of its first column, and where that is missing.

    About a third of them lie below the limit, and are written as `<1.1`.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    values = np.exp(0.5 + x + 0.5 * rng.normal(size=n))
    gone = rng.random(n) < 0.2
    cells = [f"<{LIMIT}" if v < LIMIT else f"{v:.4f}" for v in values]
    cells = [None if g else c for g, c in zip(gone, cells, strict=True)]
    return pa.table({"y": cells, "x": x}), values, gone


def types(**more: Any) -> dict[str, Any]:
    said = {"type": "positive", "transform": "log", "censored_below": LIMIT} | more
    return {"columns": {"y": said, "x": "real"}}


def test_a_censored_cell_is_drawn_below_its_limit(seed: int) -> None:
    table, _, _ = lognormal(200, seed)
    encoded = encode(table, Schema.from_dict(types())).columns[0]
    link = make_link(encoded, LinkConfig())
    rng, n = np.random.default_rng(seed), 4000
    x, eta, var = np.zeros(n), np.full(n, 0.4), 0.7
    y = np.empty((n, 1))
    link.augment(x, eta, var, {}, rng, y)
    cut = float(link.margin.to_latent(np.array(LIMIT)))
    assert y.max() <= cut
    sd = np.sqrt(var)
    law = truncnorm(-np.inf, (cut - 0.4) / sd, loc=0.4, scale=sd)
    assert kstest(y[:, 0], law.cdf).pvalue > 1e-4
    lower, upper = np.empty((n, 1)), np.empty((n, 1))
    link.bound(x, {}, y, rng, lower, upper)
    assert (lower == -np.inf).all()
    assert np.allclose(upper, cut)
    log_p = link.log_density_at(x[:1], eta[:1], np.array([var]), {})
    assert log_p == pytest.approx(norm.logcdf((cut - 0.4) / sd))


@pytest.mark.parametrize("model", ["glfm", "bsvd", "mixture"])
def test_cells_below_the_limit_stay_and_gaps_may_lie_there(model: str) -> None:
    table, values, gone = lognormal(240, 1)
    done = impute(table, types(), model=model, **SHORT)
    before, after = table["y"].to_pylist(), done.table["y"].to_pylist()
    assert [a for a, g in zip(after, gone, strict=True) if not g] == [c for c in before if c]
    filled = np.array([float(after[i]) for i in np.flatnonzero(gone)])
    assert 0.0 < filled.min() < LIMIT
    (part,) = (one for one in done.columns if one.estimate.size)
    low, median, high = part.marginal.quantiles.T
    truth = values[gone]
    assert np.mean((truth >= low) & (truth <= high)) > 0.85
    # Left out, the cells below the limit would pull what is put in up by a half and more.
    assert abs(np.mean(np.log(median) - np.log(truth))) < 0.3
    assert any("below the limit of 1.1, and stay as written" in note for note in done.data.notes)


def test_zeros_of_typed_columns_are_below_the_limit() -> None:
    table, _, _ = lognormal(120, 2)
    texts = table["y"].to_pylist()
    cells = [None if c is None else 0.0 if c[0] == "<" else float(c) for c in texts]
    numbers = table.set_column(0, "y", pa.array(cells))
    assert np.array_equal(
        encode(table, Schema.from_dict(types())).columns[0].x,
        encode(numbers, Schema.from_dict(types())).columns[0].x,
        equal_nan=True,
    )


def test_a_kept_fit_knows_its_limit(tmp_path: Any) -> None:
    table, _, _ = lognormal(150, 4)
    kept = str(tmp_path / "fit.glfm")
    impute(table, types(), save=kept, **SHORT)
    done = impute(table.slice(0, 40), fit=kept)
    filled = [
        float(new)
        for old, new in zip(table["y"][:40].to_pylist(), done.table["y"].to_pylist(), strict=True)
        if old is None
    ]
    assert min(filled) > 0.0


def test_the_limit_is_guessed() -> None:
    table, _, _ = lognormal(200, 5)
    guess = guess_schema(table)
    column = guess.schema.columns[0]
    assert (column.type, column.censored_below) == ("positive", LIMIT)
    assert "known only to lie below 1.1" in guess.reasons["y"]
    assert Schema.from_yaml(guess.schema.to_yaml()).columns[0].censored_below == LIMIT


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"type": "real", "censored_below": 1}, "`censored_below` goes with type positive alone"),
        ({"type": "count", "censored_below": 1}, "`censored_below` goes with type positive alone"),
        ({"type": "positive", "censored_below": 0}, "found 0, expected a number above 0"),
        ({"type": "positive", "censored_below": "low"}, "found 'low', expected a number"),
        (
            {"type": "positive", "censored_below": 5, "bounds": [None, 4]},
            "found 5, expected a number above 0, inside `bounds`",
        ),
    ],
)
def test_a_limit_that_cannot_be_is_refused(said: dict[str, Any], error: str) -> None:
    with pytest.raises(GlfmError) as caught:
        Schema.from_dict({"columns": {"y": said}})
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "error", "hint"),
    [
        (["<2", "3", "<1.1"], "row 1: found '<2', expected <1.1, the limit of the column", "One"),
        (["0.4", "3", "<1.1"], "row 1: found '0.4', expected <1.1, or a value of 1.1", "Write"),
        ([">9", "3", "<1.1"], "row 1: found '>9', expected a number", "only those below one limit"),
        (["30-39", "3", "<1.1"], "row 1: found '30-39', expected a number", "only those below"),
        (["5+", "3", "<1.1"], "row 1: found '5+', expected a number", "only those below one limit"),
    ],
)
def test_a_cell_beside_the_limit_is_named(cells: list[str], error: str, hint: str) -> None:
    with pytest.raises(GlfmError) as caught:
        encode(pa.table({"y": cells, "x": [1.0, 2.0, 3.0]}), Schema.from_dict(types()))
    assert error in str(caught.value)
    assert hint in str(caught.value.hint)


def test_without_a_limit_the_hint_names_it() -> None:
    schema = Schema.from_dict({"columns": {"y": "positive"}})
    with pytest.raises(GlfmError) as caught:
        encode(pa.table({"y": ["<0.5", "3"]}), schema)
    assert "`censored_below: 0.5`" in str(caught.value.hint)
