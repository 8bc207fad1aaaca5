"""`glfm evaluate` of counts: rows held out, columns hidden, perplexity and recommendations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import Triplets, encode_triplets
from glfm_cli.evaluation.methods.counts import FactorMethod
from glfm_cli.evaluation.new_row_scores import score_new_rows
from glfm_cli.evaluation.new_rows import draw_new_rows
from glfm_cli.evaluation.task import Prediction, hold_out_rows
from glfm_cli.latent.cnpf import CnpfConfig, Counts
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.prediction import cell_shares, fold_in
from glfm_cli.options import Sampling
from glfm_cli.schema import Schema
from tests.cli.conftest import run_here
from tests.cnpf.cnpf_fits import planted

TYPES = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
SCHEMA = Schema.from_dict(
    {"columns": {"u": "row", "i": "column",
                 "n": {"type": "count", "role": "value", "absent": "zero"}}}
)  # fmt: skip
SMALL = ("--set", "components=4", "--set", "dimensions=2", "--set", "passes=25", "--chains", "1")


def matrix(n_rows: int = 60) -> np.ndarray:
    y, _, _ = planted(np.random.default_rng(5), n_rows, 25, 4, 40.0)
    return y


def table(y: np.ndarray) -> pa.Table:
    row, column = np.nonzero(y)
    return pa.table({"u": row, "i": column, "n": y[row, column]})


def triplets(y: np.ndarray) -> Triplets:
    return encode_triplets(table(y), SCHEMA)


def dense(found: Triplets) -> dict[tuple[str, str], int]:
    keys = zip(found.row, found.column, found.value.x, strict=True)
    return {(found.rows.keys[u], found.columns.keys[i]): int(n) for u, i, n in keys}


def test_rows_held_out_and_those_left_are_all_rows_and_larger_rates_hide_more() -> None:
    y = matrix()
    held = {r: draw_new_rows(triplets(y), r, np.random.default_rng(3)) for r in (0.5, 0.9)}
    rows = held[0.5]
    assert rows.counts.shape[0] == 12
    learnt = dense(rows.train)
    assert all(y[int(u), int(i)] == n for (u, i), n in learnt.items())
    left = {int(u) for u in rows.train.rows.keys}
    out = sorted(set(range(60)) - left)
    kept = [int(i) for i in rows.train.columns.keys]
    np.testing.assert_array_equal(rows.counts, y[np.ix_(out, kept)])
    assert np.all(y[np.ix_(sorted(left), kept)].sum(axis=0) > 0)
    assert np.all(held[0.9].hidden[held[0.5].hidden])
    assert abs(held[0.9].hidden.mean() - 0.9) < 0.08


def test_scores_are_those_of_their_formulas() -> None:
    rows = draw_new_rows(triplets(matrix()), 0.6, np.random.default_rng(3))
    rates = np.random.default_rng(4).gamma(1.0, 1.0, rows.counts.shape)
    found = score_new_rows(rows, Prediction(np.empty(0), rates=lambda part: rates[part]))
    said = {one.score: one.value for one in found}
    total = loss = mixed = poisson = 0.0
    recall, gain = [], []
    train = np.zeros(rates.shape[1])
    for i, n in zip(rows.train.column, rows.train.value.x, strict=True):
        train[i] += n
    shares = (train + 0.01) / (train + 0.01).sum()
    for u in range(rates.shape[0]):
        ranked = sorted(np.flatnonzero(rows.hidden[u]), key=lambda i: -rates[u, i])[:20]
        hits = [rows.counts[u, i] > 0 for i in ranked]
        there = int(np.sum((rows.counts[u] > 0) & rows.hidden[u]))
        if there:
            recall.append(sum(hits) / min(there, 20))
            best = sum(1.0 / np.log2(k + 2) for k in range(min(there, 20)))
            gain.append(sum(1.0 / np.log2(k + 2) for k, hit in enumerate(hits) if hit) / best)
        for i in np.flatnonzero(rows.hidden[u]):
            n, p = int(rows.counts[u, i]), rates[u, i] / rates[u].sum()
            total += n
            loss += n * np.log(p)
            mixed += n * np.log(0.9 * p + 0.1 * shares[i])
            factorial = float(np.sum(np.log(np.arange(1, n + 1))))
            poisson += n * np.log(rates[u, i]) - rates[u, i] - factorial
    assert said["perplexity"] == pytest.approx(np.exp(-loss / total))
    assert said["perplexity_mixed"] == pytest.approx(np.exp(-mixed / total))
    assert said["log_score"] == pytest.approx(poisson / rows.hidden.sum())
    assert said["recall_20"] == pytest.approx(np.mean(recall))
    assert said["ndcg_20"] == pytest.approx(np.mean(gain))


def test_a_model_is_scored_as_its_own_fold_in_is() -> None:
    """By the driver and the layout of pairs, and by the counts of the held-out rows alone."""
    y = matrix()
    rows = draw_new_rows(triplets(y), 0.5, np.random.default_rng(3))
    task = hold_out_rows(table(y), SCHEMA, rows, seed=1, threads=1)
    settings = {"components": "4", "dimensions": "2", "passes": "25"}
    method = FactorMethod("cnpf", "cnpf", Sampling(chains=1, settings=settings), {})
    run = method.sample(task)
    found = score_new_rows(rows, method.answer(run.posterior, task)[0])
    config = CnpfConfig(components=4, dimensions=2, passes=25)
    u, i = np.nonzero(rows.counts)
    counts = Counts.of(u, i, rows.counts[u, i], rows.counts.shape)
    seen, hidden = hide_columns(counts, ~rows.hidden)
    draw = run.posterior.chains[0][0].latent
    log_p = np.log(cell_shares(fold_in(draw, seen, config), hidden))
    expected = np.exp(-(hidden.count @ log_p) / hidden.count.sum())
    assert found[0].score == "perplexity"
    assert found[0].value == pytest.approx(expected)


def test_methods_are_compared_on_the_same_rows(desk: Any) -> None:
    y = matrix(120)
    row, column = np.nonzero(y)
    cells = zip(row, column, y[row, column], strict=True)
    desk.put("n.csv", "u,i,n\n" + "".join(f"r{r},c{c},{n}\n" for r, c, n in cells))
    desk.put("n.yaml", TYPES)
    given = ("evaluate", "n.csv", "--types", "n.yaml", *SMALL, "--rates", "0.5", "--jobs", "1")
    said = run_here(*given, "--repeats", "2", "-o", "s.csv", "--json", "--plot", "s.png")
    assert said.status == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["methods"] == ["cnpf", "scaled-hgp", "hgp", "unigram"]
    assert found["mechanism"] == "new-rows"
    mean = {row["method"]: row["mean"] for row in found["summary"] if row["score"] == "perplexity"}
    assert max(mean[name] for name in ("cnpf", "scaled-hgp", "hgp")) < 0.93 * mean["unigram"]
    assert Path("s.png").stat().st_size
    again = run_here(*given, "--repeats", "2", "-o", "s.csv", "--resume")
    assert "All 8 fits are there already." in again.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--methods", "bsvd"), "unknown method, found 'bsvd', expected some of cnpf, scaled-hgp"),
        (("--mechanism", "mcar"), "--mechanism, found 'mcar', expected new-rows"),
    ],
)
def test_what_does_not_fit_is_refused(desk: Any, options: tuple[str, ...], error: str) -> None:
    desk.put("n.csv", "u,i,n\na,x,1\nb,x,2\n")
    desk.put("n.yaml", TYPES)
    said = run_here("evaluate", "n.csv", "--types", "n.yaml", *options)
    assert said.status == 2
    (line,) = said.lines("Error")
    assert error in line
