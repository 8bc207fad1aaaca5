"""The diagnosis of a fit: what the check of columns finds, and what is advised."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtri

from glfm_cli import impute, load_fit
from glfm_cli.cli.sparkline import BLOCKS, means, numbers, sparkline
from glfm_cli.diagnosis import Compared, Diagnosis, check_columns, diagnose_fit
from glfm_cli.diagnosis.check import ColumnCheck
from glfm_cli.diagnosis.diagnose import _relative
from glfm_cli.encoding import Data
from glfm_cli.errors import UsageError
from glfm_cli.inference.predictive import predict
from glfm_cli.store import Fit

N = 120


def table_of(rng: np.random.Generator) -> pa.Table:
    z = rng.normal(size=N)
    columns = {
        "normal": z + rng.normal(size=N),
        "other": np.where(rng.random(N) < 0.15, None, z + 0.3 * rng.normal(size=N)),
        # Most at 0 and some far out: no normal column looks like it.
        "lumpy": np.where(rng.random(N) < 0.8, 0.0, rng.normal(40.0, 1.0, size=N)),
        "visits": rng.poisson(np.exp(1 + 0.3 * z)),
        "city": rng.choice(["Oslo", "Paris", "Rome"], N, p=[0.6, 0.3, 0.1]),
        "grade": rng.choice(["a", "b", "c"], N),
    }
    return pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})


TYPES = {
    "columns": {
        "normal": {"type": "real", "transform": "none"},
        "other": {"type": "real", "transform": "none"},
        "lumpy": {"type": "real", "transform": "none", "atom": "none"},
        "visits": "count",
        "city": "categorical",
        "grade": {"type": "ordinal", "levels": ["a", "b", "c"]},
    }
}


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
    folder = tmp_path_factory.mktemp("fit") / "fit.glfm"
    # One feature at most: with many the model would learn each far value by heart.
    impute(
        table_of(np.random.default_rng(3)),
        TYPES,
        chains=2,
        warmup=60,
        draws=30,
        settings={"max_features": 1},
        save=folder,
    )
    return load_fit(folder)


@pytest.fixture(scope="module")
def result(fit: Fit) -> Diagnosis:
    return diagnose_fit(fit)


def check_of(result: Diagnosis, name: str) -> ColumnCheck:
    (found,) = [check for check in result.checks or () if check.column == name]
    return found


# The check of columns ------------------------------------------------------------------------


def test_a_fit_and_its_diagnosis_are_shown_in_a_line(fit: Fit, result: Diagnosis) -> None:
    assert repr(fit).endswith(f"fit.glfm: 120 rows, 2 chains of {fit.model.name}>")
    assert repr(result) == f"<Diagnosis of {fit.path}: {result.in_words()}>"


def test_a_column_of_another_shape_is_found_and_the_others_are_not(result: Diagnosis) -> None:
    assert [check.column for check in result.checks or () if not check.fits] == ["lumpy"]
    assert any("reproduce 'lumpy'" in text for text in result.advice)


def test_shares_are_shares_and_bars_hold_every_cell(result: Diagnosis) -> None:
    for check in result.checks or ():
        assert 0 < check.p_value <= 1
        assert check.replicated.shape == (100, check.observed.size)
        np.testing.assert_allclose(check.observed.sum(), 1.0)
        np.testing.assert_allclose(check.replicated.sum(axis=1), 1.0)
        assert check.edges.size == (0 if check.levels else check.observed.size + 1)


def test_summaries_of_the_observed_column_are_its_own(fit: Fit, result: Diagnosis) -> None:
    assert fit.data is not None
    mean, sd = check_of(result, "visits").summaries
    x = fit.data.columns[3].x
    assert (mean.name, sd.name) == ("mean", "sd")
    np.testing.assert_allclose([mean.observed, sd.observed], [x.mean(), x.std()])
    shares = check_of(result, "city").summaries
    assert [one.name for one in shares] == list(fit.data.columns[4].levels)
    np.testing.assert_allclose(sum(one.observed for one in shares), 1.0)


def test_p_values_of_columns_that_the_model_made_are_spread_out(fit: Fit) -> None:
    """Columns drawn from the model, by the draws that are checked, are no misfits."""
    assert fit.data is not None
    rng = np.random.default_rng(8)
    few = 0
    for draw in list(fit.posterior.draws(10)):
        law = fit.posterior.joint(draw, slice(0, N), rng)
        columns = []
        for d, encoded in enumerate(fit.data.columns):
            x = fit.links[d].sample(law.column(d), draw.params[d], rng)
            columns.append(dataclasses.replace(encoded, x=x, observed=np.ones(N, dtype=bool)))
        made = Data(N, tuple(columns))
        checks = check_columns(fit.posterior, made, rng, replicates=60)
        few += sum(check.p_value < 0.05 for check in checks)
    # 60 of them: about 3 below 0.05.
    assert few <= 10


def test_a_column_that_was_rounded_fits_as_it_does_unrounded(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(60.0, 6.0, size=(2, 2000))
    table = pa.table({"whole": np.round(x[0]), "tenths": np.round(x[1], 1)})
    types = {"columns": {name: dict(TYPES["columns"]["normal"]) for name in table.column_names}}
    settings = {"max_features": 1}
    few: dict[str, Any] = {"chains": 1, "warmup": 30, "draws": 10, "threads": 1}
    impute(table, types, model="glfm", settings=settings, save=tmp_path / "f.glfm", **few)
    whole, tenths = diagnose_fit(tmp_path / "f.glfm").checks or ()
    assert whole.p_value > 0.05
    assert np.allclose(whole.edges % 1.0, 0.5)
    assert np.allclose(whole.observed, whole.replicated.mean(axis=0), atol=0.03)
    steps = np.diff(tenths.edges) / 0.1
    assert np.allclose(steps, np.round(steps[0]))
    assert steps.size <= 24


def test_a_comparison_counts_both_sides() -> None:
    replicated = np.arange(99.0)
    assert Compared.of("x", 49.0, replicated).p_value == 1.0
    assert Compared.of("x", -1.0, replicated).p_value == pytest.approx(0.02)
    assert Compared.of("x", 200.0, replicated).p_value == pytest.approx(0.02)


# Uncertain cells -----------------------------------------------------------------------------


def test_the_least_certain_cells_are_gaps_the_worst_first(fit: Fit, result: Diagnosis) -> None:
    assert fit.data is not None
    assert result.uncertain is not None
    assert len(result.uncertain) == 10
    spreads = [cell.uncertainty for cell in result.uncertain]
    assert spreads == sorted(spreads, reverse=True)
    requested = set(np.flatnonzero(fit.data.columns[1].requested) + 1)
    assert {cell.row for cell in result.uncertain} <= requested
    assert {cell.column for cell in result.uncertain} == {"other"}


def test_a_level_as_unsure_as_its_column_has_uncertainty_one(fit: Fit) -> None:
    assert fit.data is not None
    city = fit.data.columns[4]
    shares = np.bincount(city.x.astype(int)) / N
    marginal = predict(fit.posterior, {4: np.arange(2)})[4]
    flat = dataclasses.replace(marginal, probabilities=np.array([shares, [1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(_relative(city, flat), [1.0, 0.0], atol=1e-12)


def test_a_number_is_as_unsure_as_its_ranks_are(fit: Fit) -> None:
    assert fit.data is not None
    column = fit.data.columns[0]
    x = np.exp(3.0 * ndtri((np.arange(N) + 0.5) / N))  # a few are a thousand times the others
    column = dataclasses.replace(column, x=x)
    assert column.observed.all()
    ends = np.exp(3.0 * np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.6], [9.0, 9.0], [-0.5, 0.0]]))
    marginal = dataclasses.replace(predict(fit.posterior, {0: np.arange(5)})[0], quantiles=ends)
    np.testing.assert_allclose(_relative(column, marginal), [1.0, 0.0, 0.3, 0.0, 0.25], atol=0.03)


# What is said --------------------------------------------------------------------------------


def test_everything_has_a_label_and_the_same_fit_the_same_diagnosis(
    fit: Fit, result: Diagnosis
) -> None:
    assert result.labels.keys() == result.traces.keys()
    assert result.labels["noise_1"] == "noise variance of 'other'"
    cells = [label for name, label in result.labels.items() if name.startswith("cell_")]
    assert cells
    assert all(label.startswith("missing cell of 'other', row ") for label in cells)
    assert diagnose_fit(fit.path).to_dict() == result.to_dict()


def test_advice_says_how_many_chains(tmp_path: Path) -> None:
    folder = tmp_path / "short.glfm"
    table = table_of(np.random.default_rng(3))
    impute(table, TYPES, chains=2, warmup=4, draws=6, save=folder, settings={"max_features": 2})
    advice = diagnose_fit(folder).advice
    assert f"`glfm impute DATA --resume {folder} --chains " in advice[0]
    assert any("--set max_features=4" in text for text in advice)


def test_columns_with_intervals_are_not_checked(tmp_path: Path) -> None:
    """Their numbers are those above the limit, and replicated ones are not."""
    x = np.random.default_rng(0).standard_normal(120)
    cells = ["<-0.5" if value < -0.5 else f"{value:.4f}" for value in x]
    table = pa.table({"x": cells, "y": x + np.random.default_rng(1).standard_normal(120)})
    types = {"columns": {"x": "real", "y": "real"}}
    impute(table, types, model="glfm", save=tmp_path / "fit.glfm", chains=2, warmup=10, draws=10)
    checks = diagnose_fit(tmp_path / "fit.glfm").checks
    assert checks is not None
    assert [check.column for check in checks] == ["y"]


def test_a_column_of_intervals_alone_is_no_more_certain_than_the_middles_it_has(
    tmp_path: Path,
) -> None:
    x = np.random.default_rng(0).integers(1, 9, 60)
    table = pa.table({"x": [f"{i}-{i + 2}" for i in x], "y": x + 0.1 * (np.arange(60) % 7)})
    types: Any = {"columns": {"x": {"type": "real", "impute": "censored"}, "y": "real"}}
    impute(table, types, model="glfm", save=tmp_path / "fit.glfm", chains=1, warmup=9, draws=9)
    result = diagnose_fit(tmp_path / "fit.glfm")
    assert [check.column for check in result.checks or ()] == ["y"]
    assert result.uncertain is not None
    assert 0.02 < result.uncertain[0].uncertainty < 1


@pytest.mark.parametrize("wrong", [{"replicates": 2.5}, {"replicates": 0}, {"cells": "3"}])
def test_numbers_that_are_not_whole_are_refused(fit: Fit, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a whole number from"):
        diagnose_fit(fit, **wrong)


def test_without_data_there_is_neither_check_nor_list(tmp_path: Path) -> None:
    folder = tmp_path / "fit.glfm"
    table = table_of(np.random.default_rng(3))
    impute(table, TYPES, chains=2, warmup=4, draws=6, save=folder, with_data=False)
    result = diagnose_fit(folder)
    assert (result.checks, result.uncertain) == (None, None)
    assert result.notes[-1].startswith("the fit was saved without its table")
    assert "log_likelihood of glfm" in result.traces


# Traces in a line ----------------------------------------------------------------------------


def test_a_sparkline_runs_from_the_lowest_to_the_highest_block() -> None:
    assert sparkline([0.0, 1.0, 7.0], 0.0, 7.0) == "▁▂█"
    assert sparkline(list(range(64)), 0.0, 63.0)[::31] == "▁█"
    assert len(sparkline(list(range(1000)), 0.0, 999.0)) == 32
    assert set(sparkline([2.0, 2.0], 2.0, 2.0)) <= set(BLOCKS)
    assert sparkline([-1.7e308, 1.7e308], -1.7e308, 1.7e308) == "▁█"
    assert sparkline([0.0, float("nan")], 0.0, 1.0) == "??"
    assert numbers([0.0, float("inf")]) == "not finite"


def test_stretches_hold_every_value() -> None:
    assert means([1.0, 2.0, 3.0, 4.0], 2) == [1.5, 3.5]
    assert means([1.0, 2.0], 6) == [1.0, 2.0]
    assert means([], 6) == []
