"""Figures show what is in the completion, whatever the table holds, and always the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from glfm_cli import Completion, impute, plot_completion
from glfm_cli.cli.app import run
from glfm_cli.cli.console import Console
from glfm_cli.errors import OutputError
from glfm_cli.plots.completion import MAX_PANELS
from glfm_cli.plots.factors import LABEL, _apart
from glfm_cli.plots.panels import MAX_LEVELS, edges_of

FAST: dict[str, Any] = {"chains": 1, "warmup": 3, "draws": 4, "threads": 1}
MAGIC = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF"}


def completed(columns: dict[str, list[Any]], types: dict[str, Any], **options: Any) -> Completion:
    return impute(pa.table(columns), {"columns": types}, **{**FAST, **options})


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def words(figure: Figure) -> list[str]:
    """Return every text of a figure, panel by panel."""
    found = [text.get_text() for axes in panels(figure) for text in axes.texts]
    found += [axes.get_title(loc="left") for axes in panels(figure)]
    return found + [text.get_text() for text in figure.texts]


def bars(axes: Axes) -> np.ndarray:
    """Return the lengths of the bars of a level panel: observed above predicted."""
    return np.array([[bar.get_width() for bar in group] for group in axes.containers])


@pytest.fixture(scope="module")
def airquality() -> Completion:
    folder = Path(__file__).parent.parent / "sample_data"
    return impute(folder / "airquality.csv", folder / "airquality.types.yaml", **FAST)


@pytest.fixture(scope="module")
def grades() -> Completion:
    grade = ["low", "mid", "high", "mid", None, None, "mid", "low"]
    types = {"grade": {"type": "ordinal", "levels": ["low", "mid", "high"]}}
    return completed({"grade": grade}, types)


# What is shown -------------------------------------------------------------------------------


def test_a_panel_says_how_much_was_missing_and_what_the_column_means(
    airquality: Completion,
) -> None:
    found = words(plot_completion(airquality))
    assert found == [
        "Ozone: 37 missing, 24 %",
        "Solar.R: 7 missing, 5 %",
        "Mean ozone from 13 to 15 h (ppb)",
        "Solar radiation from 8 to 12 h (langley)",
    ]


def test_the_histogram_and_the_line_are_shares_of_cells(airquality: Completion) -> None:
    observed, predicted = (
        patch.get_data().values for patch in panels(plot_completion(airquality))[0].patches
    )
    assert observed.sum() == pytest.approx(1.0)
    assert 0.98 <= predicted.sum() <= 1.0


def test_the_line_of_a_formula_is_that_of_cells_that_obey_it() -> None:
    """A square follows from its root alone: nothing below 0, nor far from what is put in."""
    root = np.linspace(-3.0, 3.0, 90)
    square = [None if i % 3 else x**2 for i, x in enumerate(root)]
    types = {"root": "real", "square": {"type": "real", "formula": "root**2", "transform": "none"}}
    done = completed({"root": root.tolist(), "square": square}, types, model="bsvd")
    (part,) = [one for one in done.columns if one.estimate.size]
    np.testing.assert_allclose(part.estimate, root[part.marginal.rows] ** 2)
    line = panels(plot_completion(done))[0].patches[1].get_data()
    shares = np.histogram(part.estimate, line.edges)[0] / part.estimate.size
    np.testing.assert_allclose(line.values, shares, atol=1e-12)


def test_the_histogram_counts_the_observed_cells(airquality: Completion) -> None:
    data = panels(plot_completion(airquality))[0].patches[0].get_data()
    x = airquality.columns[0].encoded.x
    counts = np.histogram(x[~np.isnan(x)], data.edges)[0]
    np.testing.assert_allclose(data.values * counts.sum(), counts)


def test_every_value_put_in_has_its_tick(airquality: Completion) -> None:
    ticks = panels(plot_completion(airquality))[0].lines[0].get_xdata()
    np.testing.assert_array_equal(np.sort(ticks), np.sort(airquality.columns[0].estimate))


def test_bars_are_the_observed_shares_and_the_mean_probabilities(grades: Completion) -> None:
    observed, predicted = bars(panels(plot_completion(grades))[0])
    np.testing.assert_allclose(observed, [2 / 6, 3 / 6, 1 / 6])
    probabilities = grades.columns[0].marginal.probabilities
    assert probabilities is not None
    np.testing.assert_allclose(predicted, probabilities.mean(axis=0))


def test_the_lowest_level_stands_on_top(grades: Completion) -> None:
    axes = panels(plot_completion(grades))[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["low", "mid", "high"]
    assert axes.yaxis_inverted()


def test_the_most_incomplete_columns_come_first_and_the_rest_is_counted() -> None:
    n = MAX_PANELS + 2
    columns = {f"x{j}": [None] * (j + 1) + [1.0] * (n - j) for j in range(n)}
    figure = plot_completion(completed(columns, {"x*": "real"}))
    titles = [axes.texts[0].get_text().partition(":")[0] for axes in panels(figure)]
    assert titles == [f"x{j}" for j in reversed(range(2, n))]
    assert figure.get_supxlabel().startswith("2 more columns")


def test_a_skewed_positive_column_gets_a_logarithmic_axis() -> None:
    values = [float(v) for v in np.geomspace(1, 1e4, 40)]
    types = {"x": {"type": "positive", "transform": "log"}}
    axes = panels(plot_completion(completed({"x": [*values, None]}, types)))[0]
    assert axes.get_xscale() == "log"
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) >= 3
    assert set(labels) <= {"0.01", "0.1", "1", "10", "100", "1000", "10000", "100000", "1e+06"}


@pytest.mark.parametrize(
    ("cells", "kind", "labels"),
    [
        (["2020-01-05", "2020-06-30", "2020-12-20", None], "date", {"May", "Sep", "2021"}),
        (["1:00", "2:30", "5:10", "6:00", None], "duration", {"3:00", "5:00"}),
        (["0:00:30", "0:01:00", "0:01:45", None], "duration", {"0:00:30", "0:01:30"}),
    ],
)
def test_dates_and_durations_are_labelled_as_such(
    cells: list[Any], kind: str, labels: set[str]
) -> None:
    axes = panels(plot_completion(completed({"x": cells}, {"x": kind})))[0]
    axes.figure.canvas.draw()
    assert labels <= {label.get_text() for label in axes.get_xticklabels()}


def test_bins_of_counts_are_centred_on_whole_numbers() -> None:
    axes = panels(plot_completion(completed({"n": [0, 1, 1, 2, 5, None]}, {"n": "count"})))[0]
    edges = axes.patches[0].get_data().edges
    np.testing.assert_array_equal(edges - 0.5, np.round(edges - 0.5))


@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
def test_many_levels_share_bars_and_lose_no_cell(kind: str) -> None:
    levels = [str(i) for i in range(30)]
    types = {"c": {"type": kind, "levels": levels}}
    axes = panels(plot_completion(completed({"c": [*levels, "3", "3", None]}, types)))[0]
    lengths = bars(axes)
    assert lengths.shape == (2, MAX_LEVELS)
    np.testing.assert_allclose(lengths.sum(axis=1), 1.0)
    expected = {"categorical": "23 others", "ordinal": "26 to 29"}[kind]
    assert axes.get_yticklabels()[-1].get_text() == expected


def test_cells_that_turn_out_to_have_no_value_are_not_drawn() -> None:
    """Whether a person works is completed, too: of those who do not the hours stay empty."""
    works = ["yes", "no", "no", "no", None] * 12
    hours = [30.0 + i % 9 if one == "yes" and i % 25 else None for i, one in enumerate(works)]
    types = {"works": "categorical", "hours": {"type": "positive", "only_if": 'works == "yes"'}}
    found = completed({"works": works, "hours": hours}, types)
    (part,) = (one for one in found.columns if one.encoded.column.name == "hours")
    assert 0 < part.estimate.size < hours.count(None) - works.count("no")
    assert f"hours: {part.estimate.size} missing" in " ".join(words(plot_completion(found)))


def test_a_table_without_gaps_gives_a_figure_that_says_so() -> None:
    figure = plot_completion(completed({"x": [1.0, 2.0]}, {"x": "real"}))
    assert words(figure) == ["There was nothing to complete."]


# What a table may hold -----------------------------------------------------------------------

NUMBERS = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
)


@given(st.lists(NUMBERS, min_size=3, max_size=8).filter(lambda x: any(v is not None for v in x)))
@settings(max_examples=8)
def test_any_numbers_can_be_drawn(values: list[float | None]) -> None:
    completion = completed({"x": [*values, None]}, {"x": "real"})
    figure = plot_completion(completion)
    figure.canvas.draw()
    assert len(panels(figure)) == 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1e-300, 1.0, 1e300], "positive"),
        ([5e-324, 1e-320], "positive"),
        ([0.0, 0.0, 3.0], "positive"),
        ([7.0], "real"),
        ([-1.7e308, 1.7e308], "real"),
        ([1e9, 1e9 + 1e-6], "real"),
        ([0, 2**53], "count"),
        ([0, 0, 0], "count"),
    ],
)
def test_extreme_columns_can_be_drawn(values: list[float], kind: str) -> None:
    figure = plot_completion(completed({"x": [*values, None]}, {"x": kind}))
    figure.canvas.draw()
    low, high = panels(figure)[0].get_xlim()
    assert np.isfinite([low, high]).all()
    assert low < high


@pytest.mark.parametrize(
    "name", ["$a_b$ \\frac", "日本語 " * 20, "x" * 300, "two\nlines", "%s {} _"]
)
def test_names_levels_and_labels_are_shown_as_they_are(name: str, tmp_path: Path) -> None:
    types = {name: {"type": "categorical", "label": name, "unit": name}}
    completion = completed({name: [name, "b", None]}, types)
    figure = plot_completion(completion, tmp_path / "figure.png")
    start = " ".join(name.split())[:5]
    assert words(figure)[0].startswith(start)
    labels = [label.get_text() for label in panels(figure)[0].get_yticklabels()]
    heads = [label.partition("…")[0] for label in labels]  # long ones are cut in the middle
    assert any(head and " ".join(name.split()).startswith(head) for head in heads)


@pytest.mark.parametrize("letter", ["i", "e", "W", "日"])
def test_long_names_leave_room_to_draw(letter: str, tmp_path: Path) -> None:
    names = [letter * 60, letter * 61]
    columns = {name: [letter * 30, "b", "b", None] for name in names}
    completion = completed(columns, dict.fromkeys(names, "categorical"))
    figure = plot_completion(completion, tmp_path / "figure.png")
    first, second = panels(figure)
    assert first.texts[0].get_window_extent().x1 < second.texts[0].get_window_extent().x0
    assert first.bbox.width > 0.25 * figure.bbox.width


def test_nothing_is_written_outside_the_figure_or_over_other_text(
    airquality: Completion, grades: Completion
) -> None:
    for completion in (airquality, grades):
        figure = plot_completion(completion)
        figure.canvas.draw()
        texts = [
            text for axes in panels(figure) for text in (*axes.texts, axes.title, axes._left_title)
        ]
        boxes = [text.get_window_extent() for text in texts if text.get_text().strip()]
        boxes += [figure.legends[0].get_window_extent()]
        frame = figure.bbox
        assert all(frame.x0 <= b.x0 and b.x1 <= frame.x1 for b in boxes)
        assert all(frame.y0 <= b.y0 and b.y1 <= frame.y1 for b in boxes)
        overlaps = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
        assert overlaps == []


# Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", sorted(MAGIC))
def test_the_suffix_chooses_the_format_and_the_bytes_repeat(
    suffix: str, grades: Completion, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{name}{suffix.upper()}" for name in ("a", "b")]
    for path in paths:
        plot_completion(grades, path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(MAGIC[suffix])
    assert first == second


def test_a_png_is_light_and_large_enough_to_read(grades: Completion, tmp_path: Path) -> None:
    plot_completion(grades, tmp_path / "figure.png")
    pixels = imread(tmp_path / "figure.png")
    assert pixels.shape[1] >= 700
    np.testing.assert_array_equal(pixels[0, 0], 1.0)


def test_settings_of_the_user_are_neither_used_nor_changed(
    grades: Completion, tmp_path: Path
) -> None:
    import matplotlib

    plot_completion(grades, tmp_path / "a.png")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        plot_completion(grades, tmp_path / "b.png")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.png.gz", "-"])
def test_another_suffix_is_refused(name: str, grades: Completion, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=re.escape(".png, .svg, .pdf")):
        plot_completion(grades, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(grades: Completion, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="folder"):
        plot_completion(grades, tmp_path / "nowhere" / "figure.png")


# The command ---------------------------------------------------------------------------------


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sample_data: Path) -> Command:
    """Run `glfm impute` on airquality with few draws and more arguments; status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    data, types = (str(sample_data / f"airquality{end}") for end in (".csv", ".types.yaml"))
    short = ["--chains", "1", "--warmup", "3", "--draws", "4", "-q"]

    def run_command(*more: str) -> tuple[int, str, str]:
        console = Console(stdout=io.StringIO(), stderr=io.StringIO())
        status = run(["impute", data, "--types", types, *short, *more], console)
        return status, console.stdout.getvalue(), console.stderr.getvalue()

    return run_command


def test_the_command_draws_the_figure_and_completes_the_table(
    command: Command, airquality: Completion, tmp_path: Path
) -> None:
    assert command("-o", "completed.csv", "--plot", "figure.svg") == (0, "", "")
    plot_completion(airquality, tmp_path / "expected.svg")
    assert (tmp_path / "figure.svg").read_bytes() == (tmp_path / "expected.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("figure.jpg", "figure.jpg: the name does not tell the figure's format"),
        ("nowhere/figure.png", "nowhere/figure.png: cannot be written"),
        ("completed.csv", "completed.csv: --plot and --output name the same file"),
    ],
)
def test_the_command_refuses_a_figure_it_cannot_write_before_it_samples(
    command: Command, tmp_path: Path, name: str, problem: str
) -> None:
    status, _, said = command("-o", "completed.csv", "--plot", name, "--draws", "1000000000")
    assert status == 2
    assert said.startswith(f"Error: {problem}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [0.1, 1.0, 5.0])
def test_bins_of_rounded_values_hold_as_many_steps_each(step: float) -> None:
    seen = step * np.arange(3, 80)
    wide = np.linspace(seen[0] - 2.3 * step, seen[-1] + 0.4 * step, 500)
    edges = edges_of(seen, wide, seen, whole=False, logarithmic=False, n_bins=24)
    assert edges[0] < wide[3]
    assert edges[-1] > wide[-3]
    assert 12 < edges.size <= 25
    counts = np.histogram(seen, edges)[0]
    assert set(counts[1:-1]) == {4}
    exact = np.random.default_rng(0).normal(size=50)
    assert edges_of(exact, exact, exact, whole=False, logarithmic=False, n_bins=24).size == 25


def test_names_of_components_that_lie_on_each_other_do_not_cover_one_another(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(0.0, 60.0, size=(12, 2))
    down = np.array(_apart(points))
    assert down[0] == 0.0
    at = points - np.column_stack([np.zeros(12), down])
    x, y = (np.abs(at[:, None, i] - at[None, :, i]) for i in range(2))
    assert np.all((x >= LABEL[0]) | (y >= LABEL[1] - 1e-9) | np.eye(12, dtype=bool))
    assert _apart(np.array([[0.0, 0.0], [200.0, 0.0], [0.0, 50.0]])) == [0.0, 0.0, 0.0]
