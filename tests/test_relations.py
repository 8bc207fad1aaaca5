"""Columns that follow from others by a formula, and columns that have values in some rows only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glfm_cli import impute, load_fit
from glfm_cli.completion import prepare
from glfm_cli.completion.dependent import SAMPLES, TableDraws, _relative_error, settled_marginals
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.encoding import encode, learnt_cells, settle, with_known
from glfm_cli.errors import GlfmError
from glfm_cli.inference.equations import Equations
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.inference.sampling import sample
from glfm_cli.schema import Schema
from glfm_cli.schema.formula import parse_formula

SHORT: dict[str, Any] = {"model": "bsvd", "chains": 2, "warmup": 40, "draws": 40, "threads": 1}
BMI = "weight / (`height (cm)` / 100) ** 2"
START = np.datetime64("2024-01-01")
TYPES = {
    "columns": {
        "age": "positive",
        "height (cm)": "positive",
        "weight": "positive",
        "bmi": {"type": "positive", "formula": BMI},
        "sex": "categorical",
        "births": {"type": "count", "only_if": 'sex == "f"'},
    }
}


OPERATORS = ["+", "-", "*", "/", "**", "<", "==", ">=", "and", "or"]
FORMULAS = st.recursive(
    st.sampled_from(["a", "`b c`", "0", "2.5", "1e308", "9" * 30]),
    lambda part: st.one_of(
        st.builds("({} {} {})".format, part, st.sampled_from(OPERATORS), part),
        st.builds("{}({})".format, st.sampled_from(["-", "not ", "log", "abs", "sqrt"]), part),
        st.builds("min({}, {})".format, part, part),
        st.builds("({} in [{}, 't'])".format, part, part),
    ).map("({})".format),
    max_leaves=8,
)


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settle cells by few joint draws, where their intervals are not looked at."""
    monkeypatch.setattr("glfm_cli.completion.dependent.SAMPLES", 10)


def growth(n: int, seed: int) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Return a table of children with a quarter of many columns missing, and the truth."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(5, 18, n).round(2)
    height = (80 + 6 * age + 5 * rng.normal(size=n)).round(1)
    weight = ((14 + 0.4 * age + 1.5 * rng.normal(size=n)) * (height / 100) ** 2).round(1)
    true = {"age": age, "height (cm)": height, "weight": weight}
    true["bmi"] = weight / (height / 100) ** 2
    cells: dict[str, Any] = {"age": [repr(float(x)) for x in age]}
    for name, places in (("height (cm)", 1), ("weight", 1), ("bmi", 8)):
        gone = rng.random(n) < 0.25
        cells[name] = [
            None if g else f"{x:.{places}f}" for g, x in zip(gone, true[name], strict=True)
        ]
    sex = rng.choice(["f", "m"], n)
    cells["sex"] = [None if rng.random() < 0.2 else s for s in sex]
    cells["births"] = [
        str(rng.poisson(1.5)) if s == "f" and rng.random() < 0.7 else None for s in sex
    ]
    return pa.table(cells), true


def numbers(table: pa.Table, name: str) -> np.ndarray:
    return np.array([np.nan if t in (None, "") else float(t) for t in table[name].to_pylist()])


def test_every_version_obeys_formula_and_condition() -> None:
    table, true = growth(150, 1)
    done = impute(table, TYPES, seed=1, **SHORT)
    known = with_known(encode(table, Schema.from_dict(TYPES)))
    for made in (done.table, *done.multiple(20).tables()):
        height, weight, bmi = (numbers(made, name) for name in ("height (cm)", "weight", "bmi"))
        off = np.abs(bmi / (weight / (height / 100) ** 2) - 1.0)
        observed = ~np.isnan(numbers(table, "bmi")) & ~np.isnan(numbers(table, "weight"))
        observed &= ~np.isnan(numbers(table, "height (cm)"))
        assert off[~observed].max() < 1e-9
        women = np.array(made["sex"].to_pylist()) == "f"
        assert np.array_equal(~np.isnan(numbers(made, "births")), women)
        for name in table.column_names:
            before, after = table[name].to_pylist(), made[name].to_pylist()
            assert all(b is None or b == a for b, a in zip(before, after, strict=True))
    sure = {e.column.name: e.requested & e.observed for e in known.columns}
    assert all(sure[name].sum() > 5 for name in ("height (cm)", "weight", "bmi", "sex"))
    for part in done.columns:
        name, rows = part.encoded.column.name, part.marginal.rows
        if name not in true or not rows.size:
            continue
        low, _, high = part.marginal.quantiles.T
        slack = 1e-6 * true[name][rows]  # of what follows from the eight decimals of bmi
        inside = (true[name][rows] >= low - slack) & (true[name][rows] <= high + slack)
        assert inside[sure[name][rows]].all()
        assert inside.mean() > 0.85


def test_a_formula_helps_no_column_less_than_none() -> None:
    table, true = growth(150, 2)
    plain = {"columns": TYPES["columns"] | {"bmi": "positive"}}
    errors = []
    for types in (TYPES, plain):
        done = impute(table, types, seed=1, **SHORT)
        parts = {p.encoded.column.name: p for p in done.columns}
        errors.append(
            [
                np.sqrt(np.mean((parts[n].estimate - true[n][parts[n].marginal.rows]) ** 2))
                for n in ("height (cm)", "weight", "bmi")
            ]
        )
    assert np.all(np.array(errors[0]) < 1.05 * np.array(errors[1]))


@pytest.mark.usefixtures("few_samples")
def test_cells_outside_are_not_missing_or_get_a_value() -> None:
    table = pa.table({"sex": ["f", "m", "f", "m", None], "n": ["2", None, None, None, None]})
    for more in ({}, {"otherwise": "0"}):
        column = {"type": "count", "only_if": 'sex == "f"'} | more
        types = Schema.from_dict({"columns": {"sex": "categorical", "n": column}})
        data = with_known(encode(table, types))
        assert list(np.flatnonzero(data.columns[1].requested[:4])) == [2]
        assert data.not_completed == ()
        done = impute(table, types, seed=1, **SHORT).table["n"].to_pylist()
        assert [done[1], done[3]] == (["0", "0"] if more else [None, None])
        assert done[2] not in (None, "")
        assert Schema.from_yaml(types.to_yaml()) == types


@pytest.mark.usefixtures("few_samples")
def test_structural_values_are_given_and_no_estimates() -> None:
    table = pa.table(
        {
            "sex": ["f", "m", "f", "m", "f", "m"],
            "births": ["2", None, None, None, "1", "0"],
            "other": ["1", "2", "4", None, "3", "1"],
            "children": ["3", None, "6", "5", "4", "1"],
        }
    )
    births = {"type": "count", "only_if": 'sex == "f"', "otherwise": "0"}
    children = {"type": "count", "formula": "births + other"}
    types = {"sex": "categorical", "births": births, "other": "count", "children": children}
    given = "births", ["2", "0", "2", "0", "1", "0"]

    done = impute(table, {"columns": types}, seed=1, **SHORT)
    assert done.n_completed == 3  # the births of row 3, and what follows from births of 0
    listed = done.cells().select(["row", "column", "estimate", "sd"]).to_pylist()
    found = [(one["row"], one["column"], one["estimate"], one["sd"]) for one in listed]
    follows = [(2, "children", "2"), (3, "births", "2"), (4, "other", "5")]
    assert found == [(*one, 0.0) for one in follows]
    assert done.table[given[0]].to_pylist() == given[1]
    stack = done.multiple(2)
    first, *versions = stack.parts(flags=True)
    assert first["births"].to_pylist() == ["2", "0", None, "0", "1", "0"]
    for one in (first, *versions):
        assert one["births_imp"].to_pylist() == [0, 0, 1, 0, 0, 0]
    assert all(one["births"].to_pylist() == given[1] for one in versions)
    known = with_known(encode(table, Schema.from_dict({"columns": types})))
    assert known.columns[3].observed.all()  # children, by births that are none
    types["children"] = types["other"] = "count"  # the model has not seen the births of men
    data = with_known(encode(table, Schema.from_dict({"columns": types})))
    assert np.isnan(data.columns[1].cells[[1, 3]]).all()


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("kind", ["date", "duration"])
def test_dates_and_durations_are_less_than_others(kind: str) -> None:
    rng = np.random.default_rng(3)
    low = rng.integers(0, 40, 120)
    high = low + 1 + rng.poisson(1.0, 120)

    def written(at: int) -> str:
        if kind == "duration":
            return f"{at // 60}:{at % 60:02d}"
        return str(START + np.timedelta64(int(at), "D"))

    gone = rng.random((2, 120)) < 0.4
    columns = {
        name: [None if g else written(v) for g, v in zip(out, values, strict=True)]
        for name, values, out in zip(("low", "high"), (low, high), gone, strict=True)
    }
    types = {"low": {"type": kind, "less_than": "high"}, "high": kind}
    done = impute(pa.table(columns), {"columns": types}, seed=1, **SHORT)
    assert not any("less than 'high'" in note for note in done.data.notes)
    for made in (done.table, *done.multiple(10).tables()):
        assert all(len(text) == len(written(10)) for text in made["low"].to_pylist())
        pairs = zip(made["low"].to_pylist(), made["high"].to_pylist(), strict=True)
        assert all(a < b for a, b in pairs)


def test_violations_are_listed_and_rounding_is_none() -> None:
    table = pa.table(
        {
            "a": ["1.0", "2.0", "3.0", "4.0"],
            "b": ["0.3", "0.7", "1.0", "9.0"],
            "sex": ["f", "m", "m", "f"],
            "n": ["1", "3", "", "2"],
        }
    )
    types = {
        "a": "positive",
        "b": {"type": "positive", "formula": "a / 3"},
        "sex": "categorical",
        "n": {"type": "count", "only_if": 'sex == "f"'},
    }
    _, data, _ = prepare(table, {"columns": types})
    assert "column 'b': 1 cell is not `a / 3` (row 4)" in data.notes
    assert "column 'n': 1 cell is there, though `sex == \"f\"` is not true (row 2)" in data.notes
    other = types | {"a (m)": "positive", "b": {"type": "positive", "formula": "`a (m)` / 3"}}
    del other["a"]
    renamed = table.rename_columns(["a (m)", *table.column_names[1:]])
    _, data, _ = prepare(renamed, {"columns": other})
    assert "column 'b': 1 cell is not '`a (m)` / 3' (row 4)" in data.notes


def test_a_sum_is_called_one_and_otherwise_is_named() -> None:
    table = pa.table({"a": ["1", "2"], "b": ["2", "2"], "c": ["3", "9"], "n": ["0", "2"]})
    types = {name: {"type": "positive", "parts_of": "c"} for name in "ab"} | {"c": "positive"}
    types["n"] = {"type": "count", "only_if": "a > 5", "otherwise": "0"}
    _, data, _ = prepare(table, {"columns": types})
    assert "column 'c': 1 cell is not the sum of its parts (row 2)" in data.notes
    problem = "not what `otherwise: 0` says, though `a > 5` is not true (row 2)"
    assert f"column 'n': 1 cell is {problem}" in data.notes


def test_formulas_may_need_one_another() -> None:
    table = pa.table({"a": ["1", "2", "3"], "c": [None, "8", None], "b": ["2", None, None]})
    types = {
        "a": "real",
        "c": {"type": "real", "formula": "b * 2"},
        "b": {"type": "real", "formula": "a + 1"},
    }
    data = with_known(encode(table, Schema.from_dict({"columns": types})))
    found = {e.column.name: e.x.tolist() for e in data.columns}
    assert found == {"a": [1, 2, 3], "c": [4, 8, 8], "b": [2, 3, 4]}


@pytest.mark.usefixtures("few_samples")
def test_a_kept_fit_knows_its_formulas(tmp_path: Any) -> None:
    table, _ = growth(40, 4)
    kept = str(tmp_path / "fit.glfm")
    first = impute(table, TYPES, seed=1, save=kept, **SHORT)
    again = impute(table, fit=kept)
    assert again.table.equals(first.table)
    new = impute(growth(15, 5)[0], fit=kept).table
    height, weight, bmi = (numbers(new, name) for name in ("height (cm)", "weight", "bmi"))
    assert np.abs(bmi / (weight / (height / 100) ** 2) - 1.0).max() < 1e-6


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("fitting", ["weight", "bmi"])
def test_what_the_others_tell_of_follows(tmp_path: Any, fitting: str) -> None:
    rng = np.random.default_rng(9)
    x = {name: np.exp(rng.normal(5, 0.1, 200)) for name in ("height (cm)", "weight", "bmi")}
    if fitting == "weight":  # which height and index, that say nothing of one another, make
        x["weight"] = x["bmi"] * (x["height (cm)"] / 100) ** 2
    else:
        x["bmi"] = x["weight"] / (x["height (cm)"] / 100) ** 2
    gone = rng.random((3, 200)) < 0.2
    cells = {name: pa.array(v, mask=m) for (name, v), m in zip(x.items(), gone, strict=True)}
    types = {"columns": {name: TYPES["columns"][name] for name in x}}
    problem, data, _ = prepare(pa.table(cells), types)
    follows = [encoded.column.follows for encoded in data.columns]
    assert follows == [None, "bmi", None] if fitting == "weight" else [None, None, "bmi"]
    seen = problem.seen.all(axis=1)
    assert not seen.any()  # the one that follows is known where the others are not
    d = list(x).index(fitting)
    assert problem.equations[0][0] == d
    assert set(problem.equations[0]) == {0, 1, 2}
    few = prepare(pa.table(cells).slice(0, 12), types)[1]
    assert few.columns[2].column.follows == "bmi"
    impute(pa.table(cells).slice(0, 60), types, seed=1, save=tmp_path / "f.glfm", **SHORT)
    fitted = Fitted.of_fit(load_fit(tmp_path / "f.glfm"))
    new = fitted.encode(pa.table(cells).slice(0, 12))
    assert [encoded.column.follows for encoded in new.columns] == follows
    assert all(encoded.sample is not None for encoded in new.columns)  # that of the fit


def campaigns(n: int = 200) -> dict[str, np.ndarray]:
    """Return what campaigns cost and earn, often nothing, and earnings per cost."""
    rng = np.random.default_rng(11)
    clicks = rng.integers(20, 2000, n)
    cost = clicks * np.exp(rng.normal(-0.7, 0.1, n))
    revenue = np.where(rng.random(n) < 0.1, 0.0, cost * np.exp(rng.normal(1.0, 0.3, n)))
    return {"clicks": 1.0 * clicks, "cost": cost, "revenue": revenue, "roas": revenue / cost}


CAMPAIGNS = {
    "rest": "positive",
    "columns": {"roas": {"type": "positive", "formula": "revenue / cost"}},
}


def test_a_result_that_was_computed_from_the_table_follows() -> None:
    x, gone = campaigns(), np.random.default_rng(2).random((2, 200)) < 0.2
    x["revenue"] += 1.0  # of which any column might follow
    x["roas"] = x["revenue"] / x["cost"]
    masks = {"cost": gone[0], "revenue": gone[1], "roas": gone.any(axis=0)}
    cells = {name: pa.array(v, mask=masks.get(name)) for name, v in x.items()}
    data = prepare(pa.table(cells), CAMPAIGNS)[1]
    assert data.columns[3].column.follows == "roas"
    done = impute(pa.table(cells), CAMPAIGNS, seed=1, **SHORT).table
    cost = done["cost"].to_numpy()
    error = np.log(cost[gone[0]] / x["cost"][gone[0]])
    assert np.sqrt(np.mean(error**2)) < 0.2  # by the clicks, which leave 0.1
    assert done["roas"].to_numpy() == pytest.approx(done["revenue"].to_numpy() / cost)


def test_nothing_follows_from_a_ratio_of_nothing() -> None:
    rng, gone = np.random.default_rng(12), np.random.default_rng(2).random((3, 200)) < 0.2
    revenue, roas = np.exp(rng.normal([[5.0], [1.0]], 0.5, (2, 200)))
    cost, none = revenue / roas, rng.random(200) < 0.1
    x = {"cost": cost, "revenue": np.where(none, 0.0, revenue), "roas": np.where(none, 0.0, roas)}
    cells = {name: pa.array(v, mask=m) for (name, v), m in zip(x.items(), gone, strict=True)}
    data = prepare(pa.table(cells), CAMPAIGNS)[1]
    assert data.columns[0].column.follows is None
    done = impute(pa.table(cells), CAMPAIGNS, seed=1, **SHORT).table["cost"].to_numpy()
    assert done.min() > 1.0


def test_a_result_is_any_column_of_its_formula() -> None:
    formula = parse_formula("`net pay` * (1 - tax) ** 2 / log(hours)")
    true = {"net pay": np.array([7.0]), "tax": np.array([0.2]), "hours": np.array([30.0])}
    true["y y"] = formula.evaluate(true)
    for name in formula.names:
        solved = formula.solved_for(name, "y y")
        assert solved is not None
        assert set(solved.names) == true.keys() - {name}
        assert solved.evaluate(true) == pytest.approx(true[name])
        back = solved.solved_for("y y", name)
        assert back is not None
        assert back.evaluate(true) == pytest.approx(true["y y"])


def test_intervals_hold_another_draw_as_often_as_they_say() -> None:
    problem, data, plan = prepare(growth(30, 6)[0], TYPES, **SHORT)
    posterior = sample(problem, plan).posterior
    d = [encoded.column.name for encoded in data.columns].index("bmi")
    plain = predict(posterior, data.missing, at=[0.025, 0.975])
    found = settled_marginals(posterior, data, plain, [0.025, 0.975])[d].quantiles
    rng, table = np.random.default_rng(0), TableDraws(posterior, data)
    x = np.sort([table.draw(rng)[d] for _ in range(SAMPLES)], axis=0)
    # Of n + 1 equally likely places of another draw, 0.025 (n + 1) = 5.025 are below the first.
    np.testing.assert_allclose(found[:, 0], 0.975 * x[4] + 0.025 * x[5])
    np.testing.assert_allclose(found[:, 1], 0.975 * x[-5] + 0.025 * x[-6])


def pressures(n: int, seed: int) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Return diastolic and systolic pressure, near one another, and what a household spends."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    low = 80 + 8 * x + 6 * rng.normal(size=n)
    true = {"x": x, "low": low, "high": low + np.exp(1.5 + 0.8 * rng.normal(size=n))}
    for name in ("rent", "food", "rest"):
        true[name] = np.exp(3 + 0.5 * x + 0.5 * rng.normal(size=n))
    true["total"] = true["rent"] + true["food"] + true["rest"]
    cells = {
        name: pa.array(v, mask=(rng.random(n) < 0.3) & (name != "x")) for name, v in true.items()
    }
    return pa.table(cells), true


def test_errors_of_settled_means_are_those_of_their_draws() -> None:
    """Chains of two models have means of their own; within a model they differ by chance alone."""
    rng = np.random.default_rng(0)
    groups, n_cells = np.array([0, 0, 0, 1, 1]), 4000
    chains = np.sort(rng.integers(0, 5, 200))
    group_means = np.array([0.0, 3.0])[groups]
    chain_means = group_means[:, None] + 0.3 * rng.standard_normal((5, n_cells))
    x = chain_means[chains] + rng.standard_normal((200, n_cells))
    sd = x.std(axis=0)
    error = _relative_error(x, sd, chains, groups) * sd
    assert np.sqrt(np.mean(error**2)) == pytest.approx(x.mean(axis=0).std(), rel=0.05)
    x[chains == 4] = np.nan  # no value there: one chain alone of its model says nothing
    some = _relative_error(x, sd, chains, groups) * sd
    assert np.isfinite(some).all()


def test_settled_means_are_no_surer_than_so_many_draws() -> None:
    problem, data, plan = prepare(growth(40, 3)[0], TYPES, seed=1, **SHORT)
    posterior = sample(problem, plan).posterior
    plain = predict(posterior, dict(data.missing), (0.025, 0.5, 0.975))
    settled = settled_marginals(posterior, data, plain, (0.025, 0.5, 0.975))
    assert len(settled) == 3
    for d, one in settled.items():
        least = np.sqrt(plain[d].relative_error ** 2 + 1.0 / SAMPLES)
        assert (one.relative_error >= least).all()
        assert (one.relative_error < 1.0).all()
    alone = replace(posterior, chains=posterior.chains[:1])
    plain = predict(alone, dict(data.missing), (0.025, 0.5, 0.975))
    for one in settled_marginals(alone, data, plain, (0.025, 0.5, 0.975)).values():
        assert np.isnan(one.relative_error).all()


def test_inequalities_and_sums_hold_in_every_version() -> None:
    table, true = pressures(100, 3)
    types = {"x": "real", "low": {"type": "real", "less_than": "high"}, "high": "real"}
    types |= {name: {"type": "positive", "parts_of": "total"} for name in ("rent", "food", "rest")}
    schema = Schema.from_dict({"columns": types | {"total": "positive"}})
    assert Schema.from_yaml(schema.to_yaml()) == schema
    done = impute(table, schema, seed=1, **SHORT)
    for made in (done.table, *done.multiple(20).tables()):
        part = {name: made[name].to_numpy() for name in true}
        assert np.all(part["low"] < part["high"])
        total = part["rent"] + part["food"] + part["rest"]
        np.testing.assert_allclose(total, part["total"], rtol=1e-9)
        assert all(part[name].min() > 0 for name in ("rent", "food", "rest"))
    inside = []
    for part in done.columns:
        low, _, high = part.marginal.quantiles.T
        truth = true[part.encoded.column.name][part.marginal.rows]
        inside += list((truth >= low * (1 - 1e-9)) & (truth <= high * (1 + 1e-9)))
    assert 0.88 < np.mean(inside) <= 1.0


def soil(n: int, seed: int) -> pa.Table:
    """Return percentages that add up to 100, of which half of the cells are missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    amounts = np.exp(np.column_stack([z, 0.3 * z, -z]) + 0.3 * rng.normal(size=(n, 3)))
    share = 100.0 * amounts / amounts.sum(axis=1, keepdims=True)
    share[rng.random(share.shape) < 0.5] = np.nan
    return pa.table({name: share[:, k] for k, name in enumerate(("sand", "silt", "clay"))})


@pytest.mark.usefixtures("few_samples")
def test_what_follows_is_a_number_of_its_column_in_every_version() -> None:
    rest = {"type": "positive", "formula": "100 - sand - silt"}
    types = {"columns": {"sand": "positive", "silt": "positive", "clay": rest}}
    done = impute(soil(60, 1), types, seed=1, **SHORT)
    for made in (done.table, *done.multiple(7).tables()):
        x = np.column_stack([made[name].to_numpy() for name in types["columns"]])
        np.testing.assert_allclose(x.sum(axis=1), 100.0, rtol=1e-9)
        assert x.min() > 1e-6
    for part in done.columns:
        assert part.marginal.quantiles.min() > 0.0


@pytest.mark.usefixtures("few_samples")
def test_products_with_zeros_are_numbers_of_their_column() -> None:
    rng = np.random.default_rng(1)
    rate = rng.exponential(size=120) * (rng.random(120) < 0.6)
    time = rng.exponential(size=120)
    cells = {"rate": rate, "time": time, "dose": rate * time}
    gone = rng.random((3, 120)) < 0.4
    table = pa.table({n: np.where(g, np.nan, x) for g, (n, x) in zip(gone, cells.items())})  # noqa: B905
    dose = {"type": "positive", "formula": "rate * time"}
    types = {"columns": {"rate": "positive", "time": "positive", "dose": dose}}
    done = impute(table, types, seed=1, **SHORT)
    both = gone[0] & gone[2]
    zeros = [np.mean(one["dose"].to_numpy()[both] == 0.0) for one in done.multiple(20).tables()]
    assert abs(np.mean(zeros) - 0.4) < 0.1


def test_a_result_that_cannot_be_is_listed() -> None:
    table = pa.table({"a": [80.0, 20.0, 30.0], "b": [30.0, 30.0, 40.0], "c": [None, 50.0, 30.0]})
    rest = {"type": "positive", "formula": "100 - a - b"}
    types = {"columns": {"a": "positive", "b": "positive", "c": rest}}
    data = with_known(encode(table, Schema.from_dict(types)))
    assert [str(note) for note in data.notes] == [
        "column 'c': 1 cell is not to be had from `100 - a - b` (row 1)"
    ]


@pytest.mark.usefixtures("few_samples")
def test_only_cells_that_equations_hold_miss_the_correction_of_forecasts() -> None:
    table, _ = pressures(80, 6)
    types = {name: {"type": "positive", "parts_of": "total"} for name in ("rent", "food", "rest")}
    every = {"rest": "ignore", "columns": {"x": "real", "total": "positive"} | types}
    done = impute(table, every, seed=1, **SHORT)
    D = len(done.data.columns)
    tilted = Recalibration.alike(np.ones(D), np.full((D, 4), 0.3))
    posterior, data = replace(done.posterior, recalibration=tilted), done.data
    equations = Equations(data.columns, posterior.links)
    some = next(posterior.draws())
    drawn = [
        JointDraws(posterior, data.missing, equations=one).draw(np.random.default_rng(1), some)
        for one in (None, equations)
    ]
    names = [e.column.name for e in data.columns]
    for name in ("rent", "food", "rest"):
        d = names.index(name)
        held = equations.moved[d][data.missing[d]]
        free = ~held & ~data.columns[d].observed[data.missing[d]]
        assert held.any()
        assert free.any()
        assert np.array_equal(drawn[0][d][free], drawn[1][d][free])
        assert np.mean(drawn[0][d][held] != drawn[1][d][held]) > 0.8


def test_equal_numbers_are_parted_where_one_is_less() -> None:
    table = {"a": [1.0, 5.0, None, None], "b": [2.0, None, 7.0, None]}
    types = {"columns": {"a": {"type": "real", "less_than": "b"}, "b": "real"}}
    data = with_known(encode(pa.table(table), Schema.from_dict(types)))
    found = settle(data, {0: np.array([7.0, 3.0]), 1: np.array([5.0, 3.0])})
    a, b = np.array([5.0, *found[0]]), np.array([found[1][0], 7.0, found[1][1]])
    assert np.all(a < b)
    np.testing.assert_allclose(a, b, rtol=1e-8)


def test_whatever_is_put_in_parts_of_parts_add_up() -> None:
    cells = {"a": 2.0, "b": 3.0, "inner": 5.0, "c": 4.0, "total": 9.0}
    table = {name: [x, x, None, None] for name, x in cells.items()}
    table["total"] = [9.0, 9.0, 12.0, None]
    types = {name: {"type": "positive", "parts_of": "inner"} for name in ("a", "b")}
    types |= {name: {"type": "positive", "parts_of": "total"} for name in ("inner", "c")}
    schema = Schema.from_dict({"columns": types | {"total": "positive"}})
    data = with_known(encode(pa.table(table), schema))
    names = [e.column.name for e in data.columns]
    found = settle(data, {names.index(n): np.full(2 - (n == "total"), 7.0) for n in names})
    x = {name: found[names.index(name)] for name in cells}
    np.testing.assert_allclose(x["a"] + x["b"], x["inner"])
    np.testing.assert_allclose(x["inner"] + x["c"], [12.0, x["total"][0]])


@settings(max_examples=50)
@given(st.floats(0.1, 50.0), st.floats(0.1, 50.0))
@pytest.mark.parametrize(
    "text",
    ["a + b", "b - a", "a * b / 3", "b / a", "(a + 1) ** 2 - b", "log(a) + b", "-sqrt(a) * b",
     "exp(a / 50) + b", "1.1 ** a + b", "log1p(a) - expm1(b / 10)"],
)  # fmt: skip
def test_a_column_is_solved_for(text: str, a: float, b: float) -> None:
    formula = parse_formula(text)
    columns = {"a": np.array([a]), "b": np.array([b])}
    value = formula.evaluate(columns)
    for name, true in (("a", a), ("b", b)):
        solved = formula.solve(name, value, columns)
        assert solved is not None
        assert solved[0] == pytest.approx(true, rel=1e-6, abs=1e-6)
    assert parse_formula("a * a + b").solve("a", value, columns) is None
    assert parse_formula("abs(a)").solve("a", value, columns) is None


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "a.b", "a[0]", "(lambda: 1)()", "[a]", "a if b else 1", "a +", "1 + 1",
     "a @ b", "a // b", "log(a, b)", "True", "f'{a}'", "a := 1", "a is b", "x" * 2000, "(" * 400,
     "eval('a')", "{a}", "a; b", "", "log", "-" * 900 + "a", "a + 1e999", "a + " + "9" * 400,
     "`a``b`"],
)  # fmt: skip
def test_what_is_no_formula_is_refused(text: str) -> None:
    if text == "log":  # a column of that name
        assert parse_formula(text).names == ("log",)
        return
    with pytest.raises(ValueError, match=r"[a-z]"):
        parse_formula(text)


@given(text=FORMULAS)
@settings(max_examples=150, deadline=None)
def test_what_is_a_formula_has_a_value(text: str) -> None:
    columns = {name: np.array([1.0, np.nan, -3.0]) for name in ("a", "b c")}
    gaps = ({n: np.isnan(x) for n, x in columns.items()}, {n: x > 9 for n, x in columns.items()})
    assert parse_formula(f"a + {text}").evaluate(columns).dtype == np.float64
    truth = parse_formula(f"a > 1 or {text}").truth(columns, gaps)
    assert truth.shape == (3,)
    assert np.isin(truth[~np.isnan(truth)], [0.0, 1.0]).all()


def test_words_of_a_formula_are_not_those_that_stand_for_columns() -> None:
    formula = parse_formula("`a b` - column_0__ - column0__")
    assert formula.names == ("a b", "column_0__", "column0__")
    values = {"a b": np.array([7.0]), "column_0__": np.array([2.0]), "column0__": np.array([4.0])}
    assert formula.evaluate(values).tolist() == [1.0]


@pytest.mark.parametrize(
    ("types", "error"),
    [
        ({"b": {"type": "real", "formula": "c + 1"}}, "names 'c', and the table has no such"),
        ({"b": {"type": "real", "formula": "b + 1"}}, "`formula` names the column itself"),
        ({"b": {"type": "real", "formula": "s + 1"}}, "names 's', which has type categorical"),
        ({"b": {"type": "real", "formula": "i + 1"}}, "names 'i', which has role id"),
        ({"b": {"type": "real", "formula": "a >"}}, "`formula` cannot be read: it is no"),
        ({"b": {"type": "real", "formula": "a > 1"}}, "expected a number, no condition"),
        ({"b": {"type": "real", "only_if": "a + 1"}}, "expected a condition such as"),
        ({"b": {"type": "categorical", "formula": "a"}}, "`formula` is only for numeric columns"),
        ({"b": {"type": "real", "otherwise": "0"}}, "`otherwise` needs `only_if`"),
        ({"b": {"type": "real", "only_if": "a > 0", "otherwise": "x"}}, "expected a number"),
        (
            {"b": {"type": "real", "formula": "a"}, "a": {"type": "real", "formula": "b"}},
            "the formulas go in a circle, found a -> b -> a",
        ),
        ({"b": {"type": "real", "formula": "1 / a"}}, "row 2: `formula: 1 / a` has no finite"),
        ({"b": {"type": "real", "less_than": "s"}}, "`less_than` names 's', which has type"),
        ({"b": {"type": "real", "less_than": "d"}}, "names 'd', and the table has no such"),
        ({"b": {"type": "real", "parts_of": "b"}}, "`parts_of` names the column itself"),
        (
            {"b": {"type": "real", "parts_of": "a"}, "a": {"type": "real", "formula": "b * 2"}},
            "the column has a `formula`, and others are `parts_of` it",
        ),
        ({"b": {"type": "real", "only_if": 's == "F"'}}, "compares with 'F', which is not a level"),
    ],
)
def test_what_cannot_be_is_one_line(types: dict[str, Any], error: str) -> None:
    table = pa.table(
        {"a": [1.0, 0.0, 2.0], "b": [1.0, None, 3.0], "s": ["f", "m", "f"], "i": ["x", "y", "z"]}
    )
    every = {"a": "real", "s": "categorical", "i": "id"} | types
    with pytest.raises(GlfmError) as caught:
        prepare(table, {"columns": every})
    assert error in caught.value.message()
    assert "\n" not in str(caught.value)


def test_results_of_known_cells_are_learnt_from_nowhere() -> None:
    cells = {"a": [1.0, 2.0, None, 4.0], "b": [1.0, None, None, 0.5], "t": [2.0, 5.0, 6.0, None]}
    parts = {"a": {"type": "real", "parts_of": "t"}, "b": {"type": "real", "parts_of": "t"}}
    doubled = {"type": "real", "formula": "t * 2"}
    schema = Schema.from_dict({"columns": {**parts, "t": "real", "u": doubled}})
    table = pa.table({**cells, "u": pa.array([None, 10.0, None, 9.0])})
    data = with_known(encode(table, schema))
    a, b, t, u = learnt_cells(data.columns)
    np.testing.assert_array_equal(a, [1.0, 2.0, np.nan, 4.0])
    np.testing.assert_array_equal(b, [1.0, 3.0, np.nan, 0.5])  # the second row's follows
    np.testing.assert_array_equal(t, [np.nan, np.nan, 6.0, np.nan])
    assert np.isnan(u).all()
    assert data.columns[2].observed.all()
    problem, _, _ = prepare(table, schema)
    np.testing.assert_array_equal(problem.xs[2], t)
    assert problem.equations == ((2, 0, 1), (3, 2))


def test_new_rows_learn_nothing_from_results_of_known_cells() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 40))
    table = pa.table({"a": a, "u": 2.0 * a, "b": pa.array(b, mask=b > 0.5)})
    doubled = {"type": "real", "formula": "a * 2"}
    schema = Schema.from_dict({"columns": {"a": "real", "u": doubled, "b": "real"}})
    problem, data, plan = prepare(table, schema, model="glfm", warmup=5, draws=1, chains=1)
    posterior = sample(problem, plan).posterior
    fitted = Fitted.of_run(schema, data, problem, posterior, 0)
    new = table.slice(3, 20)
    found = fitted.run(fitted.encode(new), seed=2).posterior.chains[0][0].latent
    hidden = new.set_column(1, "u", pa.nulls(20, pa.float64()))
    unaware = replace(problem, xs=tuple(x[3:23] for x in problem.xs))
    assert np.isnan(unaware.xs[1]).all()
    expected = fold_in(posterior, unaware, seed=2).chains[0][0].latent
    np.testing.assert_array_equal(found.bits, expected.bits)
    again = fitted.run(fitted.encode(hidden), seed=2).posterior.chains[0][0].latent
    np.testing.assert_array_equal(found.bits, again.bits)


def test_a_total_tells_of_several_missing_parts_where_another_is_known() -> None:
    cells: dict[str, Any] = {"a": [1.0, 1.0], "b": [2.0, None], "c": [3.0, None], "t": [6.0, 7.0]}
    parts = {name: {"type": "real", "parts_of": "t"} for name in "abc"}
    schema = Schema.from_dict({"columns": {**parts, "t": "real"}})
    data = with_known(encode(pa.table(cells), schema))
    np.testing.assert_array_equal(learnt_cells(data.columns)[3], [np.nan, 7.0])


def test_a_draw_of_parts_that_leave_nothing_is_made_again() -> None:
    """Of this table one draw of two shares is above 1, so that the third would be below 0."""
    shares = np.random.default_rng(2).dirichlet([0.3, 0.3, 0.3], size=40)
    gone = np.arange(40) < 30
    table = pa.table({c: pa.array(shares[:, j], mask=gone) for j, c in enumerate(("a", "b", "c"))})
    types = {"rest": "positive", "columns": {"c": {"type": "positive", "formula": "1 - a - b"}}}
    few: dict[str, Any] = {"model": "glfm", "chains": 1, "warmup": 10, "draws": 10, "seed": 2}
    made = impute(table, types, estimate="draw", **few).table.to_pandas().to_numpy()
    assert np.all(made > 0.0)
    assert made.sum(axis=1) == pytest.approx(1.0)


def test_equal_cells_are_told_of_where_one_is_to_be_less() -> None:
    table = pa.table({"goals": [0, 1, 3, 2, 2], "shots": [0, 4, 2, 2, 5]})
    types = {"columns": {"goals": {"type": "count", "less_than": "shots"}, "shots": "count"}}
    notes = with_known(encode(table, Schema.from_dict(types))).notes
    assert [str(note) for note in notes] == [
        "column 'goals': 1 cell is not less than 'shots' (row 3)",
        "column 'goals': 2 cells are equal to 'shots', as no completed one will be; leave "
        "`less_than` out where that may be (rows 1, 4)",
    ]


@pytest.mark.parametrize("censored", [False, True])
def test_intervals_beside_missing_parts_are_completed_or_named(censored: bool) -> None:
    rng, n = np.random.default_rng(3), 60
    iron, sulphur = rng.uniform(60, 90, n).round(2), rng.uniform(0.1, 1.0, n).round(2)
    carbon, below = (100 - iron - sulphur).round(2), sulphur < 0.5
    gone = np.arange(n) % 4 == 0
    table = pa.table(
        {
            "iron": [None if g else f"{x}" for g, x in zip(gone, iron, strict=True)],
            "carbon": [f"{x}" for x in carbon],
            "sulphur": ["<0.5" if b else f"{x}" for b, x in zip(below, sulphur, strict=True)],
            "total": ["100"] * n,
        }
    )
    part = {"type": "positive", "parts_of": "total"}
    mode = {"impute": "censored"} if censored else {}
    types = {"iron": part, "carbon": part, "sulphur": part | mode, "total": "real"}
    short = {"model": "bsvd", "chains": 1, "warmup": 10, "draws": 10, "threads": 1}
    found = impute(table, {"columns": types}, **short)
    said = f"column 'sulphur': {np.sum(gone & below)} cells are known only to lie in an interval, "
    named = [one for one in found.warnings if one.startswith(said)]
    assert len(named) == (0 if censored else 1)
    assert all("they will with `impute: censored`" in one for one in named)
    away = np.abs(numbers(found.table, "iron") - iron)
    assert away[~below].max() < 0.011
    assert (away[below].max() < 0.5) == censored
