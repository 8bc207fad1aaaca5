"""Rows whose missing cells are drawn given an equation, and laws that these are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats
from scipy.integrate import cumulative_trapezoid

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference.equations import Equations, RowsOfDraw
from glfm_cli.links import Link
from glfm_cli.links.law import CellLaw, NormalMixture

SEEN, N = 400, 1500  # rows that show what columns are like, and rows to be drawn
LOG = {"type": "positive", "transform": "log"}
Row = Mapping[str, float | None]


class Law:
    """One normal a column, the same in every row."""

    def __init__(self, means: Sequence[Array], variances: Sequence[Array]) -> None:
        self.means, self.variances = means, variances

    def column(self, d: int, at: Any) -> CellLaw:
        means = np.tile(self.means[d], (len(at), 1, 1))
        return NormalMixture(np.ones((1, 1)), means, self.variances[d][None, None])


def redraw(
    seen: Mapping[str, Array], types: Mapping[str, Any], row: Row, sd: float, seed: int,
    known: Mapping[str, tuple[float, float]] | None = None, held: Array | None = None,
) -> tuple[dict[str, Array], dict[str, Any]]:  # fmt: skip
    """Return draws (N,) of the cells of a row that are None, and log densities of each column.

    known : what cells are known to lie between
    held : (N,) bool; the rows whose equation has to hold; all if left out
    Latent numbers have mean 0.3, 0 or -0.3 and standard deviation `sd`; noise is part of it.
    """
    cells = {name: [*seen[name].tolist(), *[row[name]] * N] for name in types}
    problem, data, _ = prepare(pa.table(cells), {"columns": dict(types)})
    rng = np.random.default_rng(seed)
    links: Sequence[Link] = problem.links
    params = [link.start(x)[0] for link, x in zip(links, problem.xs, strict=True)]
    sizes = [link.n_latent for link in links]
    means = [np.full(size, 0.3 * (1 - d % 3)) for d, size in enumerate(sizes)]
    # Two-part columns have unit noise.
    law = Law(means, [np.full(s, sd**2 if s == 1 else 1.0) for s in sizes])
    rows = {d: np.arange(N) for d, name in enumerate(types) if row[name] is None}
    found = {d: links[d].sample(law.column(d, at), params[d], rng) for d, at in rows.items()}
    ends = {list(types).index(n): np.tile(pair, (N, 1)) for n, pair in (known or {}).items()}
    for d, pair in ends.items():
        link: Any = links[d]
        found[d] = link.sample_between(law.column(d, rows[d]), params[d], rng, pair)
    block = RowsOfDraw(slice(SEEN, SEEN + N), SimpleNamespace(params=params), law, rows, ends)  # type: ignore[arg-type]
    Equations(data.columns, links).redraw(block, found, rng, held)

    def density(d: int) -> Any:
        return lambda x: links[d].log_density(x, law.column(d, range(x.size)), params[d])

    names = list(types)
    return {names[d]: x for d, x in found.items()}, {n: density(d) for d, n in enumerate(names)}


def check_distribution(x: Array, grid: Array, log_p: Array) -> None:
    """Check draws against an unnormalised log density on a grid."""
    p = np.exp(log_p - np.max(log_p))
    cdf = cumulative_trapezoid(p, grid, initial=0.0)
    assert stats.kstest(x, lambda at: np.interp(at, grid, cdf / cdf[-1])).pvalue > 0.01


def check_counts(times: Array, expected: Array) -> None:
    """Check how often each of some values was drawn."""
    keep = expected > 4
    chi2 = np.sum((times - expected)[keep] ** 2 / expected[keep])
    assert stats.chi2.sf(chi2, keep.sum() - 1) > 0.01


def sums(names: Sequence[str], kind: str) -> dict[str, Any]:
    return {name: {"type": kind, "parts_of": "total"} for name in names} | {"total": kind}
