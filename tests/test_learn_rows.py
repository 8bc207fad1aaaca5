"""Globals learnt on a sample of the rows: which rows, and what becomes of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import GlfmError, impute, load_fit
from glfm_cli.completion.files import Files
from glfm_cli.completion.impute import plan_imputation
from glfm_cli.completion.learning_rows import FEWEST, RowChooser, choose_rows, rows_to_learn
from glfm_cli.completion.new_rows import DRAWS
from glfm_cli.completion.session import plan_session
from glfm_cli.encoding import encode
from glfm_cli.latent import MODELS
from glfm_cli.options import MatrixOptions, Sampling, Saving, Scaling
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"chains": 2, "warmup": 20, "draws": 10, "thin": 1, "threads": 1}
TYPES = {"a": "real", "n": "count", "city": "categorical", "k": "ordinal"}
SCHEMA = Schema.from_dict({"columns": TYPES})


def make(n: int, seed: int = 0, rare: int = 0) -> pa.Table:
    """Return a table of two groups, a fifth of its cells missing; `rare` rows from a third city."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    city = np.where(group, "Oslo", "Rome").astype(object)
    city[rng.choice(n, rare, replace=False)] = "Vaduz"
    columns = {
        "a": np.where(group, 2.0, -2.0) + 0.3 * rng.standard_normal(n),
        "n": rng.poisson(np.where(group, 20, 3)),
        "city": city,
        "k": np.where(group, 3, 1),
    }
    gap = {name: rng.random(n) < 0.2 for name in columns}
    gap["city"] &= city != "Vaduz"
    return pa.table({name: pa.array(v, mask=gap[name]) for name, v in columns.items()})


# Which rows ----------------------------------------------------------------------------------


def test_what_is_rare_is_in_the_sample_and_the_rest_is_random() -> None:
    rng, n = np.random.default_rng(0), 20_000
    group = np.arange(n) < 6000
    city = np.where(group, "Oslo", "Rome").astype(object)
    order = rng.permutation(n)
    rare, hole = order[:15], np.isin(np.arange(n), order[15:75])
    city[rare] = "Vaduz"
    columns = {"a": group + 0.0, "n": 2 + group, "city": city, "k": np.where(group, 3, 1)}
    # Of each column many cells are missing; of two at once, in one row of three hundred.
    gaps = {"n": hole | (order % 5 == 0), "k": hole | (order % 5 == 1)}
    # Eight rows have a pattern each, which no other row shares.
    odd, bits = order[75:83], np.arange(8)
    for name, i in (("a", 3), ("n", 0), ("k", 1), ("city", 2)):
        gaps.setdefault(name, np.zeros(n, dtype=bool))[odd] = (bits >> i) % 2 == int(i < 3)
    table = pa.table({name: pa.array(v, mask=gaps.get(name)) for name, v in columns.items()})
    rows = choose_rows(encode(table, SCHEMA), 1000, 0)
    assert rows.size == 1000
    assert np.all(np.diff(rows) > 0)
    assert np.isin(rare, rows).all()
    assert np.isin(rows, np.flatnonzero(hole)).sum() == FEWEST  # three by chance
    assert abs(group[rows].mean() - group.mean()) < 4 * 0.5 / np.sqrt(1000)


def test_the_rarest_of_all_batches_comes_first_not_that_of_the_last() -> None:
    chooser = RowChooser(100, 0)  # 90 of them at random, 10 for what is rare
    for usual, rare in ((3000, 0), (1000, 8)):
        # Two levels: one of 300 rows of the first batch and of 3 of the second; one of 8 rows.
        code = np.full(usual + rare, 2)
        code[: 300 if rare == 0 else 3] = 0
        code[usual:] = 1
        chooser.add(code.size, [("city", code, ["Oslo", "Vaduz", "Rome"])])
    assert np.isin(np.arange(4000, 4008), chooser.chosen()).all()


def test_the_sample_is_the_same_for_the_same_seed_alone() -> None:
    data = encode(make(500), SCHEMA)
    one, again, other = (choose_rows(data, 50, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_so_many_rows_are_learnt_from() -> None:
    assert rows_to_learn(None, 10**6) is rows_to_learn("all", 10**6) is None
    assert rows_to_learn(50, 50) is rows_to_learn("auto", 1000) is None
    assert rows_to_learn(50, 51) == 50
    assert 1000 < (rows_to_learn("auto", 10**6) or 0) < 10**6


# What is learnt, and what comes out ----------------------------------------------------------


def test_constants_of_links_and_levels_are_those_of_all_rows() -> None:
    table = make(400, rare=3)
    whole, part = (
        plan_session(table, SCHEMA, Sampling(**SHORT), Saving(), scaling=Scaling(n))
        for n in ("all", 12)
    )
    assert (part.problem.n_rows, part.data.n_rows, part.whole.n_rows) == (12, 12, 400)
    for one, other in zip(whole.problem.links, part.problem.links, strict=True):
        assert one.constants().keys() == other.constants().keys()
        for name, value in one.constants().items():
            assert np.array_equal(value, other.constants()[name])
    assert part.data.columns[2].levels == ("Oslo", "Rome", "Vaduz")


@pytest.mark.parametrize("model", [name for name, m in MODELS.items() if "dense" in m.layouts])
def test_every_model_completes_rows_that_it_has_not_learnt_from(model: str) -> None:
    table = make(120, rare=2)
    if model == "cnpf":
        rng = np.random.default_rng(0)
        counts = rng.poisson(3, (120, 4))
        table = pa.table({f"n{i}": pa.array(c, mask=c == 3) for i, c in enumerate(counts.T)})
    types = dict.fromkeys(table.column_names, "count") if model == "cnpf" else TYPES
    types = {"a": "categorical", "city": "categorical"} if model == "clgp" else types
    given = {"columns": types, "rest": "ignore"}
    if model == "clgp":
        table = table.set_column(0, "a", pa.array([str(k) for k in table["k"].to_pylist()]))
    options = {"chains": 1, "threads": 1} if MODELS[model].kind == "ascent" else SHORT
    done = impute(table, given, model=model, learn_rows=40, **options)
    assert done.data.n_rows == 120
    for name in types:
        before, after = table[name].to_pylist(), done.table[name].to_pylist()
        assert None not in after
        assert all(x is None or x == y for x, y in zip(before, after, strict=True))


def test_all_rows_are_completed_as_new_rows_of_the_fit(tmp_path: Path) -> None:
    table = make(160, rare=2)
    kept: dict[str, Any] = {**SHORT, "seed": 4}
    assert kept["chains"] * kept["draws"] <= DRAWS
    done = impute(table, SCHEMA, learn_rows=80, save=tmp_path / "f.glfm", **kept)
    assert load_fit(tmp_path / "f.glfm").n_rows == 80
    again = impute(table, fit=tmp_path / "f.glfm", threads=2)
    assert done.table.equals(again.table)
    assert done.cells().equals(again.cells())
    assert done.multiple(3).to_table().equals(again.multiple(3).to_table())
    group = np.array([x is not None and x > 0 for x in table["a"].to_pylist()])
    known = np.array([x is not None for x in table["a"].to_pylist()])
    gap = known & np.array([x is None for x in table["k"].to_pylist()])
    right = (np.array(done.table["k"].to_pylist()) == np.where(group, 3, 1))[gap]
    assert right.mean() > 0.9


def test_many_draws_are_thinned_where_nobody_asks_for_more() -> None:
    table, more = make(60), {**SHORT, "draws": 60}
    done = impute(table, SCHEMA, model="glfm", learn_rows=30, **more)
    assert done.posterior.n_draws == DRAWS
    assert len(done.posterior.chains) == 2


def test_a_run_that_goes_on_is_that_of_one_sitting(tmp_path: Path) -> None:
    table = make(150)
    short = {**SHORT, "draws": 5}
    impute(table, SCHEMA, learn_rows=40, save=tmp_path / "f.glfm", **short)
    more = impute(table, resume=tmp_path / "f.glfm", draws=10, threads=2)
    straight = impute(table, SCHEMA, learn_rows=40, **SHORT)
    assert more.table.equals(straight.table)
    with pytest.raises(GlfmError, match="learn_rows, found 41, expected 40"):
        impute(table, resume=tmp_path / "f.glfm", learn_rows=41)


@pytest.mark.parametrize("value", [0, -1, 2.5, "some", True])
def test_a_wrong_number_of_rows_is_one_clear_error(value: object) -> None:
    with pytest.raises(GlfmError, match=r"learn_rows.*a whole number from 1, auto or all"):
        impute(make(20), SCHEMA, learn_rows=value)


def test_a_dry_run_counts_the_draws_that_correct_forecasts() -> None:
    """They are as many as those that are kept, which most of the memory is."""
    table, short = make(2_000), {**SHORT, "warmup": 2, "draws": 60}
    groups = Saving(), MatrixOptions(), Scaling()
    with_them, without = (
        plan_imputation(
            table, SCHEMA,
            (Sampling(model="forest", settings={"recalibrate": yes}, **short), *groups), Files(),
        ).costs()["megabytes"]
        for yes in (True, False)
    )  # fmt: skip
    assert with_them / without == pytest.approx(2.0, rel=0.1)


def test_a_dry_run_counts_the_draws_of_all_rows() -> None:
    """Of each the forest holds cells of 8 bytes, which are known, and a number of the row."""
    table, n = make(40_000), 40_000
    groups = Sampling(model="forest", **SHORT), Saving(), MatrixOptions()
    plans = [
        plan_imputation(one, SCHEMA, (*groups, rows), Files()).costs()["megabytes"]
        for one, rows in ((table, Scaling(100)), (table.slice(0, 100), Scaling()))
    ]
    n_draws, D = SHORT["chains"] * SHORT["draws"], len(TYPES)
    held = n * (n_draws * (9 * D + 4) + 8 * D)
    assert (plans[0] - plans[1]) * 2**20 == pytest.approx(held, rel=0.03), "trees differ"
