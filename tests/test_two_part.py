"""Columns of which one value has a probability of its own: their choice, their law, their draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli import diagnose_fit, explore, load_fit, suggest
from glfm_cli.completion import impute
from glfm_cli.encoding import EncodedColumn, encode
from glfm_cli.errors import SchemaError
from glfm_cli.guess import guess_schema
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.law import NormalMixture, normal
from glfm_cli.links.margins import Interpolated
from glfm_cli.links.two_part import INVERSE_SD_VARIANCE, TwoPartLink
from glfm_cli.schema import Column, ColumnType, Schema, Transform
from glfm_cli.schema.atoms import atom_of, zeros_are_slips

SHORT: dict[str, Any] = {"chains": 4, "warmup": 60, "draws": 15, "thin": 1, "threads": 1}


def rain(rng: np.random.Generator, n: int, dry: float = 0.6) -> np.ndarray:
    return np.where(rng.random(n) < dry, 0.0, rng.gamma(2.0, 3.0, n))


def link_of(x: np.ndarray, kind: ColumnType = ColumnType.POSITIVE, **more: Any) -> Any:
    column, seen = Column("c", type=kind, **more), ~np.isnan(x)
    return make_link(EncodedColumn(column, 0, x, seen, ~seen, ()), LinkConfig())


@pytest.mark.parametrize(
    ("share", "kind", "atom"),
    [
        (0.9, ColumnType.POSITIVE, 0.0),
        (0.06, ColumnType.POSITIVE, 0.0),
        (0.3, ColumnType.REAL, 0.0),
        (0.02, ColumnType.REAL, None),
        (0.9, ColumnType.COUNT, None),
    ],
)
def test_a_value_that_stands_out_is_an_atom(share: float, kind: Any, atom: float | None) -> None:
    rng = np.random.default_rng(1)
    x = np.where(np.arange(500) < 500 * share, 0.0, np.round(rng.gamma(2.0, 300.0, 500)))
    assert atom_of(Column("c", type=kind), x) == atom
    assert atom_of(Column("c", type=kind, atom="none"), x) is None


def test_peaked_values_beside_an_atom_are_seen_by_their_ranks(seed: int) -> None:
    """The central half of a normal law would hold far more than half of them."""
    rng = np.random.default_rng(seed)
    for values, ranks in ((rng.normal(20.0, 2.0, 400), False), (rng.laplace(20.0, 2.0, 400), True)):
        x = np.where(np.arange(1000) < 600, 0.0, np.resize(values, 1000))
        assert isinstance(link_of(x).part.margin, Interpolated) is ranks
        chosen = link_of(x, transform=Transform.LOG)
        assert not isinstance(chosen.part.margin, Interpolated)


def test_rounded_values_are_no_atom(seed: int) -> None:
    x = np.round(np.random.default_rng(seed).gamma(2.0, 3.0, 500))
    assert atom_of(Column("c", type=ColumnType.POSITIVE), x) is None
    assert atom_of(Column("c", type=ColumnType.REAL, atom=2.0), x) == 2.0


def test_zeros_that_are_small_values_and_few_are_no_atom(seed: int) -> None:
    x = np.maximum(np.random.default_rng(seed).normal(1.8, 1.0, 400), 0.0)
    assert 0 < np.mean(x == 0.0) < 0.05
    assert atom_of(Column("c", type=ColumnType.POSITIVE), x) is None


def test_zeros_far_below_move_no_neighbour(seed: int) -> None:
    x = np.random.default_rng(seed).normal(9.0, 1.0, 400)
    link = link_of(np.where(np.arange(400) < 12, 0.0, x))
    without = link_of(x[12:])
    at = np.linspace(6.0, 12.0, 9)
    np.testing.assert_array_equal(link.margin.to_latent(at), without.margin.to_latent(at))


def test_completed_cells_reach_a_ceiling_as_often_as_observed_ones() -> None:
    """Percentages of which one in six is 100: the guess has room for them, `positive` says not."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    true = np.clip(80.0 + 12.0 * x + 15.0 * rng.normal(size=300), 1.0, 100.0).round(1)
    gone = rng.random(300) < 0.4
    table = pa.table({"pct": pa.array(true, mask=gone), "x": x.round(3)})
    guess = guess_schema(table)
    found = impute(table, guess, seed=1, **SHORT)
    versions = np.array([one["pct"].to_numpy()[gone] for one in found.multiple(20).tables()])
    assert (versions.min() >= 0.0, versions.max()) == (True, 100.0)
    assert abs(np.mean(versions == 100.0) - np.mean(true[gone] == 100.0)) < 0.05
    low, _, high = found.columns[0].marginal.quantiles.T
    assert np.mean((true[gone] >= low) & (true[gone] <= high)) > 0.85
    assert not found.warnings
    (note,) = encode(table, Schema.from_dict({"columns": {"pct": "positive", "x": "real"}})).notes
    assert "are 100, the largest, which completed cells of type positive are too rarely" in note
    assert "`{type: real, bounds: [0, 100], atom: 100}`" in note


def test_bounds_leave_an_atom_its_probability_in_joint_draws(seed: int) -> None:
    """Leaves have values beyond a ceiling, which cut off there would add to it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=400)
    y = np.minimum(80.0 + 12.0 * x + 15.0 * rng.normal(size=400), 100.0)
    gone = np.arange(400) % 2 == 0
    table = pa.table({"y": pa.array(y, mask=gone), "x": x})
    types = {"y": {"type": "real", "bounds": [None, 100], "atom": 100}, "x": "real"}
    done = impute(table, {"columns": types}, model="forest", seed=seed, **SHORT)
    law, rows = [], np.flatnonzero(gone)
    for draw in done.posterior.draws():
        of_cells = done.posterior.cells_law(draw, rows).column(0, np.arange(rows.size))
        law.append(done.posterior.links[0].split_law(of_cells, draw.params[0])[0])
    versions = [one["y"].to_numpy()[gone] for one in done.multiple(40).tables()]
    assert np.mean(np.array(versions) == 100.0) == pytest.approx(np.mean(law), abs=0.015)


def far(zeros: int, n: int = 200) -> pa.Table:
    """Return a table with zeros far below the other values of a column, a gap in the last row."""
    x = np.random.default_rng(1).normal(9.0, 1.0, n)
    y = x + np.random.default_rng(2).normal(0.0, 0.5, n)
    cells = np.where(np.arange(n) < zeros, 0.0, x).tolist()
    return pa.table({"x": pa.array([*cells[:-1], None]), "y": y})


def test_a_handful_of_zeros_far_below_counts_as_missing_and_stays(tmp_path: Path) -> None:
    types = {"columns": {"x": "positive", "y": "real"}}
    table, folder = far(3), tmp_path / "a.glfm"
    done = impute(table, types, save=folder, **SHORT)
    assert done.table["x"].to_pylist()[:4] == table["x"].to_pylist()[:4]
    assert done.n_completed == 1
    assert any("3 cells are 0, far below all others: taken for errors" in w for w in done.warnings)
    assert [(one.column, one.cells) for one in done.data.not_completed] == [("x", 3)]
    coded = {"type": "positive", "missing": [{"value": "0", "impute": False}]}
    other = impute(table, {"columns": {"x": coded, "y": "real"}}, **SHORT)
    assert other.columns[0].estimate.tolist() == done.columns[0].estimate.tolist()
    again = impute(table, fit=folder)
    assert again.table.equals(done.table)
    assert [(one.column, one.cells) for one in again.data.not_completed] == [("x", 3)]
    assert any("taken for errors" in w for w in again.warnings)


@pytest.mark.parametrize("entry", [{"atom": 0}, {"atom": "none"}, {"bounds": [0, 100]}])
def test_zeros_are_values_where_the_types_file_says_so(entry: dict[str, Any]) -> None:
    types = {"columns": {"x": {"type": "positive", **entry}, "y": "real"}}
    done = impute(far(3), types, **SHORT)
    assert bool(done.data.not_completed) == ("bounds" in entry)


@pytest.mark.parametrize(("zeros", "n", "slips"), [(9, 200, True), (10, 200, False),
                                                   (3, 50, False), (2, 50, True)])  # fmt: skip
def test_slips_are_few_and_rare(zeros: int, n: int, slips: bool) -> None:
    column, x = Column("x", type=ColumnType.POSITIVE), far(zeros, n)["x"].drop_null().to_numpy()
    assert zeros_are_slips(column, x) is slips
    values, times = np.unique(x, return_counts=True)
    assert zeros_are_slips(column, values, times) is slips
    assert not zeros_are_slips(Column("x", type=ColumnType.REAL), x)
    near = np.where(x > 0, x - 8.0, 0.0)
    assert not zeros_are_slips(column, np.abs(near))


def test_nothing_is_known_of_the_other_part_at_the_atom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.append(rain(rng, 4000), np.nan)
    link = link_of(x)
    params, y = link.start(x)
    params["inverse_sd"][:] = 1.7
    eta = np.tile([0.4, -0.8], (x.size, 1))
    link.augment(x, eta, 1.0, params, rng, y)
    dry, wet = x == 0.0, x > 0.0
    assert (y[dry, 0] > 0.0).all()
    assert (y[wet, 0] < 0.0).all()
    np.testing.assert_array_equal(y[-1], 0.0)
    np.testing.assert_allclose(link.value(y[wet, 1] / 1.7), x[wet])
    assert stats.kstest(y[dry, 1], stats.norm(-0.8).cdf).pvalue > 1e-3
    lower, upper = np.empty(y.shape), np.empty(y.shape)
    link.bound(x, params, y, rng, lower, upper)
    assert np.isinf(lower[dry, 1]).all()
    assert np.isinf(upper[dry, 1]).all()
    np.testing.assert_array_equal(lower[wet, 1], upper[wet, 1])


def test_a_change_of_scale_leaves_the_values(seed: int) -> None:
    x = rain(np.random.default_rng(seed), 50)
    link = link_of(x)
    params, y = link.start(x)
    assert link.scale_group(params) == (1.0 / INVERSE_SD_VARIANCE, 1.0)
    link.rescale(params, 1.5)
    wet = x > 0.0
    np.testing.assert_allclose(link.value(1.5 * y[wet, 1] / params["inverse_sd"]), x[wet])


def test_link_and_scale_leave_the_joint_law_alone(seed: int) -> None:
    """Joint-distribution test [Geweke 2004]: eta ~ N(0, I), t half normal, x; then all in turn."""
    rng, n, sweeps = np.random.default_rng(seed), 5, 6000
    link = link_of(rain(rng, 300))
    params = {"inverse_sd": np.abs(rng.normal(size=1)) * np.sqrt(INVERSE_SD_VARIANCE)}
    eta, kept = rng.standard_normal((n, 2)), []
    for _ in range(sweeps):
        x = link.sample(normal(eta, 1.0), params, rng)
        y = np.zeros((n, 2))
        link.update_params(x, eta, params, rng, False)
        link.augment(x, eta, 1.0, params, rng, y)
        squares, number = link.scale_group(params)
        total = 0.5 * np.sum(y * y) + squares  # y ~ N(0, 2) with eta out
        factor = float(np.sqrt(rng.chisquare(number + y.size) / total))
        link.rescale(params, factor)
        eta = 0.5 * factor * y + np.sqrt(0.5) * rng.standard_normal((n, 2))
        kept.append((params["inverse_sd"][0], eta[0, 0], eta[0, 1] ** 2, eta[:, 0] @ eta[:, 1]))
    t, first, second, both = np.array(kept).T
    # t creeps from sweep to sweep; a hundredth of the sweeps are independent enough.
    assert stats.kstest(t[::60], stats.halfnorm(scale=INVERSE_SD_VARIANCE**0.5).cdf).pvalue > 1e-3
    assert stats.kstest(first[::10], stats.norm.cdf).pvalue > 1e-3
    assert stats.kstest(second[::10], stats.chi2(1).cdf).pvalue > 1e-3
    assert abs(both.mean()) < 5.0 * np.sqrt(n / (sweeps / 10))


def test_parts_that_depend_on_each_other_have_the_law_of_a_simulation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    link = link_of(rain(rng, 300))
    cov = np.array([[2.0, 1.2], [1.2, 2.5]])
    variances = np.diag(cov)[None, None]
    law = NormalMixture(np.ones((1, 1)), np.zeros((1, 1, 2)), variances, cov[None, None])
    y = rng.multivariate_normal([0.0, 0.0], cov, 400_000)
    x = np.where(y[:, 0] > 0.0, 0.0, link.value(y[:, 1]))
    average = link.average(1, 1)
    average.add(law, {"inverse_sd": np.ones(1)}, 1.0, quantiles=True)
    found = average.result((0.6, 0.9), lambda p: p)
    assert found.mean[0] == pytest.approx(x.mean(), rel=0.02)
    assert found.sd[0] == pytest.approx(x.std(), rel=0.02)
    np.testing.assert_allclose(found.quantiles[0], np.quantile(x, (0.6, 0.9)), rtol=0.03)


@pytest.mark.parametrize("model", ["glfm", "bsvd", "mixture"])
def test_planted_parts_are_found(model: str) -> None:
    """Whether it rains follows one measurement, how much the other."""
    rng, n = np.random.default_rng(8), 400
    a, b = rng.normal(size=(2, n))
    amount = np.exp(0.5 + 0.6 * b + 0.2 * rng.normal(size=n))
    x = np.where(a + 0.3 * rng.normal(size=n) > 0.3, amount, 0.0)
    hidden = rng.random(n) < 0.2
    table = pa.table({"a": a, "b": b, "rain": pa.array(x, mask=hidden)})
    kinds = {"a": "real", "b": "real", "rain": "positive"}
    types = {"columns": {name: {"type": kind} for name, kind in kinds.items()}}
    done = impute(table, types, model=model, **SHORT)
    part = done.columns[2]
    assert isinstance(done.posterior.links[2], TwoPartLink)
    assert np.mean((part.marginal.quantiles[:, 1] > 0.0) == (x[hidden] > 0.0)) > 0.8
    wet = x[hidden] > 0.0
    correlation = stats.spearmanr(part.estimate[wet], x[hidden][wet]).statistic
    assert correlation > (0.5 if model == "glfm" else 0.6)
    drawn = np.concatenate([t["rain"].to_numpy()[hidden] for t in done.multiple(20).tables()])
    assert np.mean(drawn == 0.0) == pytest.approx(np.mean(x[hidden] == 0.0), abs=0.08)


def test_the_types_file_says_which_value_is_an_atom() -> None:
    schema = Schema.from_dict({"columns": {"c": {"type": "real", "atom": "2.5"}}})
    assert schema.columns[0].atom == 2.5
    again = Schema.from_yaml(schema.to_yaml())
    assert again.columns == schema.columns
    none = Schema.from_dict({"columns": {"c": {"type": "positive", "atom": "none"}}})
    assert Schema.from_yaml(none.to_yaml()).columns[0].atom == "none"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"type": "count", "atom": "0"}, "is only for types real and positive"),
        ({"type": "positive", "atom": "0", "censored_below": "1"}, "without `censored_below`"),
        ({"type": "positive", "atom": "3"}, "found 3, expected 0 or none"),
        ({"type": "real", "atom": "zero"}, "expected a number"),
    ],
)
def test_atoms_that_cannot_be_are_refused(entry: dict[str, str], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.from_dict({"columns": {"c": entry}})


def test_the_guess_says_why_a_column_has_an_atom() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"rain": np.round(rain(rng, 300), 2), "temp": rng.normal(size=300).round(2)})
    guess = guess_schema(table)
    column = guess.schema.columns[0]
    assert (str(column.type), column.atom) == ("positive", 0.0)
    assert "% of the cells, with a probability of its own" in guess.reasons["rain"]
    assert guess.schema.columns[1].atom is None


@pytest.mark.parametrize("model", ["glfm", "bsvd", "mixture"])
def test_every_task_takes_columns_with_an_atom(model: str, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(8), 60
    a = rng.normal(size=n)
    x = np.where(a > 0.2, np.exp(a), 0.0)
    table = pa.table({"a": a, "rain": pa.array(x, mask=rng.random(n) < 0.2)})
    types = {"columns": {"a": {"type": "real"}, "rain": {"type": "positive"}}}
    short = {"chains": 2, "warmup": 8, "draws": 6, "thin": 1, "threads": 1}
    folder = tmp_path / "a.glfm"
    done = impute(table, types, model=model, save=folder, **short)
    assert np.isfinite(done.columns[1].marginal.quantiles).all()
    assert done.columns[1].marginal.mcse.size == done.columns[1].estimate.size
    new = impute(table.slice(0, 9), fit=folder)
    assert new.table["rain"].null_count == 0
    checks = diagnose_fit(load_fit(folder)).checks
    assert 0.0 <= checks[1].p_value <= 1.0
    assert suggest(table, types, model=model, count=2, **short).to_table().num_rows == 2
    if model != "mixture":
        assert explore(table, types, model=model, **short).to_table().num_rows >= 0
