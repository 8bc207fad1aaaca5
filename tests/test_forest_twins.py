"""Columns that nearly say the same: which they are, and how both of a row are drawn at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestConfig, ForestDraw
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.trees import grow, scaled
from glfm_cli.latent.forest.twins import Alone, draw_group, draw_together, twins_of
from glfm_cli.latent.model import Sizes
from tests.normals import whole_of

pytestmark = pytest.mark.kernels
N = 500


def kinds_of(*levels: int, atom: float = np.nan) -> Kinds:
    """Return columns of numbers, perhaps with an atom, and of unordered levels."""
    of = np.array(levels, dtype=np.int32)
    return Kinds(of, (of > 0).astype(np.uint8), np.full(of.size, atom), np.zeros(of.size))


def twins(z: Array, kinds: Kinds, seen: Array | None = None) -> list[list[int]]:
    there = np.ones(z.shape, dtype=np.uint8) if seen is None else seen
    return [found.tolist() for found in twins_of(z, there, kinds, 0.8)]


def test_a_copy_is_a_twin_of_its_column_and_noise_of_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(N)
    z = np.stack([a, a + 0.1 * rng.standard_normal(N), -a, a + rng.standard_normal(N)])
    assert twins(z, kinds_of(0, 0, 0, 0)) == [[1, 2], [0, 2], [0, 1], []]


def test_of_cells_that_were_not_observed_nothing_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, seen = np.tile(rng.standard_normal(N), (2, 1)), np.ones((2, N), dtype=np.uint8)
    seen[0, ::3], seen[1, ::4] = 0, 0
    z[seen == 0] = np.nan
    assert twins(z, kinds_of(0, 0), seen) == [[1], [0]]
    seen[1, :485] = 0  # fewer than 20 rows have both
    assert twins(z, kinds_of(0, 0), seen) == [[], []]


def test_a_code_is_a_twin_of_its_name_and_a_country_no_twin_of_its_towns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    town = rng.integers(6, size=N)
    z = np.stack([town, (5 * town + 2) % 6, town // 2]).astype(float)
    assert twins(z, kinds_of(6, 6, 3)) == [[1], [0], [0, 1]]


def test_levels_that_are_many_explain_nothing_by_being_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, person = rng.standard_normal(200), rng.permutation(200) % 180
    assert twins(np.stack([y, person.astype(float)]), kinds_of(0, 180)) == [[], []]


def test_levels_are_no_twins_of_a_number_of_which_they_explain_half(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = rng.integers(3, size=N)
    y = of - 1.0 + 0.6 * rng.standard_normal(N)  # 0.65 of its variance
    assert twins(np.stack([y, of.astype(float)]), kinds_of(0, 3)) == [[], []]


@pytest.mark.parametrize("same", [True, False])
def test_twins_are_found_by_rows_that_have_both(seed: int, same: bool) -> None:
    """Rows that lack one of them are far from the others."""
    rng = np.random.default_rng(seed)
    a, e = rng.standard_normal((2, N))
    z, seen = np.stack([5.0 + a, 5.0 + (a if same else e)]), np.ones((2, N), dtype=np.uint8)
    seen[0, :150], seen[1, 150:300] = 0, 0
    z[1, :150] -= 20.0
    z[0, 150:300] -= 20.0
    assert twins(z, kinds_of(0, 0), seen) == ([[1], [0]] if same else [[], []])


def test_a_number_is_a_twin_of_one_that_has_the_same_atom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(N) < 0.4, -2.0, rng.standard_normal(N))
    other = np.where(y == -2.0, -2.0, y + 0.1 * rng.standard_normal(N))
    apart = np.where(rng.random(N) < 0.4, -2.0, y)
    assert twins(np.stack([y, other, apart]), kinds_of(0, 0, 0, atom=-2.0)) == [[1], [0], []]


def together(
    kind: str, seed: int, gone: int = 100
) -> tuple[Array, Array, Kinds, Array, np.random.Generator]:
    """Return a pair, a column that forecasts it, and a start far from both laws."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(N)
    if kind == "numbers":
        a = 0.8 * x + 0.6 * rng.standard_normal(N)
        pair, kinds = [a, 2.0 * a + 0.05 * rng.standard_normal(N)], kinds_of(0, 0, 0)
    else:
        a = (x + 0.5 * rng.standard_normal(N) > 0.0).astype(float) + 2.0 * (np.arange(N) % 2)
        pair, kinds = [a, 3.0 - a], kinds_of(4, 4, 0)
    z, seen = np.stack([*pair, x]), np.ones((3, N), dtype=np.uint8)
    seen[:2, :gone] = 0
    z[:2, :gone] = 0.0
    return z.astype(np.float32).astype(float), seen, kinds, x[:gone], rng


@pytest.mark.parametrize("linear", [0, 1])
def test_both_numbers_of_a_row_are_drawn_from_their_joint_law(seed: int, linear: int) -> None:
    z, seen, kinds, x, rng = together("numbers", seed)
    lines = np.array([linear, linear, 0], dtype=np.uint8)
    least, before = np.full(3, 3), z.copy()
    draws = []
    for _ in range(60):
        once = 0, np.array([1]), lines, least, ForestConfig(), rng
        draw_together(z, seen, kinds, *once)
        draws.append(z[:2, :100].copy())
    a, b = np.array(draws).transpose(1, 0, 2)
    assert np.sqrt(np.mean((b - 2.0 * a) ** 2)) == pytest.approx(0.05, abs=0.015)
    assert np.polyfit(x, a.mean(axis=0), 1)[0] == pytest.approx(0.8, abs=0.1)
    assert np.sqrt(np.mean((a - 0.8 * x) ** 2)) == pytest.approx(0.6, abs=0.08)
    moved = a - a.mean(axis=0)
    assert abs(np.mean(moved[1:] * moved[:-1]) / np.mean(moved**2)) < 0.1
    z[:2, :100] = before[:2, :100]
    assert z.tolist() == before.tolist()  # nothing else has changed


def test_lines_reach_where_no_donor_is(seed: int) -> None:
    z, seen, kinds, _, rng = together("numbers", seed)
    z[2, :100] = 4.0
    lines = np.array([1, 1, 0], dtype=np.uint8)
    draw_together(z, seen, kinds, 0, np.array([1]), lines, np.full(3, 3), ForestConfig(), rng)
    assert np.mean(z[0, :100]) == pytest.approx(3.2, abs=0.6)
    assert np.mean(z[1, :100]) == pytest.approx(6.4, abs=1.2)


def test_both_levels_of_a_row_are_those_of_one_donor(seed: int) -> None:
    z, seen, kinds, x, rng = together("levels", seed)
    none, hits = np.zeros(3, dtype=np.uint8), []
    for _ in range(20):
        once = 0, np.array([1]), none, np.full(3, 3), ForestConfig(), rng
        draw_together(z, seen, kinds, *once)
        assert (z[1] == 3.0 - z[0]).all()
        hits.append(np.mean((z[0, :100] % 2 == 1) == (x > 0.0)))
    assert np.mean(hits) > 0.75


def test_rows_that_have_a_twin_are_left_as_they_are(seed: int) -> None:
    z, seen, kinds, _, rng = together("numbers", seed)
    seen[1, :50] = 1
    before = z.copy()
    once = 0, np.array([1]), np.zeros(3, dtype=np.uint8), np.full(3, 3), ForestConfig(), rng
    draw_together(z, seen, kinds, *once)
    changed = (z != before).any(axis=0)
    assert not changed[:50].any()
    assert changed[50:100].mean() > 0.9
    assert not changed[100:].any()


def test_what_a_donor_was_drawn_to_leave_over_counts_where_it_was_not_observed(seed: int) -> None:
    """Where the donor lacks the twin, its drawn cell gives what is left over."""
    z, seen, kinds, _, rng = together("numbers", seed)
    seen[1, 100:400] = 0
    once = 0, np.array([1]), np.array([1, 1, 0], dtype=np.uint8), np.full(3, 3), ForestConfig(), rng
    draw_together(z, seen, kinds, *once)
    off = z[1, :100] - 2.0 * z[0, :100]
    assert np.isfinite(off).all()
    assert np.std(off) < 0.15


@pytest.fixture(scope="module")
def drawn() -> ForestDraw:
    """Return a draw of a pair and what forecasts it, a tenth lacking both, others one of them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    a = 0.8 * x + 0.6 * rng.standard_normal(300)
    i = np.arange(300)
    cells = {"a": (a, i < 60), "b": (2.0 * a, (i < 30) | ((i >= 60) & (i < 90)))}
    table = pa.table({name: pa.array(y, mask=gone) for name, (y, gone) in cells.items()} | {"x": x})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "abx"}}
    chain = chains.start(prepare(table, types, model="forest")[0], 1, 0)
    for _ in range(5):
        chain.sweep(adapt=True)
    found: ForestDraw = chain.keep().latent
    assert [one.tolist() for one in found.alone.twins] == [[1], [0], []]
    return found


def line_of(draw: ForestDraw) -> tuple[float, float, float]:
    """Return what the first column is on the third, and the sd of what is left over."""
    a, x = draw.z[0, 60:], draw.z[2, 60:]
    slope, middle = np.polyfit(x, a, 1)
    return slope, middle, float(np.std(a - middle - slope * x))


def normal(draw: ForestDraw, d: int) -> tuple[Array, Array]:
    mean, var = whole_of(ForestLaw(draw, np.arange(300)).column(d))
    return mean[:, 0], np.sqrt(var[:, 0])


def test_what_was_drawn_of_twins_tells_nothing_of_a_cell(drawn: ForestDraw) -> None:
    """Nor of an observed one, by which they were drawn; what is known of a twin does."""
    z = drawn.z.copy()
    z[1] += 1.0
    other = replace(drawn, z=z)
    (mean, sd), (moved, _) = normal(drawn, 0), normal(other, 0)
    slope, middle, left = line_of(drawn)
    for rows in (slice(30), slice(60, 90)):
        assert moved[rows].tolist() == mean[rows].tolist()
        assert np.mean(sd[rows]) == pytest.approx(left, rel=0.3)
    assert (moved[30:60] > mean[30:60] + 0.1).all()
    assert sd[30:60].max() < 0.5 * left
    assert np.std(mean[:30] - middle - slope * drawn.z[2, :30]) < 0.5 * left


def test_widths_of_forecasts_by_twins_are_found_where_there_are_twins(drawn: ForestDraw) -> None:
    """By all observed cells, those forecast by what was drawn of them would count."""
    found = drawn.trees, drawn.z, drawn.seen, drawn.kinds, drawn.prior, drawn.lines
    told = drawn.seen != 0
    told[0, 60:90], told[1, 30:60] = False, False
    right = scaled(*found, told)
    assert drawn.trees.scale[:2].tolist() == right.scale[:2].tolist()
    assert drawn.trees.scale[:2].tolist() != scaled(*found).scale[:2].tolist()


def test_widths_are_found_where_some_cells_lack_a_twin() -> None:
    """Cells without a twin are donors of the others, whose forecasts were once no numbers."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(400)
    z, gone = np.stack([a, a + 0.3 * rng.standard_normal(400)]), rng.random((2, 400)) < 0.2
    table = pa.table({name: pa.array(z[d], mask=gone[d]) for d, name in enumerate("ab")})
    types = {"columns": {key: {"type": "real", "transform": "none"} for key in "ab"}}
    chain = chains.start(prepare(table, types, model="forest")[0], 1, 0)
    for _ in range(5):
        chain.sweep(adapt=True)
    found: ForestDraw = chain.keep().latent
    assert [one.tolist() for one in found.alone.twins] == [[1], [0]]
    assert (found.trees.scale != 1.0).all()
    assert (found.trees.slope != 1.0).all()


def test_laws_of_some_rows_share_what_is_known_of_whole_columns(drawn: ForestDraw) -> None:
    """Else every block of rows would look at all rows of the fit."""
    first = replace(drawn, wholes={})
    (mean, _), known = normal(first, 0), dict(first.wholes)
    again = first.again(np.arange(5), np.random.default_rng(0))
    ForestLaw(again, np.arange(5)).column(0)
    assert all(again.wholes[of] is known[of] for of in known)
    assert 1 <= len(known) <= 2  # beside twins, and without them
    assert normal(drawn, 0)[0].tolist() == mean.tolist()


def test_forecasts_without_twins_have_lines_and_widths_of_their_own(drawn: ForestDraw) -> None:
    alone = drawn.alone
    assert ((alone.lines.place >= 0) == (drawn.lines.place >= 0))[:2].all()
    assert (alone.lines.place >= 0).any()
    there = drawn.seen * np.array([[1], [1], [0]], dtype=np.uint8)
    right = scaled(alone.trees, drawn.z, there, drawn.kinds, drawn.prior, alone.lines)
    assert alone.trees.scale.tolist() == right.scale.tolist()
    assert alone.trees.scale[0] != 1.0


def test_a_row_with_one_of_two_twins_is_no_row_without() -> None:
    known = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]], dtype=np.uint8)
    none = Alone.none(kinds_of(0, 0, 0))
    both = replace(none, twins=[np.array([1, 2]), np.array([0]), np.array([], dtype=int)])
    found = [both.rows(d, known).tolist() for d in range(3)]
    assert found == [[True, False, False, True], [True, True, False, True], [False] * 4]


def test_lines_see_a_column_as_it_was_while_its_donors_are_drawn(seed: int) -> None:
    z, seen, kinds, _, rng = together("numbers", seed)
    trees = grow(z, seen, kinds, [0], 4, 0, np.full(3, 3), ForestConfig(), rng)
    lines = Lines.fit(z, seen, kinds, [1], rng)  # on the column that is drawn, too
    draw_group(z, kinds, 0, np.array([0, 1]), np.arange(100), z.copy(), trees, 0, lines, rng)
    assert np.abs(z[1, :100]).max() < 1.0  # around twice the 0 that the first column was


def test_joint_draws_of_twins_agree(drawn: ForestDraw) -> None:
    again = drawn.again(np.arange(30), np.random.default_rng(0)).z
    off = drawn.z[1, 30:] - np.polyval(np.polyfit(*drawn.z[:2, 90:], 1), drawn.z[0, 30:])
    new = again[1] - np.polyval(np.polyfit(*drawn.z[:2, 90:], 1), again[0])
    assert np.std(new) < 0.2 + 2.0 * np.std(off)
    assert np.std(again[0]) > 0.5


def test_joint_draws_of_twins_are_as_wide_as_their_law(drawn: ForestDraw) -> None:
    """From what was drawn of the other, each of one kept draw would hardly move."""
    rng, (_, sd) = np.random.default_rng(0), normal(drawn, 0)
    z = np.array([drawn.again(np.arange(30), rng).z[0] for _ in range(40)])
    assert np.mean(np.std(z, axis=0)) == pytest.approx(np.mean(sd[:30]), rel=0.3)


def test_new_rows_that_have_neither_are_drawn_by_their_joint_law(drawn: ForestDraw) -> None:
    x = np.concatenate([np.linspace(-2.0, -0.5, 200), np.linspace(0.5, 2.0, 200)])
    slope, middle, left = line_of(drawn)
    new = np.stack([np.full(400, np.nan), np.full(400, np.nan), x])
    nobody = np.full(400, -1, dtype=np.int32)
    z = drawn.folded(new, nobody, {}, 1, np.random.default_rng(1)).z
    for part in (x < 0.0, x > 0.0):
        off = z[0, part] - middle - slope * x[part]
        assert np.mean(off) == pytest.approx(0.0, abs=0.4 * left)
        assert np.std(off) == pytest.approx(left, rel=0.3)
    assert np.std(z[1] - np.polyval(np.polyfit(*drawn.z[:2, 90:], 1), z[0])) < 0.4 * left


def test_draws_come_back_with_what_forecasts_cells_without_their_twins(drawn: ForestDraw) -> None:
    sizes, packed = Sizes(300, 3, ((0, 1), (1, 2), (2, 3))), dict(drawn.pack())
    again = ForestDraw.unpack(packed, sizes)
    for one, other in zip(normal(drawn, 0), normal(again, 0), strict=True):
        assert one.tolist() == other.tolist()
    assert [one.tolist() for one in again.alone.twins] == [[1], [0], []]
    packed["twins"] = np.array([[0, 0]], dtype=np.int32)
    with pytest.raises(ValueError, match="'twins' are no columns"):
        ForestDraw.unpack(packed, sizes)


def test_new_rows_that_have_neither_start_from_donors_of_both() -> None:
    """They hardly leave their start: of one start, all would be alike."""
    a = np.random.default_rng(0).standard_normal(300)
    table = pa.table({"a": a, "b": pa.array(a, mask=np.arange(300) < 30)})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "ab"}}
    chain = chains.start(prepare(table, types, model="forest")[0], 1, 0)
    for _ in range(5):
        chain.sweep(adapt=True)
    nobody = np.full(400, -1, dtype=np.int32)
    z = chain.keep().latent.folded(
        np.full((2, 400), np.nan), nobody, {}, 2, np.random.default_rng(1)
    ).z
    assert np.std(z[0]) == pytest.approx(1.0, abs=0.15)
    assert np.std(z[0] - z[1]) < 0.2


def test_chains_hardly_move_where_twins_are_drawn_in_turn() -> None:
    """How much of what a draw is off its mean is left four steps later."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    a = 0.8 * x + 0.6 * rng.standard_normal(300)
    gone = np.arange(300) < 45
    cells = {"a": (a, gone), "b": (a + 0.02 * rng.standard_normal(300), gone)}
    table = pa.table({name: pa.array(y, mask=at) for name, (y, at) in cells.items()} | {"x": x})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "abx"}}
    left = {}
    for share in (0.8, 1.0):
        problem = prepare(table, types, model="forest", settings={"together": share})[0]
        chain, draws = chains.start(problem, 1, 0), []
        for step in range(60):
            chain.sweep(adapt=True)
            if step >= 20 and step % 4 == 0:
                draws.append(chain.state.z[0, :45].copy())
        off = np.array(draws) - np.mean(draws, axis=0)
        left[share] = np.mean(off[1:] * off[:-1]) / np.mean(off**2)
    assert left[0.8] < 0.1
    assert left[1.0] > 0.4
