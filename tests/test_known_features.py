"""Levels of complete columns as features that rows are known to have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.completion.multiple import LINEAR
from glfm_cli.inference.chain import empty_cells, start_chain
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.hidden_cells import without_cells
from glfm_cli.latent.glfm import sampler
from glfm_cli.latent.glfm.known_features import KnownFeatures
from glfm_cli.streams import Streams

LEVELS = ["low", "mid", "high"]


def trial(n: int = 90, seed: int = 1) -> pd.DataFrame:
    """Return a table with an arm of three levels, a sex, and y of which a third is missing."""
    rng = np.random.default_rng(seed)
    arm, sex = rng.integers(3, size=n), rng.integers(2, size=n)
    y = 5.0 - 1.5 * (arm == 1) - 3.0 * (arm == 2) + rng.standard_normal(n)
    x = y + rng.standard_normal(n)
    return pd.DataFrame({
        "arm": np.array(LEVELS)[arm], "sex": np.where(sex, "f", "m"),
        "x": x, "y": np.where(rng.random(n) < 0.4, np.nan, y),
    })  # fmt: skip


TYPES = {"columns": {"arm": "categorical", "sex": "categorical", "x": "real", "y": "real"}}


def chain_of(table: pd.DataFrame, types: dict = TYPES, **settings: object):
    problem = prepare(pa.Table.from_pandas(table), types, model="glfm", settings=settings)[0]
    return start_chain(problem, Streams(0, 0))


def test_levels_of_complete_columns_are_features_but_the_most_frequent() -> None:
    table = trial()
    chain = chain_of(table, known_features=10)
    for _ in range(5):
        chain.sweep(adapt=True)
    assert chain.state.known.pairs[:, 0].tolist() == [0, 0, 1]
    for column, bits in (("arm", chain.state.Z[:, 1:3]), ("sex", chain.state.Z[:, 3:4])):
        told = pd.Series(map(tuple, bits.tolist())).groupby(table[column].to_numpy()).unique()
        assert (told.map(len) == 1).all()  # the bits are the level
        sums = told.map(lambda one: sum(one[0]))
        (without,) = sums.index[sums == 0]
        assert (sums.drop(without) == 1).all()
        count = table[column].value_counts()
        assert count[without] == count.max()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.assign(arm=t["arm"].mask(t.index == 3)),  # has a missing cell
        lambda t: t.assign(arm=t["arm"].where(t.index < 85, "rare")),  # has a rare level
        lambda t: t.assign(arm=[f"level {i % 6}" for i in t.index]),  # has too many
        lambda t: t.assign(arm="one"),
    ],
)
def test_a_column_that_is_not_fit_is_left_out(change) -> None:
    assert set(chain_of(change(trial()), known_features=10).state.known.pairs[:, 0]) == {1}


def test_there_are_no_more_than_are_asked_for_and_none_where_nothing_is_missing() -> None:
    table = trial()
    assert len(chain_of(table, known_features=0).state.known) == 0
    assert chain_of(table, known_features=1).state.known.pairs[:, 0].tolist() == [1]
    assert chain_of(table, known_features=2).state.known.pairs[:, 0].tolist() == [0, 0]
    assert len(chain_of(table.fillna({"y": 0.0}), known_features=10).state.known) == 0
    groups = {"columns": {**TYPES["columns"], "patient": {"type": "categorical", "role": "group"}}}
    table["patient"] = [f"p{i // 3}" for i in table.index]
    assert len(chain_of(table, groups, known_features=10).state.own.known) == 0


def test_weights_of_known_features_are_those_of_a_regression_on_indicators() -> None:
    """With their prior: mean (Z'Z + I / bias_variance)^-1 Z'y over rows whose y is there.

    Columns have a scale of their own, by which the prior is scaled, too: 0.3 of it here.
    """
    table = trial(60)
    chain = chain_of(
        table, known_features=3, max_features=0, initial_features=0, bias_variance=0.3,
        weight_variance=1e-4,
    )  # fmt: skip
    cells, state = chain.cells, chain.state
    d = [link.name for link in chain.problem.links].index("y")
    s = int(np.flatnonzero(cells.column == d)[0])
    seen = cells.observed[:, d] != 0
    drawn = []
    for sweep in range(4000):
        chain.sweep(adapt=True)
        if sweep >= 50:
            drawn.append(state.B[:4, s].copy())
    assert chain.model.trace(state)["features"] == 0
    Z, y = state.Z[seen, :4].astype(float), cells.y[seen, s]
    precision = Z.T @ Z + np.eye(4) / 0.3
    expected, sd = np.linalg.solve(precision, Z.T @ y), np.std(drawn, axis=0)
    assert np.abs(np.mean(drawn, axis=0) - expected).max() < 0.08 * sd.max()


def test_the_variance_of_weights_is_that_of_features_that_are_drawn() -> None:
    """There are none here, so that its inverse is drawn from its prior, of mean 2 / 2."""
    chain = chain_of(trial(30), known_features=3, max_features=0, initial_features=0)
    inverse = []
    for _ in range(4000):
        chain.sweep(adapt=True)
        inverse.append(1.0 / chain.state.weight_variance)
    assert abs(np.mean(inverse) - 1.0) < 5 * np.sqrt(0.5 / 4000)


def test_effects_of_an_arm_are_not_drawn_to_zero() -> None:
    """Most of y is missing, and differs between arms in completed tables as in what is there."""
    rng = np.random.default_rng(5)
    n = 400
    arm = np.arange(n) % 2
    y = -1.0 * arm + rng.standard_normal(n)
    table = pd.DataFrame({
        "arm": np.where(arm, "new", "old"), "y": np.where(rng.random(n) < 0.6, np.nan, y),
        "w": rng.standard_normal(n), "v": rng.standard_normal(n),
    })  # fmt: skip
    seen = table.groupby("arm")["y"].mean()

    def ratio(**change: object) -> float:
        types = {"columns": {"arm": "categorical", "y": "real", "w": "real", "v": "real"}}
        done = impute(
            table, types, model="glfm", chains=4, warmup=30, draws=10, seed=1,
            settings={**LINEAR, **change},
        )  # fmt: skip
        made = pd.concat([one.to_pandas() for one in done.multiple(20).tables()])
        means = made.groupby("arm")["y"].mean()
        return float((means["new"] - means["old"]) / (seen["new"] - seen["old"]))

    assert 0.96 < ratio() < 1.04
    assert ratio(known_features=0) < 0.94


def fitted(table: pd.DataFrame, types: dict = TYPES):
    done = impute(
        table, types, model="glfm", chains=2, warmup=10, draws=10, settings={"known_features": 10}
    )
    return done.posterior, prepare(
        pa.Table.from_pandas(table), types, model="glfm", settings={"known_features": 10}
    )[0]


def test_new_rows_have_the_features_of_their_cells_and_else_those_of_a_fitted_row() -> None:
    table = trial()
    posterior, problem = fitted(table)
    new = problem.take(np.arange(30))
    arm = new.xs[0].copy()
    arm[:10] = np.nan
    folded = fold_in(posterior, replace(new, xs=(arm, *new.xs[1:])), seed=3)
    fit_bits = np.array([bits_of(one) for one in posterior.chains[0]])
    new_bits = np.array([bits_of(one) for one in folded.chains[0]])
    assert (new_bits[:, 10:] == fit_bits[:, 10:30]).all()
    assert (new_bits[:, :10, 2] == fit_bits[:, :10, 2]).all()  # of the sex, which is known
    assert set(np.unique(new_bits[:, :10, :2].sum(axis=2))) == {0, 1}  # never two arms
    assert (new_bits[:, :10, :2] != fit_bits[:, :10, :2]).any()


def test_components_of_new_rows_are_drawn_beside_known_features() -> None:
    """Their cells lie about as near as those of the fit do.

    They resemble fitted rows of the other arm, since in each arm they are what the other's are.
    """
    rng = np.random.default_rng(7)
    n = 400
    arm, u = np.arange(n) % 2, np.abs(rng.standard_normal(n))
    u[: n // 2] *= 2 * arm[: n // 2] - 1
    u[n // 2 :] *= 1 - 2 * arm[n // 2 :]
    Y = 1.5 * arm[:, None] + 2.0 * u[:, None] + 0.3 * rng.standard_normal((n, 4))
    table = pd.DataFrame(Y, columns=list("abcd")).assign(arm=np.where(arm, "new", "old"))
    table.loc[0, "a"] = np.nan
    real = {"type": "real", "transform": "none"}
    types = {"columns": {**dict.fromkeys("abcd", real), "arm": "categorical"}}
    settings = {"known_features": 1, "components": 1, "max_features": 0, "initial_features": 0}
    options = {"model": "glfm", "settings": settings}
    fit = table[: n // 2]
    posterior = impute(fit, types, chains=1, warmup=20, draws=10, **options).posterior
    fit_problem = prepare(pa.Table.from_pandas(fit), types, **options)[0]
    whole = prepare(pa.Table.from_pandas(table), types, **options)[0]
    problem = replace(fit_problem, xs=tuple(x[n // 2 :] for x in whole.xs))
    folded = fold_in(posterior, problem, seed=4)

    def apart(problem, draws) -> float:
        pairs = zip(problem.links[:4], problem.xs[:4], strict=True)
        y = np.hstack([link.start(x)[1] for link, x in pairs])
        laws = [posterior.model.cells_law(draw.latent, slice(None)) for draw in draws]
        return float(np.nanstd((np.array([law.eta[:, :4] for law in laws]) - y)[:, 1:]))

    assert apart(problem, folded.chains[0]) < 1.2 * apart(fit_problem, posterior.chains[0])


def bits_of(draw) -> Array:
    Z = np.unpackbits(draw.latent.bits, axis=1, count=draw.latent.n_columns)
    return Z[:, 1 : 1 + len(draw.latent.known)]


def test_cells_of_known_features_are_not_hidden_to_learn_corrections() -> None:
    posterior, problem = fitted(trial())
    for time in range(2):
        folded, hidden = without_cells(posterior, problem, time)
        assert not {0, 1} & {d for d, (at, _) in hidden.items() if at.size}
        assert hidden[2][0].size
        assert (bits_of(folded.chains[0][0]) == bits_of(posterior.chains[0][0])).all()


def test_kept_features_must_be_those_of_the_cells() -> None:
    chain = chain_of(trial(), known_features=10)
    chain.sweep(adapt=True)
    model, arrays = sampler.Glfm(), chain.model.save(chain.state)
    Z = np.unpackbits(arrays["bits"], axis=1, count=int(arrays["n_columns"]))
    Z[5, 2] ^= 1
    arrays["bits"] = np.packbits(Z, axis=1)
    with pytest.raises(ValueError, match="known to have"):
        model.load(arrays, chain.cells, chain.problem.config)


@pytest.mark.parametrize("pair", [(9, 1), (-1, 1), (0, 200)])
def test_kept_pairs_must_be_of_columns_and_levels(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="columns and levels"):
        KnownFeatures.unpack({"known": np.array([pair], dtype=np.int64)}, 4)


def test_ordered_levels_take_part_where_there_are_two() -> None:
    table = trial().assign(sex=lambda t: (t["sex"] == "f").astype(int))
    for kind, there in (("ordinal", True), ("count", False)):
        types = {"columns": {**TYPES["columns"], "sex": kind}}
        settings = {"known_features": 10}
        problem = prepare(
            pa.Table.from_pandas(table), types, model="glfm", settings=settings
        )[0]
        assert (1 in KnownFeatures.of(empty_cells(problem), 10).pairs[:, 0]) == there
