"""Cells that are missing by their own value: the link, what it draws, and completed tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from glfm_cli import Files, classify, impute
from glfm_cli.completion.models import Asked, named
from glfm_cli.encoding import encode
from glfm_cli.errors import SchemaError
from glfm_cli.links import LinkConfig, Params, make_link
from glfm_cli.links.law import NormalMixture
from glfm_cli.links.selection import PRIOR_SD, draw_unseen, log_missing
from glfm_cli.options import Sampling
from glfm_cli.schema import Schema

SEEN = [2.0, 0.4, 1.1, 0.2, 1.9, 0.9, 0.1, 1.4]
ETA = np.array([-1.5, -0.3, 0.2, -0.8])
VAR = 0.5


def link_of(cells: list[str], **more: object):
    """Return the link of a column of such cells, and what it sees of them."""
    entry = {"type": "real", "missingness": "probit", **more}
    encoded = encode(pa.table({"y": cells}), Schema.from_dict({"columns": {"y": entry}})).columns[0]
    return make_link(encoded, LinkConfig()), encoded.cells


def exact(y: np.ndarray) -> np.ndarray:
    """Return E[a, b, c] and E[y] of the missing cells given eta, by sums over a grid."""
    t = (np.arange(90) + 0.5) / 90
    a, b = np.meshgrid(*2 * [stats.norm.ppf(t) * PRIOR_SD], indexing="ij")
    c = stats.beta.ppf((np.arange(30) + 0.5) / 30, 1.0, 9.0)[:, None, None]
    log_p = y.size * np.log1p(-c) + log_ndtr(a + b * y[:, None, None]).sum(axis=0)
    total = 1.0 + b * b * VAR
    means = []
    for eta in ETA:
        at = -(a + b * eta) / np.sqrt(total)
        lost = (1.0 - c) * ndtr(at)
        log_p = log_p + np.log(c + lost)
        mills = np.exp(-0.5 * at * at - 0.5 * np.log(2 * np.pi) - log_ndtr(at))
        means.append(eta - lost / (c + lost) * b * VAR / np.sqrt(total) * mills)
    p = np.exp(log_p - log_p.max())
    return np.array([np.sum(p * v) / p.sum() for v in (a, b, c, *means)])


def test_curve_and_missing_cells_follow_their_exact_posterior(seed: int) -> None:
    link, x = link_of([str(v) for v in SEEN] + [""] * ETA.size)
    rng = np.random.default_rng(seed)
    params, y = link.start(x)
    eta, n = np.concatenate([np.zeros(len(SEEN)), ETA]), 10_500
    drawn = np.empty((n, 3 + ETA.size))
    for i in range(n):
        link.update_params(x, eta, params, rng, False)
        link.augment(x, eta, VAR, params, rng, y)
        drawn[i] = np.concatenate([params["curve"], y[len(SEEN) :, 0]])
    batches = drawn[500:].reshape(50, -1, drawn.shape[1]).mean(axis=1)
    z = (batches.mean(axis=0) - exact(y[: len(SEEN), 0])) / (batches.std(axis=0) / np.sqrt(49))
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("curve", [(0.5, 2.0, 0.1), (-1.0, -1.5, 0.3), (0.0, 0.0, 0.05)])
def test_missing_cells_follow_the_law_of_what_is_missing(
    curve: tuple[float, float, float], seed: int
) -> None:
    n, eta, var = 40_000, 0.4, 0.7
    y, by_value, w = draw_unseen(np.full(n, eta), var, np.array(curve), np.random.default_rng(seed))
    a, b, c = curve
    grid = eta + np.sqrt(var) * np.linspace(-7, 7, 4001)
    density = stats.norm.pdf(grid, eta, np.sqrt(var)) * (c + (1 - c) * ndtr(-(a + b * grid)))
    step = grid[1] - grid[0]
    log_p = log_missing(np.array([eta]), var, np.array(curve))
    assert np.log(density.sum() * step) == pytest.approx(log_p[0], abs=1e-6)
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(y, lambda v: np.interp(v, grid, cdf)).pvalue > 1e-4
    assert np.all(w[by_value] < 0.0)
    # Given y, w is a normal of mean a + b y cut off at 0.
    u = ndtr(w[by_value] - a - b * y[by_value]) / ndtr(-(a + b * y[by_value]))
    assert stats.kstest(u, "uniform").pvalue > 1e-4


def test_samples_of_missing_cells_are_of_what_is_missing(seed: int) -> None:
    link = link_of([str(v) for v in SEEN] + [""])[0]
    n = 20_000
    law = NormalMixture(np.ones((n, 1)), np.full((n, 1, 1), 0.3), np.full((n, 1, 1), VAR), None)
    curve = np.array([0.5, 3.0, 0.05])
    params: Params = {"curve": curve, "sums": np.zeros(7)}
    rng = np.random.default_rng(seed)
    drawn = link.sample_between(law, params, rng, np.tile([-np.inf, np.inf], (n, 1)))
    other = link.value(draw_unseen(np.full(n, 0.3), VAR, curve, rng)[0])
    assert stats.ks_2samp(drawn, other).pvalue > 1e-4
    wide = np.tile([-np.inf, np.inf], (1, 1))
    assert link.log_density(wide, law.take(np.zeros(1, int)), params) == pytest.approx(
        log_missing(np.array([0.3]), VAR, curve)
    )


def intensities(seed: int, n: int = 160, d: int = 8, *, low: bool = True):
    """Return logarithms of intensities (n, d) of rank two, and which of them are seen."""
    rng = np.random.default_rng(seed)
    y = rng.normal(25.0, 2.5, n)[:, None] + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    y += 0.4 * rng.normal(size=(n, d))
    seen = rng.random((n, d)) < (ndtr(y - 23.0) if low else 0.75)
    seen[:, 0] |= ~seen.any(axis=1)
    return y, seen


def completed(y: np.ndarray, seen: np.ndarray, missingness: str, seed: int):
    """Return the columns of a table completed with bsvd, and what it is."""
    table = pa.table({f"s{j}": pa.array(y[:, j], mask=~seen[:, j]) for j in range(y.shape[1])})
    entry = {"type": "real", "missingness": missingness}
    done = impute(
        table, {"columns": {"s*": entry}}, model="bsvd", chains=4, seed=seed, draws=10, warmup=100
    )
    return np.column_stack([done.table.column(j).to_numpy() for j in range(y.shape[1])]), done


def test_what_is_missing_because_it_is_low_is_completed_lower(seed: int) -> None:
    y, seen = intensities(seed)
    found = {m: completed(y, seen, m, seed)[0] for m in ("random", "probit")}
    assert np.array_equal(found["probit"][seen], y[seen])
    bias = {m: float(np.mean((x - y)[~seen])) for m, x in found.items()}
    error = {m: float(np.sqrt(np.mean(np.square((x - y)[~seen])))) for m, x in found.items()}
    assert bias["random"] > 0.3
    assert abs(bias["probit"]) < 0.4 * bias["random"]
    assert error["probit"] < 0.75 * error["random"]


def test_nothing_is_lost_where_cells_are_missing_at_random(seed: int) -> None:
    y, seen = intensities(seed, low=False)
    error = {}
    for m in ("random", "probit"):
        error[m] = np.sqrt(np.mean(np.square((completed(y, seen, m, seed)[0] - y)[~seen])))
    assert error["probit"] < 1.1 * error["random"]


def test_a_saved_fit_knows_what_is_missing_by_its_value(tmp_path: Path, seed: int) -> None:
    y, seen = intensities(seed, n=120, d=6)
    table = pa.table({f"s{j}": pa.array(y[:, j], mask=~seen[:, j]) for j in range(6)})
    kept = tmp_path / "kept.glfm"
    types = {"columns": {"s*": {"type": "positive", "missingness": "probit"}}}
    first = impute(table, types, save=kept, chains=2, warmup=40, draws=5)
    cells = ([22.0, 29.0] if j else [None, None] for j in range(6))
    new = pa.table({f"s{j}": pa.array(one, pa.float64()) for j, one in enumerate(cells)})
    low, high = impute(new, fit=kept).table.column(0).to_pylist()
    assert low < 24.0 < 26.0 < high
    again = impute(table, types, resume=kept, chains=3)
    assert again.n_completed == first.n_completed == int((~seen).sum())
    several = tmp_path / "several.parquet"
    impute(table, types, chains=2, warmup=40, draws=5, files=Files(several, multiple=2))
    assert several.exists()


def test_a_model_is_taken_that_suits_such_columns() -> None:
    kinds = ["real", "missingness: probit"]
    assert named(Sampling(), Asked("dense", kinds)).model == "bsvd"
    assert named(Sampling(), Asked("dense", kinds[:1], alone=True)).model == "glfm"


@pytest.mark.parametrize("model", ["forest", "clgp"])
def test_models_that_see_values_refuse_such_columns(model: str) -> None:
    table = pa.table({"a": [1.0, None, 2.5], "b": [1.0, 2.0, 4.0]})
    types = {"columns": {"a": {"type": "real", "missingness": "probit"}, "b": "real"}}
    with pytest.raises(SchemaError, match=f"{model}.* takes no `missingness: probit`"):
        impute(table, types, model=model)


def test_a_classifier_refuses_such_columns() -> None:
    types = {"columns": {"a": {"type": "real", "missingness": "probit"}, "c": "categorical"}}
    table = pa.table({"a": [1.0, None, 2.5, 3.0], "c": ["x", "y", "x", "y"]})
    with pytest.raises(SchemaError, match="a classifier takes no `missingness: probit`"):
        classify(table, types, target="c")


def test_cells_of_a_code_that_stays_tell_nothing() -> None:
    codes = [{"value": "x", "impute": False}, "0"]
    _, x = link_of(["1", "x", "", "2", "0", "3"], missing=codes)
    gone = np.isnan(x).all(axis=1)
    assert gone.tolist() == [False, True, False, False, False, False]
    assert np.isinf(x[[2, 4]]).all()
    assert np.array_equal(x[[0, 3, 5]], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
