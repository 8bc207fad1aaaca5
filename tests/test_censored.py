"""Cells that are known only to lie between two numbers: `<0.5`, `>100`, `30-39`, `5+`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm, truncnorm

from glfm_cli import classify, guess_schema, impute
from glfm_cli.classification.evidence import normal_evidence
from glfm_cli.classification.features import LatentColumn, cells_of
from glfm_cli.encoding import encode
from glfm_cli.errors import GlfmError
from glfm_cli.io.numerals import parse_interval
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.censored import censored_moments, is_log_normal
from glfm_cli.links.law import normal
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"chains": 2, "warmup": 60, "draws": 60, "threads": 1, "seed": 3}
LOW, HIGH = 1.1, 6.0
KINDS = ("real", "positive", "count")


def written(value: float, i: int) -> str:
    """Return a value as it is known: below LOW, above HIGH, of some in between, or exactly."""
    if value < LOW:
        return f"<{LOW}"
    if value > HIGH:
        return f">{HIGH:g}"
    return "2-3" if 2.0 <= value <= 3.0 and i % 2 else f"{value:.4f}"


def lognormal(n: int, seed: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Return a table, the values of its first column, and where that is missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    values = np.exp(0.5 + x + 0.5 * rng.normal(size=n))
    gone = rng.random(n) < 0.2
    cells = [None if g else written(v, i) for i, (g, v) in enumerate(zip(gone, values))]  # noqa: B905
    return pa.table({"y": cells, "x": x}), values, gone


def types(**more: Any) -> dict[str, Any]:
    return {"columns": {"y": {"type": "positive", "transform": "log"} | more, "x": "real"}}


def encoded_of(cells: list[str], **more: Any) -> Any:
    table = pa.table({"y": cells})
    return encode(table, Schema.from_dict({"columns": {"y": more}})).columns[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_an_interval_is_drawn_and_scored_by_its_probability(
    kind: str, noise: float, seed: int
) -> None:
    cells = [str(k) for k in range(1, 12)] + ["3-5"]
    link = make_link(encoded_of(cells, type=kind), LinkConfig(link_noise=noise))
    n, var, mean = 4000, 0.7, 0.4
    x, eta, y = np.tile([3.0, 5.0], (n, 1)), np.full(n, mean), np.empty((n, 1))
    rng = np.random.default_rng(seed)
    link.augment(x, eta, var, {}, rng, y)
    after = 6.0 if kind == "count" else 5.0
    a, b = link.margin.to_latent(np.array([3.0, after]))
    noise = link.noise  # counts have none
    sd = np.sqrt(var + noise)
    total = y[:, 0] if noise == 0.0 else y[:, 0] + 0.0
    if noise == 0.0:
        law = truncnorm((a - mean) / sd, (b - mean) / sd, loc=mean, scale=sd)
        assert kstest(total, law.cdf).pvalue > 1e-4
        lower, upper = np.empty((n, 1)), np.empty((n, 1))
        link.bound(x, {}, y, rng, lower, upper)
        assert np.allclose(lower, a)
        assert np.allclose(upper, b)
    log_p = link.log_density(x[:1], normal(eta[:1], var), {})
    probability = norm.cdf(b, mean, sd) - norm.cdf(a, mean, sd)
    assert np.exp(log_p) == pytest.approx(probability, rel=1e-6)
    drawn = link.sample_between(normal(eta, var), {}, rng, x)
    assert drawn.min() >= 3.0
    assert drawn.max() <= 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_has_the_posterior_of_quadrature(kind: str, seed: int) -> None:
    """A tiny model, mu ~ N(0, 1) and y_i ~ N(mu, 1), of two values and four intervals."""
    known = ["2", "4", "3", "7", "5", "6", "1", "8"]
    cells = ["<3", ">6", "4-7", "5+", *known]
    encoded = encoded_of(cells, type=kind, transform="log1p")
    link, x = make_link(encoded, LinkConfig()), encoded.cells[:6]
    grid = np.linspace(-4.0, 4.0, 401)
    log_p = norm.logpdf(grid)
    for cell in x:
        each = np.tile(cell, (grid.size, 1))
        log_p = log_p + link.log_density(each, normal(grid, 1.0), {})
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    exact = weight @ grid
    spread = np.sqrt(weight @ (grid - exact) ** 2)
    rng = np.random.default_rng(seed)
    y, draws, mu = link.start(x)[1], [], 0.0
    for _ in range(6000):
        link.augment(x, np.full(6, mu), 1.0, {}, rng, y)
        mu = y.sum() / 7.0 + rng.normal() / np.sqrt(7.0)
        draws.append(mu)
    kept = np.array(draws[200:])
    assert kept.mean() == pytest.approx(exact, abs=0.15 * spread)
    assert kept.std() == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("model", ["glfm", "bsvd", "mixture", "clgp"])
@pytest.mark.parametrize("complete", [False, True])
def test_intervals_stay_or_are_completed_inside(model: str, complete: bool) -> None:
    table, values, gone = lognormal(200, 1)
    short = SHORT if model != "clgp" else {"chains": 1, "threads": 1, "seed": 3}
    more = {"impute": "censored"} if complete else {}
    done = impute(table, types(**more), model=model, **short)
    before, after = table["y"].to_pylist(), done.table["y"].to_pylist()
    part, encoded = done.columns[0], done.data.columns[0]
    low, median, high = part.marginal.quantiles.T
    rows = part.marginal.rows
    truth = values[rows]
    assert np.mean((truth >= low) & (truth <= high)) > 0.85
    assert abs(np.mean(np.log(median[gone[rows]]) - np.log(values[gone]))) < 0.3
    exact = [i for i, c in enumerate(before) if c is not None and (not complete or c[0].isdigit())]
    exact = [i for i in exact if not complete or before[i] != "2-3"]
    assert [after[i] for i in exact] == [before[i] for i in exact]
    if complete:
        inside = np.flatnonzero(encoded.between)
        ends = encoded.ends[inside]
        for made in (done.table, *done.multiple(2).tables()):
            filled = np.array([float(made["y"][int(i)].as_py()) for i in inside])
            assert np.all((filled >= ends[:, 0]) & (filled <= ends[:, 1]))
    said = any("known only to lie in an interval" in note for note in done.data.notes)
    assert said is not complete  # what is completed is as it was asked for


@pytest.mark.parametrize(
    ("cells", "kind", "ends"),
    [
        (["<0.5", "1", "≤ 0.5"], "real", [[-np.inf, 0.5], None, [-np.inf, 0.5]]),
        (["<0.5", "1", "0.5-0.7"], "positive", [[0, 0.5], None, [0.5, 0.7]]),
        (["<5", ">5", "≥5", "5+", "<=5", "3"], "count",
         [[0, 4], [6, np.inf], [5, np.inf], [5, np.inf], [0, 5], None]),
        (["30–39", "30 to 39", "30 - 39", "7"], "count", [[30, 39]] * 3 + [None]),
        (["-5--3", "-5 - 3", "1e-5", "2"], "real", [[-5, -3], [-5, 3], None, None]),
    ],
)  # fmt: skip
def test_the_ways_to_write_an_interval(cells: list[str], kind: str, ends: list[Any]) -> None:
    encoded = encoded_of(cells, type=kind)
    expected = [[np.nan] * 2 if end is None else end for end in ends]
    np.testing.assert_array_equal(encoded.ends, expected)
    assert list(encoded.observed) == [end is None for end in ends]


def test_intervals_are_written_as_the_numbers_of_their_column() -> None:
    cells = ["<0,5", "1.200,5", "≥ 3.000", "700-800"]
    encoded = encoded_of(cells, type="positive", decimal=",", thousands=".")
    expected = [[0, 0.5], [np.nan] * 2, [3000, np.inf], [700, 800]]
    np.testing.assert_array_equal(encoded.ends, expected)
    assert encoded_of(["<5 %", "7%"], type="real", percent="true").ends[0, 1] == 5.0
    assert list(encoded_of(["30-39 kg", "7 kg"], type="real", unit="kg").ends[0]) == [30, 39]


@settings(max_examples=25)
@given(st.decimals(0, 9999, places=2), st.decimals(0, 9999, places=2), st.sampled_from("-–"))
def test_what_is_written_is_read(a: Any, b: Any, dash: str) -> None:
    low, high = sorted((a, b))
    if low < high:
        encoded = encoded_of([f"{low}{dash}{high}", "1"], type="real")
        assert list(encoded.ends[0]) == [float(low), float(high)]
    assert parse_interval(f"{low}+") == (str(low), None, False)
    assert parse_interval(f"{a}") is None
    assert encoded_of([f"-{a}e-5", "1"], type="real").ends is None


def test_numbers_beyond_the_limits_are_intervals() -> None:
    for values in (pa.array([0.0, 0.2, 0.5, 3.0, 9.0, 9.5]), ["0", "0.2", "0.5", "3", "9", "9.5"]):
        limits = {"type": "positive", "censored_below": "0.5", "censored_above": "9"}
        column = Schema.from_dict({"columns": {"y": limits}})
        encoded = encode(pa.table({"y": values}), column).columns[0]
        nothing = [np.nan, np.nan]
        expected = [[0, 0.5], [0, 0.5], nothing, nothing, [9, np.inf], [9, np.inf]]
        np.testing.assert_array_equal(encoded.ends, expected)
        assert Schema.from_yaml(column.to_yaml()) == column


def test_a_column_of_nothing_but_intervals_is_modelled() -> None:
    table, values, _ = lognormal(200, 7)
    bands = [f"{int(v)}-{int(v) + 1}" for v in values]
    bands[:5] = [""] * 5
    done = impute(pa.table({"y": bands, "x": table["x"]}), types(), model="bsvd", **SHORT)
    low, _, high = done.columns[0].marginal.quantiles.T
    assert np.all((values[:5] > 0.5 * low) & (values[:5] < 2.0 * high))


@pytest.mark.parametrize("model", ["glfm", "bsvd", "forest", "mixture", "clgp"])
@pytest.mark.parametrize(("kind", "cell"), [("positive", ">0"), ("count", ">=0")])
def test_a_cell_that_may_be_any_number_of_its_column_says_nothing(
    model: str, kind: str, cell: str
) -> None:
    table, values, _ = lognormal(80, 7)
    cells = [cell, "", *(f"{v:.3f}" if kind == "positive" else f"{v:.0f}" for v in values[2:])]
    how: dict[str, Any] = {"chains": 1, "threads": 1, "seed": 3}
    how |= {"warmup": 9, "draws": 9} if model != "clgp" else {}
    said = {"columns": {"y": kind, "x": "real"}}
    done = impute(pa.table({"y": cells, "x": table["x"]}), said, model=model, **how)
    written = done.to_table()["y"].to_pylist()
    assert written[0] == cell
    assert 0.0 <= float(written[1]) < 1000.0


def test_cells_that_may_be_any_number_change_nothing_of_what_a_column_is_like() -> None:
    values = [f"{v:.3f}" for v in np.exp(np.random.default_rng(2).normal(size=60))]
    told, plain = (encoded_of([*values, *more], type="positive") for more in ([">0"], []))
    np.testing.assert_array_equal(told.inside[:-1], plain.inside)
    assert np.isnan(told.inside[-1])
    ends = np.array([-np.inf, 1.0, 2.0]), np.array([np.inf, 1.5, 2.0])
    assert censored_moments(*ends) == censored_moments(ends[0][1:], ends[1][1:])
    assert censored_moments(ends[0][:1], ends[1][:1]) == (0.0, 1.0)


def test_skewed_columns_of_intervals_are_seen_by_logarithms() -> None:
    rng = np.random.default_rng(2)
    cells = [f"{v:.3f}" for v in np.exp(2.0 * rng.normal(size=200))]
    assert "Log()" in repr(make_link(encoded_of([*cells, "<0.1"], type="positive"), LinkConfig()))
    with pytest.raises(GlfmError, match="rank` does not go with cells that are intervals"):
        make_link(encoded_of([*cells, "<0.1"], type="real", transform="rank"), LinkConfig())


@pytest.mark.parametrize("kind", ["positive", "count"])
def test_a_tail_that_is_cut_off_is_seen_by_logarithms_where_these_are_normal(kind: str) -> None:
    rng = np.random.default_rng(4)
    z = rng.standard_normal((2, 400))
    z[1] = 0.8 * z[0] + 0.6 * z[1]

    def cut_off(x: np.ndarray) -> tuple[list[str], float]:
        limit = float(np.sort(x)[-28])
        return [f">{limit:.0f}" if v > limit else f"{v:.0f}" for v in x], limit

    wages = np.round(np.exp(10.0 + 0.6 * z[0]))
    cells, limit = cut_off(wages)
    said = {"wage": {"type": kind, "impute": "censored"}, "other": "real"}
    table = pa.table({"wage": cells, "other": z[1]})
    done = impute(table, {"columns": said}, model="bsvd", **SHORT)
    beyond = wages > limit
    drawn = [np.array(t["wage"].to_pylist(), float)[beyond] for t in done.multiple(10).tables()]
    assert np.min(drawn) >= limit
    z_limit = (np.log(limit) - 10.0) / 0.6
    true = np.exp(10.0 + 0.6**2 / 2) * norm.sf(z_limit - 0.6) / norm.sf(z_limit)
    assert abs(np.mean(drawn) / true - 1.0) < 0.05  # -0.15 where they are seen as they are
    cells, _ = cut_off(np.round(900.0 + 150.0 * z[0]))
    assert "Log" not in repr(make_link(encoded_of(cells, type=kind), LinkConfig()))
    assert is_log_normal(*np.tile([[1.0, np.e], [np.e, np.e**2], [np.e**2, 60.0]], (40, 1)).T)
    assert not is_log_normal(*np.tile([[1.0, 9.0], [9.0, 17.0], [17.0, 25.0]], (40, 1)).T)
    mild = np.round(np.exp(10.0 + 0.25 * z[0]))  # of a skewness of 0.8
    below = [f"<{v:.0f}" if i % 9 == 0 else f"{v:.0f}" for i, v in enumerate(mild)]
    for cells, log in ((below, False), ([*below, ">40000"], True)):
        link = make_link(encoded_of(cells, type=kind), LinkConfig())
        assert ("Log" in repr(link)) == log
    counts = [*"01122223345" * 9, "6+"]
    assert "Log" not in repr(make_link(encoded_of(counts, type=kind), LinkConfig()))


def test_a_kept_fit_resumes_and_takes_new_rows_with_intervals(tmp_path: Any) -> None:
    table = lognormal(150, 4)[0]
    kept = str(tmp_path / "fit.glfm")
    complete = types(impute="censored")
    whole = impute(table, complete, **SHORT, save=kept)
    longer = SHORT | {"draws": 80}
    resumed = impute(table, resume=kept, draws=80)
    straight = impute(table, complete, **longer)
    assert resumed.table.equals(straight.table)
    again = impute(table, fit=kept)
    assert whole.n_completed == again.n_completed
    rows = lognormal(60, 5)[0]
    done = impute(rows, fit=kept)
    encoded = done.data.columns[0]
    filled = np.array([float(text) for text in done.table["y"].to_pylist()])
    inside = encoded.between
    assert inside.sum() > 10
    assert np.all(filled[inside] >= encoded.ends[inside, 0])
    assert np.all(filled[inside] <= encoded.ends[inside, 1])


def test_intervals_are_guessed() -> None:
    rng = np.random.default_rng(5)
    crp, age = np.exp(rng.normal(size=200)), rng.integers(18, 95, 200)
    table = pa.table(
        {
            "crp": [f"{v:.1f}".replace(".", ",") if v > 0.5 else "<0,5" for v in crp],
            "age": [str(a) if a < 90 else "90+" for a in age],
            "kids": [str(k) if k < 3 else "3+" for k in rng.poisson(1.5, 200)],
            "band": [f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in age],
        }
    )
    guess = guess_schema(table)
    assert [str(c.type) for c in guess.schema.columns] == ["positive", "count", "count", "ordinal"]
    assert "known only to lie in an interval: <0,5; decimal commas" in guess.reasons["crp"]
    encode(table, guess.schema)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            {"type": "categorical", "censored_below": 1},
            "`censored_below` is only for numeric columns",
        ),
        ({"type": "date", "impute": "censored"}, "`impute` is only for numeric columns"),
        ({"type": "positive", "censored_below": 0}, "leave no number between them"),
        ({"type": "real", "censored_below": 5, "censored_above": 4}, "found 5 and 4, expected"),
        ({"type": "positive", "censored_below": "low"}, "found 'low', expected a number"),
        ({"type": "positive", "censored_below": 5, "bounds": [None, 4]}, "leave no number"),
        (
            {"type": "real", "role": "value", "censored_below": 1},
            "`censored_below` does not go with role value",
        ),
        ({"type": "real", "impute": "all"}, "unknown impute, found 'all', expected censored"),
    ],
)
def test_limits_that_cannot_be_are_refused(said: dict[str, Any], error: str) -> None:
    with pytest.raises(GlfmError) as caught:
        Schema.from_dict({"columns": {"y": said}})
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "more", "error"),
    [
        (["39-30", "3"], {}, "row 1: found '39-30', expected the smaller number first"),
        (["3", "<0"], {}, "row 2: found '<0', expected an interval that reaches into 0 to inf"),
        (["3", ">9"], {"bounds": [0, 9]}, "row 2: found '>9', expected an interval that reaches"),
        (["3", "<x"], {}, "row 2: found '<x', expected a number"),
        (["3", "2-x"], {}, "row 2: found '2-x', expected a number"),
        (["3", ">5-7"], {}, "row 2: found '>5-7', expected a number"),
        (["3", "+"], {}, "row 2: found '+', expected a number"),
    ],
)
def test_an_interval_that_cannot_be_is_named(
    cells: list[str], more: dict[str, Any], error: str
) -> None:
    with pytest.raises(GlfmError) as caught:
        encoded_of(cells, type="positive", **more)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-np.inf, 0.4), (1.3, np.inf), (-0.5, 1.0), (2.0, 2.00001), (-np.inf, -3.0), (4.0, 9.0)],
)
def test_what_stands_for_an_interval_leaves_its_mean_and_variance(low: float, high: float) -> None:
    mean, precision = (one[0] for one in normal_evidence(np.array([low]), np.array([high])))
    law = truncnorm(low, high)
    after = 1.0 / (1.0 + precision)
    assert after * precision * mean == pytest.approx(law.mean(), abs=1e-5)
    assert after == pytest.approx(max(law.var(), 1e-6), rel=1e-4)


def test_a_whole_line_says_nothing() -> None:
    for found in normal_evidence(np.array([-np.inf]), np.array([np.inf])):
        assert found[0] == 0.0


def test_moments_of_cut_off_numbers_are_the_likeliest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = 2.0 + 3.0 * rng.standard_normal(300)
    low, high = np.where(y < 1.5, -np.inf, y), np.where(y < 1.5, 1.5, y)
    low, high = np.where(y > 6.0, 5.0, low), np.where(y > 6.0, 9.0, high)

    def log_likelihood(mean: float, sd: float) -> float:
        law, exact = norm(mean, sd), low == high
        inside = np.log(np.where(exact, 1.0, law.cdf(high) - law.cdf(low)))
        return float(np.sum(np.where(exact, law.logpdf(y), inside)))

    mean, sd = censored_moments(low, high)
    best = log_likelihood(mean, sd)
    for step in (-0.02, 0.02):
        assert log_likelihood(mean + step, sd) < best
        assert log_likelihood(mean, sd + step) < best


def labelled(n: int, seed: int, *, told: bool = True) -> pa.Table:
    """Return a table with a label that goes with the first column, half of it below a limit."""
    rng = np.random.default_rng(seed)
    y = np.exp(rng.normal(0.0, 1.0, n))
    cells = [f"{v:.4f}" if v > 1.0 else "<1" if told else None for v in y]
    label = np.where(np.log(y) + 0.4 * rng.normal(size=n) > 0.0, "high", "low")
    return pa.table({"y": cells, "x": rng.normal(size=n), "label": label})


def test_features_are_in_units_of_the_column_before_it_was_cut_off(seed: int) -> None:
    y = 5.0 + 2.0 * np.random.default_rng(seed).standard_normal(4000)
    encoded = encoded_of([f"{v:.6f}" if v > 6.0 else "<6" for v in y], type="real")
    feature = LatentColumn.calibrate(encoded, LinkConfig())
    values, mean, precision = feature.told(cells_of(encoded))
    np.testing.assert_allclose(values[y > 6.0], (y[y > 6.0] - 5.0) / 2.0, atol=0.15)
    expected = normal_evidence(np.array([-np.inf]), np.array([0.5]))
    np.testing.assert_allclose(np.unique(mean[y <= 6.0]), expected[0], atol=0.1)
    np.testing.assert_allclose(np.unique(precision[y <= 6.0]), expected[1], rtol=0.1)


LABEL = {"label": {"type": "categorical", "role": "target"}}


def test_intervals_tell_a_classifier_what_they_say(tmp_path: Any) -> None:
    short: dict[str, Any] = {"chains": 1, "seed": 0, "threads": 1}
    loss, said = {}, {"columns": {"y": "positive", "x": "real"} | LABEL}
    for told in (True, False):
        test = labelled(500, 2, told=told)
        train, kept = labelled(250, 1, told=told), tmp_path / f"{told}.glfm"
        done = classify(train, said, predict=test, save=kept, **short)
        truth = np.array(done.predictions.levels)[None] == np.array(test["label"])[:, None]
        loss[told] = -np.mean(np.log(done.predictions.p[truth]))
        again = classify(test, fit=kept)
        np.testing.assert_array_equal(again.predictions.p, done.predictions.p)
    assert loss[True] < loss[False] - 0.02


def test_a_classifier_completes_cells_inside_their_intervals() -> None:
    said = {"columns": {"y": {"type": "positive", "impute": "censored"}, "x": "real"} | LABEL}
    table = labelled(120, 1)
    done = classify(table, said, chains=1, seed=0, threads=1, complete=True)
    assert done.completed is not None
    for before, after in zip(table["y"].to_pylist(), done.completed["y"].to_pylist(), strict=True):
        assert 0.0 <= float(after) <= 1.0 if before == "<1" else before == after


@pytest.mark.parametrize("tables", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_regressions_on_completed_tables_are_right(tables: int, benchmark: Any) -> None:
    """Slopes of a covariate, a part of it below a limit: they are found, intervals hold them."""
    lines = benchmark("censored.py", "--tables", str(tables), "--rows", "200")
    for line in lines[1::3]:
        inside = [float(text.rstrip("%")) for text in line.split()[2:4]]
        error = [float(text) for text in line.split()[4:]]
        assert max(error) < (0.2 if tables < 60 else 0.1)
        assert min(inside) > (30.0 if tables < 60 else 88.0)
