"""Figures of explorations: of any table, with nothing cut or on top of one another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from glfm_cli import Exploration, explore, plot_exploration
from glfm_cli.errors import OutputError, UsageError
from glfm_cli.plots import plot_columns, plot_dependence, plot_fit, plot_shares, plot_traces
from glfm_cli.plots.style import SMALL, distinct

PLOTS = (plot_exploration, plot_columns, plot_traces, plot_fit, plot_dependence)


def a_table(seed: int, n_rows: int = 120) -> tuple[pa.Table, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    on = rng.random(n_rows) < 0.4
    long = "a_name_as_long_as_those_that_questionnaires_like_to_give_to_their_questions"
    columns = {
        "price": np.exp(rng.normal(10 + 3 * on, 1.0)),
        "height": rng.normal(170 + 12 * on, 5),
        "visits": rng.poisson(2 + 9 * on),
        "state": np.array(
            [f"State no. {i} of the country" for i in rng.integers(30, size=n_rows) // (1 + on)]
        ),
        "grade": np.array(["low", "middle", "high"])[np.clip(rng.poisson(0.3 + on), 0, 2)],
        long: rng.normal(on, 1),
    }
    types = {
        "price": {"type": "positive", "unit": "EUR", "label": "Price of the house, $ and all"},
        "height": {"type": "real", "unit": "cm"},
        "visits": "count",
        "state": "categorical",
        "grade": {"type": "ordinal", "levels": ["low", "middle", "high"]},
        long: {"type": "real", "label": "A label that is longer than a panel is wide, by far"},
    }
    return pa.table(columns), {"columns": types}


@pytest.fixture(scope="module")
def found(seed: int) -> Exploration:
    table, types = a_table(seed)
    return explore(
        table, types, chains=3, warmup=15, draws=5, threads=1, seed=seed, dependence=True
    )


def beyond(text: Text) -> bool:
    """Return whether a text is the label of a tick outside the range that is drawn."""
    for axes in text.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if text in (tick.label1, tick.label2):
                    return not low - 1e-9 <= tick.get_loc() <= high + 1e-9
    return False


def overlapping(figure: Figure) -> list[str]:
    """Return pairs of texts that overlap, and texts that the page cuts."""
    figure.canvas.draw()
    shown = [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and not beyond(text)
    ]
    page = figure.bbox
    wrong = [
        f"{name!r} is cut"
        for name, box in shown
        if box.x0 < -1 or box.y0 < -1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1
    ]
    for (a, one), (b, two) in combinations(shown, 2):
        width = min(one.x1, two.x1) - max(one.x0, two.x0)
        height = min(one.y1, two.y1) - max(one.y0, two.y0)
        if width > 2 and height > 2:
            wrong.append(f"{a!r} is on {b!r}")
    return wrong


@pytest.mark.parametrize("plot", PLOTS)
def test_no_text_is_cut_or_covered(
    found: Exploration, plot: Callable[[Exploration], Figure]
) -> None:
    assert overlapping(plot(found)) == []


@pytest.mark.parametrize("column", ["state", "grade"])
def test_shares_by_level_are_drawn_for_every_level(found: Exploration, column: str) -> None:
    figure = plot_shares(found, column)
    assert overlapping(figure) == []
    levels = next(s.encoded for s in found.scales if s.name == column)
    present = np.unique(levels.x[levels.observed]).size
    assert len(figure.axes[0].get_yticklabels()) == present


def test_shares_need_a_column_with_levels(found: Exploration) -> None:
    with pytest.raises(UsageError, match="height"):
        plot_shares(found, "height")
    with pytest.raises(UsageError, match="nothing"):
        plot_shares(found, "nothing")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_files_of_the_same_bytes(
    found: Exploration, tmp_path: Path, suffix: str
) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    plot_columns(found, first, ["price", "grade"])
    plot_columns(found, second, ["price", "grade"])
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 2000


def test_an_unknown_format_is_an_error(found: Exploration, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="gif"):
        plot_exploration(found, tmp_path / "x.gif")


def test_tables_without_structure_are_drawn(seed: int) -> None:
    table, types = a_table(seed)
    for settings in ({"max_features": 0}, {"bias": False}):
        plain = explore(
            table, types, chains=1, warmup=2, draws=1, threads=1, settings=settings, dependence=True
        )
        for plot in PLOTS:
            assert overlapping(plot(plain)) == []


def test_dependence_must_have_been_asked_for(seed: int) -> None:
    table, types = a_table(seed)
    plain = explore(table, types, chains=1, warmup=1, draws=1, threads=1)
    with pytest.raises(UsageError, match="not asked for"):
        plot_dependence(plain)


def test_of_many_levels_those_are_drawn_in_which_patterns_differ_most(
    found: Exploration, seed: int
) -> None:
    n_levels = len(a_table(seed)[0]["state"].unique())
    assert n_levels > 20
    axes = plot_columns(found, columns=["state"]).axes[0]
    assert axes.get_title(loc="left") == f"state: 5 of {n_levels} levels"
    drawn = {label.get_text() for label in axes.get_yticklabels()}
    assert len(drawn) == 5  # each told from the others, though its name is cut


def test_letters_that_the_font_lacks_are_measured_without_a_warning(seed: int) -> None:
    table = pa.table({"診療科": ["内科", "外科"] * 15, "年齢": np.arange(30) % 7})
    types = {"columns": {"診療科": "categorical", "年齢": "count"}}
    found = explore(table, types, chains=2, warmup=5, draws=4, seed=seed)
    assert plot_exploration(found).axes  # warnings are errors here


def test_texts_that_begin_and_end_alike_are_told_apart() -> None:
    texts = [f"Département n° {i} de la République française" for i in (1, 12)]
    assert distinct([*texts, "Corse"], 60, SMALL) == ["…1…", "…12…", "Corse"]
    scale = ["strongly disagree with it all", "rather agree", "strongly agree with it all"]
    assert distinct(scale, 60, SMALL) == ["…disagree…", "rather agree", "…agree…"]
    assert distinct(["same text of both"] * 2, 40, SMALL)[0].startswith("…")


def alone(seed: int, kind: str, **columns: Any) -> Exploration:
    """Explore columns of one type, with as few draws as can be."""
    options: dict[str, Any] = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    return explore(pa.table(columns), {"rest": kind}, seed=seed, **options)


def test_counts_with_a_long_tail_are_stretched_and_keep_their_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.floor(np.exp(rng.normal(1, 1.6, 300)))
    axes = plot_columns(alone(seed, "count", x=x)).axes[0]
    assert axes.get_xticks()[0] == 0
    seen = axes.patches[0].get_data()  # type: ignore[attr-defined]
    edges = seen.edges + 0.5
    assert (edges == edges.round()).all()  # a count is in one bin
    assert seen.values.sum() >= 0.99
    assert plot_columns(alone(seed, "count", x=x % 9)).axes[0].get_xscale() == "linear"


def test_few_cells_are_all_drawn(seed: int) -> None:
    axes = plot_columns(alone(seed, "real", x=[1.0, 2.0, 9.0])).axes[0]
    seen = axes.patches[0].get_data()  # type: ignore[attr-defined]
    assert (seen.values.size, seen.values.sum()) == (3, pytest.approx(1))  # of three steps each


def test_pseudo_observations_of_counts_fill_their_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = alone(seed, "count", few=rng.poisson(1, 90), many=rng.poisson(300, 90), same=[4] * 90)
    figure = plot_fit(found)
    assert len(figure.axes) == 2  # none for a column whose cells are all equal
    for axes in figure.axes:
        bars = axes.patches[0].get_data()  # type: ignore[attr-defined]
        assert np.sum(bars.values * np.diff(bars.edges)) == pytest.approx(1)
        line = axes.lines[0].get_ydata()
        assert bars.values.max() < 2 * np.max(line)  # on the scale of the density


def test_names_that_differ_at_their_ends_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"a_rather_long_name_of_a_column_of_a_table_{d}" for d in range(14)]
    table = pa.table({name: rng.normal(size=20) for name in names})
    options: dict[str, Any] = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    plain = explore(table, {"rest": "real"}, dependence=True, **options)
    figure = plot_dependence(plain)
    assert overlapping(figure) == []
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == 14
    assert all("…" in label for label in labels)


def test_columns_with_an_atom_have_no_scale_of_the_model_to_be_drawn_on(seed: int) -> None:
    rain = np.random.default_rng(seed).gamma(2.0, 3.0, 120) * (np.arange(120) % 3 > 0)
    plain = alone(seed, "positive", rain=rain, x=rain + 1.0)
    assert [axes.get_title(loc="left") for axes in plot_fit(plain).axes] == ["x"]


@pytest.mark.parametrize("largest", [1e308, 1e-300])
def test_columns_of_any_size_are_drawn(largest: float, seed: int) -> None:
    x = np.random.default_rng(seed).choice([-largest, 0.0, largest, 5.0], 40)
    assert plot_columns(alone(seed, "real", x=x)).axes[0].get_title(loc="left") == "x"


def test_a_column_of_intervals_alone_is_drawn_over_what_they_span(seed: int) -> None:
    x = np.random.default_rng(seed).integers(1, 9, 40)
    cells = [f"{i}-{i + 2}" for i in x]
    options: dict[str, Any] = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    plain = explore(pa.table({"x": cells, "y": x}), {"rest": "real"}, **options)
    low, high = plot_columns(plain, columns=["x"]).axes[0].get_xlim()
    assert x.min() <= low < high <= x.max() + 2


def test_a_few_zeros_do_not_keep_a_long_tail_from_a_log_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(3, 2, 200))
    options: dict[str, Any] = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    for zeros, scale in ((6, "log"), (60, "linear")):
        x[:zeros] = 0
        plain = explore(pa.table({"x": x}), {"rest": "positive"}, **options)
        assert plot_columns(plain).axes[0].get_xscale() == scale


def test_the_dependence_of_a_single_column_is_a_sentence(seed: int) -> None:
    table = pa.table({"x": np.random.default_rng(seed).normal(size=20)})
    options: dict[str, Any] = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    figure = plot_dependence(explore(table, {"rest": "real"}, dependence=True, **options))
    assert [text.get_text() for text in figure.texts] == ["There is only one column."]
