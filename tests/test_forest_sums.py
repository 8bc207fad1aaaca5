"""Columns that some others say together: which they are, and how rows that lack some are drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.sums import with_sums
from glfm_cli.latent.forest.twins import ROWS, twins_of

pytestmark = pytest.mark.kernels
N = 400
TEXTURE = ("clay", "silt", "sand")


def found(z: Array, seen: Array, share: float = 0.8, levels: int = 0) -> list[list[int]]:
    """Return the twins of columns of numbers; the last has levels if asked for."""
    of = np.zeros(len(z), dtype=np.int32)
    of[-1] = levels
    kinds = Kinds(of, (of > 0).astype(np.uint8), np.full(of.size, np.nan), np.zeros(of.size))
    there = seen.astype(np.uint8)
    z = np.where(seen, z, np.nan)
    twins = with_sums(twins_of(z, there, kinds, share), z, there, kinds, share)
    return [one.tolist() for one in twins]


def parts(seed: int) -> tuple[Array, Array]:
    """Return parts of 100, a column of noise and one of noise on the first; all cells seen."""
    a, b, e, f = np.random.default_rng(seed).standard_normal((4, N))
    z = np.stack([a, b, 100.0 - a - b, e, a + f])
    return z, np.ones(z.shape, dtype=bool)


def test_parts_of_a_sum_are_drawn_with_those_that_their_rows_lack(seed: int) -> None:
    z, seen = parts(seed)
    assert found(z, seen) == [[]] * 5  # no row lacks any
    seen[:3, :60] = False
    assert found(z, seen) == [[1, 2], [0, 2], [0, 1], [], []]
    seen[0] = True
    assert found(z, seen) == [[], [2], [1], [], []]
    seen[2] = True
    seen[3:, :60] = False
    assert found(z, seen) == [[]] * 5  # of the parts each row lacks one at most


def test_what_rows_lack_most_often_counts(seed: int) -> None:
    z, seen = parts(seed)
    seen[:3, :30], seen[:2, 30:90], seen[0, 90:200] = False, False, False
    assert found(z, seen)[0] == [1]


def test_where_one_column_alone_is_a_twin_no_others_are(seed: int) -> None:
    z, seen = parts(seed)
    z[4] = z[0] + 0.4 * z[3]
    seen[:, :60] = False
    assert found(z, seen)[0] == [4]
    assert found(z, seen, share=1.0) == [[]] * 5


@pytest.mark.parametrize(("noise", "unit", "said"), [(0.1, 100.0, [1, 2]), (1.0, 0.01, [])])
def test_columns_that_leave_much_say_nothing(
    seed: int, noise: float, unit: float, said: list[int]
) -> None:
    z, seen = parts(seed)
    z[2] += noise * z[3]
    z[3] = np.random.default_rng(seed + 1).standard_normal(N)
    seen[:3, :60] = False
    assert found(unit * z, seen)[0] == said


def test_a_column_that_the_others_need_not_is_none_of_them(seed: int) -> None:
    """It explains most at first, and nothing beside those that come after it."""
    z, seen = parts(seed)
    z[4] = z[2] + 0.9 * z[3]
    z[3] = np.random.default_rng(seed + 1).standard_normal(N)
    seen[:, :60] = False
    assert found(z, seen)[2] == [0, 1]


def test_levels_are_no_parts_and_few_rows_tell_nothing(seed: int) -> None:
    z, seen = parts(seed)
    z, seen = z[:3], seen[:3]
    seen[:, :60] = False
    assert found(z, seen, levels=3)[:2] == [[], []]
    for d in range(3):  # 19 rows have all, many have two
        seen[d, 79 + 100 * d : 179 + 100 * d] = False
    seen[:, 379:] = False
    assert found(z, seen) == [[]] * 3


def test_a_column_may_be_seen_beside_the_rows_that_are_looked_at_alone(seed: int) -> None:
    """Of many rows some are looked at, every second here."""
    n = ROWS + 2
    z = np.random.default_rng(seed).standard_normal((3, n))
    seen = np.ones((3, n), dtype=bool)
    seen[:, :60] = False
    seen[2] = np.arange(n) == 1
    assert found(z, seen) == [[]] * 3


def texture(seed: int) -> tuple[pa.Table, dict[str, Array], Array]:
    """Return a table a quarter of whose rows lack all three parts, these, and which rows lack them.

    The site tells of clay and sand, each with noise of its own.
    """
    rng = np.random.default_rng(seed)
    site, gone = rng.standard_normal(N), rng.random(N) < 0.25
    clay, sand = 25 + 6 * site + rng.normal(0, 4, N), 45 - 7 * site + rng.normal(0, 5, N)
    cells = dict(zip(TEXTURE, (clay, 100 - clay - sand, sand), strict=True))
    columns = {name: pa.array(x, mask=gone) for name, x in cells.items()}
    return pa.table(columns | {"site": site, "total": np.full(N, 100.0)}), cells, gone


@pytest.mark.parametrize("of_total", [False, True])
def test_rows_without_any_part_have_honest_intervals(seed: int, of_total: bool) -> None:
    """Drawn in turn, 95 % intervals held half of them, and errors were a third larger."""
    table, cells, gone = texture(seed)
    part = {"type": "real", "parts_of": "total"} if of_total else {"type": "real"}
    types = {
        "columns": dict.fromkeys(TEXTURE, part) | {"total": {"type": "real", "role": "predictor"}},
        "rest": "real",
    }
    done = impute(table, types, model="forest", seed=seed, threads=1, effort="quick", chains=4)
    inside, errors = [], []
    for one in done.columns:
        if (name := one.encoded.column.name) in TEXTURE:
            low, _, high = one.marginal.quantiles.T
            truth = cells[name][gone]
            inside.append(np.mean((low <= truth) & (truth <= high)))
            errors.append(np.sqrt(np.mean((one.marginal.mean - truth) ** 2)))
    assert np.mean(inside) > 0.8
    assert errors[1] < 7.7  # of silt; the noise has an sd of 6.4
