"""Explorations: features and patterns that are there are found, and noise is called noise."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from glfm_cli import Exploration, explore
from glfm_cli.errors import UsageError
from glfm_cli.exploration import ExplorationFiles, Request, tables
from glfm_cli.exploration.dependence import mutual_information
from glfm_cli.exploration.explanation import explain, memberships, numbered
from glfm_cli.exploration.features import Effect
from glfm_cli.exploration.findings import Remainder
from glfm_cli.exploration.lines import agreement_line, convergence_line, remainder_line
from glfm_cli.exploration.patterns import best_overlap
from glfm_cli.exploration.scales import ColumnProfile
from glfm_cli.exploration.stability import correlations
from glfm_cli.exploration.words import (
    in_words,
    number,
    percent,
    quantity,
    shortened,
    typical,
    value_text,
    without_middle,
)
from glfm_cli.inference.diagnostics import diagnose
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"chains": 3, "warmup": 40, "draws": 6, "threads": 1}
N_ROWS = 200


def two_features(seed: int, effect: float = 3.0) -> tuple[pa.Table, dict[str, Any], np.ndarray]:
    """Return a table with two planted features, its types, and who has which (N, 2)."""
    rng = np.random.default_rng(seed)
    Z = rng.random((N_ROWS, 2)) < [0.2, 0.4]
    y = rng.standard_normal((N_ROWS, 6))
    y[:, :3] += effect * Z[:, [0]]
    y[:, 3:] -= effect * Z[:, [1]]
    columns: dict[str, Any] = {
        "heat": 20 + 2 * y[:, 0],
        "wage": np.exp(1 + 0.3 * y[:, 1]),
        "grade": np.array(["low", "mid", "high"])[np.searchsorted([0.5, 2.0], y[:, 2])],
        "cold": y[:, 3],
        "visits": np.floor(8 * np.logaddexp(0, 1 + y[:, 4])).astype(int),
        "city": np.where(y[:, 5] > -1.5, "Oslo", "Rome"),
    }
    columns = {name: values.astype(object) for name, values in columns.items()}
    for values in columns.values():
        values[rng.random(N_ROWS) < 0.05] = None
    types = {
        "heat": {"type": "real", "unit": "°C"},
        "wage": {"type": "positive", "transform": "log"},
        "grade": {"type": "ordinal", "levels": ["low", "mid", "high"]},
        "cold": "real",
        "visits": "count",
        "city": "categorical",
    }
    table = pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
    return table, {"columns": types}, Z


@pytest.fixture(scope="module")
def planted(seed: int) -> tuple[Exploration, np.ndarray]:
    table, types, Z = two_features(seed)
    found = explore(table, types, seed=seed, similar=1, surprising=3, dependence=True, **SHORT)
    return found, Z


# What is there is found ----------------------------------------------------------------------


def test_planted_features_are_found_and_stable(planted: tuple[Exploration, np.ndarray]) -> None:
    found, Z = planted
    phi = correlations(Z, np.stack([f.probability > 0.5 for f in found.features], axis=1))
    best = np.abs(phi).argmax(axis=1)
    assert set(best) == {0, 1}
    assert np.abs(phi).max(axis=1).min() > 0.85
    assert all(found.features[k].stable for k in best)


def test_words_name_the_columns_a_feature_moves_and_which_way(
    planted: tuple[Exploration, np.ndarray],
) -> None:
    found, Z = planted
    phi = correlations(Z, np.stack([f.probability > 0.5 for f in found.features], axis=1))
    hot, cold = (found.features[k] for k in np.abs(phi).argmax(axis=1))
    assert {e.scale.name for e in hot.effects[:3]} == {"heat", "wage", "grade"}
    assert {e.scale.name for e in cold.effects[:3]} == {"cold", "visits", "city"}
    words = found.in_words(hot)
    assert "heat higher" in words
    assert "°C)" in words
    assert "grade higher (" in words
    words = found.in_words(cold)
    assert "cold lower" in words
    assert "visits lower" in words
    assert "city more Rome" in words
    assert all(effect.credible for effect in hot.effects[:3])


def test_the_line_on_convergence_calls_columns_by_name(
    planted: tuple[Exploration, np.ndarray], seed: int
) -> None:
    apart = np.random.default_rng(seed).normal([[0.0], [9.0]], 1.0, (2, 20))
    found = dataclasses.replace(planted[0], diagnostics=diagnose({"noise_3": apart}, ["noise_3"]))
    line = convergence_line(found)
    assert "the noise of 'cold' has R-hat" in line
    assert "noise_" not in line
    low, high = (
        dataclasses.replace(
            found, features=tuple(dataclasses.replace(f, stability=at) for f in found.features)
        )
        for at in (0.89, 0.91)
    )
    assert agreement_line(low).startswith("The chains do not all find the same features")
    assert agreement_line(high).startswith("The features listed are in nearly all draws")
    none = dataclasses.replace(found, features=())
    assert agreement_line(none) == line
    short = diagnose({"noise_3": apart[:, :2]}, ["noise_3"])
    few = dataclasses.replace(found, diagnostics=short)
    assert agreement_line(few) == convergence_line(few) != line


@pytest.mark.parametrize(
    ("off", "on", "said"),
    [
        ((0.2, 0.3, 0.5), (0.1, 0.2, 0.7), "grade higher (high: 50 % → 70 %)"),
        ((0.6, 0.2, 0.2), (0.2, 0.5, 0.3), "grade higher (mid or above: 40 % → 80 %)"),
        ((0.2, 0.3, 0.5), (0.6, 0.2, 0.2), "grade lower (low: 20 % → 60 %)"),
        ((0.3, 0.1, 0.6), (0.3, 0.6, 0.1), "grade lower (mid or below: 40 % → 90 %)"),
        ((0.1 + 0.2, 0.7 + 1e-15, 0.0), (0.1, 0.3, 0.6), "grade higher (high: 0 % → 60 %)"),
        ((0.0, 1.0, 0.0), (0.0, 1.0, 0.0), "grade stays as it is"),
    ],
)
def test_words_on_ordered_levels_speak_of_the_end_that_gains(
    planted: tuple[Exploration, np.ndarray], off: Any, on: Any, said: str
) -> None:
    (scale,) = (scale for scale in planted[0].scales if scale.name == "grade")
    profiles = [ColumnProfile(float(np.arange(3) @ mass), np.array(mass)) for mass in (off, on)]
    assert in_words(Effect(scale, *profiles, z=9.0, credible=True)) == said


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ({"type": "date", "format": "%d.%m.%Y"}, 19723.4, "01.01.2024"),
        ({"type": "date", "format": "excel"}, 19723.4, "2024-01-01"),
        ({"type": "date", "format": "unix"}, 19723.4, "2024-01-01"),
        ({"type": "duration"}, 95.0, "1:35"),
        ({"type": "duration"}, 9.45, "0:09:27"),
        ("real", 19723.4, "19,723"),
    ],
)
def test_quantities_are_written_as_their_column_is(
    planted: tuple[Exploration, np.ndarray], kind: Any, value: float, text: str
) -> None:
    scale = next(s for s in planted[0].scales if not s.discrete)
    column = Schema.from_dict({"columns": {"x": kind}}).resolve(["x"])[0]
    numbers = column.moments is not None and column.moments.format in ("excel", "unix")
    cells = [text] if column.moments and not numbers else ["45292"]
    style = column.moments and column.moments.style(cells)
    encoded = dataclasses.replace(scale.encoded, column=column, style=style)
    assert quantity(encoded, value) == text
    assert (value_text(encoded, value, 10) == text) == (column.moments is not None)


def test_a_typical_level_fits_its_column(planted: tuple[Exploration, np.ndarray]) -> None:
    (scale,) = (scale for scale in planted[0].scales if scale.name == "city")
    profile = ColumnProfile(np.nan, np.array([0.25, 0.75]))
    assert [typical(scale, profile, letters) for letters in (None, 9, 8)] == [
        "Rome 75 %",
        "Rome 75 %",
        "Rome\n75 %",
    ]


def test_patterns_partition_the_rows(planted: tuple[Exploration, np.ndarray]) -> None:
    found, _ = planted
    rows = np.concatenate([pattern.rows for pattern in found.patterns])
    assert np.array_equal(np.sort(rows), np.arange(N_ROWS))
    sizes = [pattern.rows.size for pattern in found.patterns]
    assert sizes == sorted(sizes, reverse=True)
    assert found.patterns[-1].cumulative == pytest.approx(1.0)
    assert found.patterns[0].bits.sum() == 0
    assert found.patterns[0].stable


def test_typical_rows_are_the_means_of_the_observed_cells_of_a_pattern(seed: int) -> None:
    table, types, _ = two_features(seed)
    found = explore(table, types, seed=seed, **SHORT)
    shown = tables.typical(found).to_pylist()
    for pattern in found.top_patterns:
        cells = table.take(pa.array(pattern.rows))
        mine = [row for row in shown if row["pattern"] == pattern.name]
        value = {(row["column"], row["level"]): row["value"] for row in mine}
        assert value["heat", None] == pytest.approx(pc.mean(cells["heat"]).as_py())
        cities = cells["city"].drop_null().to_pylist()
        assert value["city", "Rome"] == pytest.approx(cities.count("Rome") / len(cities))


def test_columns_of_one_feature_depend_on_each_other(
    planted: tuple[Exploration, np.ndarray],
) -> None:
    found, _ = planted
    assert found.dependence is not None
    strength = found.dependence.strength
    assert np.allclose(strength, strength.T, equal_nan=True)
    assert min(strength[0, 1], strength[3, 4]) > 3 * max(strength[0, 3], strength[1, 4])


def test_tables_of_pairs_have_the_strongest_ones_alone(
    planted: tuple[Exploration, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = planted
    n = len(found.scales)
    every = [tables.dependence(found), tables.missing(found)]
    assert [one.num_rows for one in every] == [n * (n - 1) // 2, n * (n + 1) // 2]
    assert np.all(np.diff(every[0]["bits"].to_numpy()) <= 0.0)
    monkeypatch.setattr(tables, "MOST_PAIRS", n + 2)
    assert tables.dependence(found).equals(every[0].slice(0, n + 2))
    some = tables.missing(found).to_pylist()
    rest = [row for row in every[1].to_pylist() if row not in some]
    assert [row["column"] for row in some if row["column"] == row["other"]] == list(
        found.missing.names
    )
    pairs = [abs(row["phi"]) for row in some if row["column"] != row["other"]]
    assert len(pairs) == 2
    assert min(pairs) >= max(abs(row["phi"]) for row in rest)
    assert some == [row for row in every[1].to_pylist() if row in some]


def test_similar_rows_share_the_pattern(planted: tuple[Exploration, np.ndarray]) -> None:
    found, _ = planted
    assert found.similar is not None
    assert 0 not in found.similar.rows
    number_of = found.row_pattern()
    assert (number_of[found.similar.rows] == number_of[0]).all()


def test_an_absurd_cell_is_the_most_surprising(seed: int) -> None:
    table, types, _ = two_features(seed)
    heat = table["heat"].to_pylist()
    heat[17] = 90.0
    table = table.set_column(0, "heat", pa.array(heat))
    types["columns"]["heat"] = {"type": "real", "transform": "none"}
    found = explore(table, types, seed=seed, surprising=2, **SHORT)
    assert found.surprising is not None
    assert (found.surprising.cell_row[0], found.surprising.cell_column[0]) == (17, 0)
    assert found.surprising.row[0] == 17
    assert found.to_dict()["surprising_cells"][0]["value"] == "90"


def test_a_feature_of_one_column_s_shape_is_not_listed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = {name: rng.standard_normal(N_ROWS) for name in "abcd"}
    columns["a"] += 9.0 * (rng.random(N_ROWS) < 0.3)  # two humps, unrelated to the rest
    types = {name: {"type": "real", "transform": "none"} for name in columns}
    options = SHORT | {"chains": 4, "warmup": 80}
    found = explore(pa.table(columns), {"columns": types}, seed=seed + 1, **options)
    assert found.features == found.main == ()
    assert found.remainder.explained == 1.0
    every = explore(
        pa.table(columns), {"columns": types}, seed=seed + 1, all_features=True, **options
    )
    assert every.features[0].stability > 0.5  # the shape is there, and binds nothing
    assert not any(feature.credible for feature in every.features)
    assert every.main == ()


def test_all_features_of_a_table_too_small_for_halves_are_listed(seed: int) -> None:
    table = pa.table({"a": [None, 2.0], "b": [None, "y"]})
    options = {**SHORT, "settings": {"max_features": 3}}
    types = {"columns": {"a": "real", "b": "categorical"}}
    found = explore(table, types, seed=seed, all_features=True, **options)
    assert not any(feature.credible or feature.effects for feature in found.features)


def test_noise_lists_no_feature(seed: int) -> None:
    table, types, _ = two_features(seed, effect=0.0)
    found = explore(table, types, seed=seed, **SHORT)
    assert found.features == ()
    assert [pattern.name for pattern in found.patterns] == ["()"]


# Which draw is shown -------------------------------------------------------------------------


@pytest.mark.parametrize("sample", ["best", "consensus", "held-out"])
def test_each_way_to_choose_a_draw_gives_an_explanation(seed: int, sample: str) -> None:
    table, types, _ = two_features(seed)
    found = explore(table, types, seed=seed, sample=sample, **SHORT)
    assert found.sample == sample
    assert found.features[0].stable
    if sample == "best":
        every = [one.trace["log_likelihood"] for _, _, one in numbered(found.posterior)]
        assert found.shown.log_likelihood == max(every)
    observed = sum(int(scale.encoded.observed.sum()) for scale in found.scales)
    assert observed == sum(table.num_rows - column.null_count for column in table.columns)


def test_an_unknown_way_to_choose_is_an_error() -> None:
    table, types, _ = two_features(0)
    with pytest.raises(UsageError, match="consensus or best or held-out"):
        explore(table, types, sample="worst", **SHORT)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("top", value) for value in (2.5, "3", 0)),
        *(("surprising", value) for value in ("a", -1)),
        *(("similar", 1.5), ("columns", 3), ("columns", [3])),
    ],
)
def test_odd_requests_are_refused_before_anything_is_sampled(option: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"^(--)?{option}, found .*, expected "):
        Request(**{option: value})  # type: ignore[arg-type]


def test_files_may_be_named_by_texts(tmp_path: Any) -> None:
    table, types, _ = two_features(0)
    files = ExplorationFiles(folder=str(tmp_path / "out"), record=str(tmp_path / "r.json"))  # type: ignore[arg-type]
    explore(table, types, files=files, chains=1, warmup=2, draws=2)
    assert (tmp_path / "out" / "exploration.json").exists()
    assert (tmp_path / "r.json").exists()


def test_turning_features_leaves_eta_as_it_is(planted: tuple[Exploration, np.ndarray]) -> None:
    posterior = planted[0].posterior
    for chain, number_of, draw in list(numbered(posterior))[::5]:
        turned = explain(posterior, chain, number_of, bias=True)
        law = posterior.cells_law(draw, slice(None))
        for d, (start, end) in enumerate(posterior.spans):
            assert np.allclose(turned.eta[:, start:end], law.column(d).means[:, 0])
        assert (turned.Z.mean(axis=0) <= 0.5).all()
        assert memberships(posterior, draw, slice(None), bias=True).shape[0] == N_ROWS


def test_the_result_does_not_depend_on_threads(seed: int) -> None:
    table, types, _ = two_features(seed)
    options = SHORT | {"draws": 3, "warmup": 10}
    one = explore(table, types, seed=seed, **options)
    two = explore(table, types, seed=seed, **(options | {"threads": 3}))
    first, second = one.to_dict(), two.to_dict()
    assert first.pop("seconds") >= 0
    assert second.pop("seconds") >= 0
    assert json.dumps(first, allow_nan=False) == json.dumps(second, allow_nan=False)


# Odd tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"max_features": 0}, {"bias": False}, {"initial_features": 20}],
)
def test_any_setting_gives_an_explanation(seed: int, settings: dict[str, object]) -> None:
    table, types, _ = two_features(seed)
    options = SHORT | {"warmup": 8, "draws": 4}
    found = explore(
        table, types, seed=seed, settings=settings, similar=2, dependence=True, **options
    )
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.tables()["memberships"].num_rows == N_ROWS * len(found.features)
    if settings.get("max_features") == 0:
        assert found.features == ()
        assert [pattern.name for pattern in found.patterns] == ["()"]


ODD: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "one column": ({"x": [1.0, 2.0, 3.0, None]}, {"x": "real"}),
    "one row": ({"x": [1.0], "y": ["a"]}, {"x": "real", "y": "categorical"}),
    "a constant": ({"x": [2] * 9, "y": list("ababababa")}, {"x": "count", "y": "categorical"}),
    "one level": ({"x": ["a"] * 6, "y": [1.0, 5, 2, 6, 1, 7]}, {"x": "categorical", "y": "real"}),
    "zeros": (
        {"x": [0.0, 0, 0, 3, 4, 0], "y": list("aaabbb")},
        {"x": "positive", "y": "categorical"},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_are_explored(name: str) -> None:
    content, types = ODD[name]
    table = pa.table({key: pa.array(values) for key, values in content.items()})
    found = explore(
        table,
        {"columns": types},
        chains=2,
        warmup=5,
        draws=4,
        threads=1,
        surprising=2,
        similar=1,
        dependence=True,
    )
    assert sum(pattern.rows.size for pattern in found.patterns) == table.num_rows
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(one.num_columns for one in found.tables().values())


def test_one_chain_says_that_it_cannot_tell_stability(seed: int) -> None:
    table, types, _ = two_features(seed)
    found = explore(table, types, seed=seed, **(SHORT | {"chains": 1}))
    assert any("one chain cannot tell" in text for text in found.warnings)


def test_columns_restrict_the_words_and_not_the_model(seed: int) -> None:
    table, types, _ = two_features(seed)
    options = SHORT | {"warmup": 20}
    found = explore(table, types, seed=seed, columns=["cold", "wage"], **options)
    assert [scale.name for scale in found.columns] == ["cold", "wage"]
    assert len(found.scales) == 6
    assert "heat" not in " ".join(found.in_words(feature) for feature in found.features)
    with pytest.raises(UsageError, match=r"colt") as error:
        explore(table, types, columns=["colt"], **options)
    assert error.value.hint == "Did you mean 'cold'?"


@pytest.mark.parametrize(
    ("remainder", "line"),
    [
        (Remainder(0, 0.0, 0.0), None),
        (
            Remainder(47, 0.49, 0.83),
            "47 more features, in at most 49 % of the rows, add no more than chance, or "
            "nothing to those shown; they explain 83 % of what all features explain "
            "(--all-features shows them). "
            "Where columns vary together gradually, components (--model bsvd) describe "
            "them in fewer parts.",
        ),
        (
            Remainder(1, 0.04, 0.02),
            "1 more feature, in 4 % of the rows, adds no more than chance, or nothing to those "
            "shown; it explains 2 % of what all features explain (--all-features shows it).",
        ),
        (
            Remainder(9, 0.04, 0.08),
            "9 more features, in at most 4 % of the rows, add no more than chance, or nothing to "
            "those shown; they explain 8 % of what all features explain "
            "(--all-features shows them).",
        ),
    ],
)
def test_the_features_left_out_are_told_in_a_line(
    planted: tuple[Exploration, np.ndarray], remainder: Remainder, line: str | None
) -> None:
    assert remainder_line(dataclasses.replace(planted[0], remainder=remainder)) == line


# The parts -----------------------------------------------------------------------------------


@given(st.text(max_size=30), st.integers(3, 20))
def test_long_names_keep_both_ends(name: str, letters: int) -> None:
    said = without_middle(name, letters)
    assert len(said) == min(len(name), letters)
    assert (said[0:1], said[-1:]) == (name[0:1], name[-1:])


memberships_of_some = nps.arrays(np.uint8, (30, 4), elements=st.integers(0, 1))


@given(memberships_of_some, memberships_of_some)
def test_correlations_lie_in_bounds_and_follow_a_turn(A: np.ndarray, B: np.ndarray) -> None:
    phi = correlations(A, B)
    assert (np.abs(phi) <= 1 + 1e-6).all()
    assert np.allclose(correlations(1 - A, B), -phi, atol=1e-6)
    varies = A.std(axis=0) > 0
    assert np.allclose(np.diag(correlations(A, A))[varies], 1.0, atol=1e-6)


@given(nps.arrays(np.int64, 40, elements=st.integers(0, 3)))
def test_a_partition_contains_its_own_groups(code: np.ndarray) -> None:
    groups = np.unique(code)
    whole = groups.size == 1  # a group of all rows is in no contrast to anything
    expected = 0.0 if whole else 1.0
    assert np.allclose(best_overlap(code, code, groups), expected)


@given(
    nps.arrays(np.float64, 5, elements=st.floats(0.01, 1)),
    nps.arrays(np.float64, 4, elements=st.floats(0.01, 1)),
)
def test_independent_columns_have_no_mutual_information(p: np.ndarray, q: np.ndarray) -> None:
    assert mutual_information(np.outer(p, q)) == pytest.approx(0.0, abs=1e-12)
    assert mutual_information(np.eye(4)) == pytest.approx(2.0)


@given(st.floats(-1e12, 1e12))
def test_numbers_in_words_keep_two_digits_at_least(value: float) -> None:
    text = number(value).replace(",", "")
    assert float(text) == pytest.approx(value, rel=0.01, abs=1e-300)


@given(st.floats(0, 1))
def test_shares_in_words_are_percentages(share: float) -> None:
    text = percent(share)
    assert text.endswith(" %")
    if not text.startswith("<"):
        assert abs(float(text[:-2]) - 100 * share) <= 0.5


def test_a_pattern_says_of_a_column_what_holds_in_rows_that_can_have_a_value() -> None:
    rng = np.random.default_rng(5)
    woman = np.arange(N_ROWS) % 2 == 0
    size = np.where(woman, -1.0, 1.0) + rng.standard_normal(N_ROWS)
    dose = 10 + 2 * size + 0.5 * rng.standard_normal(N_ROWS)  # of men it would be 12
    table = pa.table(
        {
            "sex": np.where(woman, "f", "m"),
            "size": size,
            "twice": 2 * size + 0.1 * rng.standard_normal(N_ROWS),
            "dose": pa.array(np.where(woman, dose, np.nan), from_pandas=True),
        }
    )
    types = {
        "sex": "categorical",
        "size": "real",
        "twice": "real",
        "dose": {"type": "real", "only_if": 'sex == "f"'},
    }
    found = explore(table, {"columns": types}, seed=1, **SHORT)
    scale = found.scales[3]
    rows = np.arange(N_ROWS)
    assert woman[scale.some_of(rows, 20)].all()
    assert list(scale.some_of(rows[~woman], N_ROWS)) == list(rows[~woman])  # there are no others
    weighed = dataclasses.replace(scale, weight=(rows == 6) + 0.0)
    assert set(weighed.some_of(rows, 20)) == {6}
    assert np.mean(woman[found.scales[0].some_of(rows, 20)]) == pytest.approx(0.5, abs=0.1)
    for pattern in found.top_patterns:
        at = scale.some_of(pattern.rows, N_ROWS)
        law = scale.law(found.shown.eta[at], float(found.shown.noise[3]))
        mean = scale.link.pooled_mean(law, found.shown.params[3])
        assert pattern.profiles[3].mean == pytest.approx(mean)


def test_labels_that_differ_in_their_middle_are_told_apart() -> None:
    texts = [f"Department of Long Studies Number {i} (Faculty of Sciences)" for i in range(12)]
    shown = [shortened(texts, i, 20) for i in range(12)]
    assert shown == [f"…{i}…" for i in range(12)]
    ends = ["strongly agree with the statement", "strongly agree with the opinion"]
    assert [shortened(ends, i, 20) for i in range(2)] == [without_middle(t, 20) for t in ends]


@pytest.mark.parametrize(("years", "text"), [((1999.0, 2020.0), "2019"), ((9.0, 2020.0), "2,019")])
def test_a_year_is_written_without_commas(
    planted: tuple[Exploration, np.ndarray], years: tuple[float, ...], text: str
) -> None:
    scale = next(s for s in planted[0].scales if not s.discrete)
    column = Schema.from_dict({"columns": {"x": "real"}}).resolve(["x"])[0]
    x = np.array(years)
    encoded = dataclasses.replace(scale.encoded, column=column, x=x, observed=x > 0.0)
    assert quantity(encoded, 2018.7) == text
