"""Every model takes its prior to its posterior.

A sweep of a sampler leaves the joint law of parameters and table as it is [Geweke 2004]: cases of
`JointLaw`, drawn from the prior without the package. An ascent, whose q is no posterior, and
chained equations, which have none, are judged by cells that they have not seen (unseen.py).

`python -m pytest -m slow -rP tests/contract/test_priors.py` shows the figures of the long runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.encoding import EncodedColumn, pack_trials, successes_of, trials_of
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.sampling import sample
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import Link, LinkConfig
from glfm_cli.links.margins import Smooth
from glfm_cli.links.probit_normal import ProbitNormalLink
from glfm_cli.links.shapes import Probit
from glfm_cli.schema import COLUMN_TYPES, Column, ColumnType
from glfm_cli.streams import Streams
from tests.contract.parts import EVERY_MODEL
from tests.contract.toys.additive import Additive, AdditiveConfig
from tests.contract.toys.grades import GradesLink
from tests.contract.toys.proportion import ProportionLink
from tests.contract.toys.two_way import TwoWay, TwoWayConfig
from tests.contract.unseen import UNSEEN
from tests.statistical import bsvd_prior, test_bsvd_geweke, test_geweke, test_mixture_geweke
from tests.statistical.geweke import Comparison, JointLaw, even, odd

pytestmark = pytest.mark.usefixtures("toys")
SEEN = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)


# The toys' priors ------------------------------------------------------------------------------


class OfTable(NamedTuple):
    """What `bsvd_prior.draw_table` needs to know."""

    links: tuple[Link, ...]


def grades(n_levels: int) -> Link:
    return GradesLink("grades", n_levels)


def shares() -> Link:
    margin, everything = Smooth(Probit(), -0.4, 0.8), (-np.inf, np.inf)
    return ProbitNormalLink("shares", margin, 0.0, 1.0, everything, 0.3, 0.2)


def additive() -> JointLaw:
    """Return the joint law of rows and columns, of numbers, fixed and free levels, and shares."""
    config = AdditiveConfig(variance=0.8, shape=3.0, rate=2.0)
    real, ordinal = bsvd_prior.make_links(ColumnType.REAL, ColumnType.ORDINAL)
    links = (real, grades(3), ordinal, shares())
    there, free = SEEN[:, [0, 1, 2, 1]], [0, 1, 3]

    def new_chain(seed: int, index: int) -> Chain:
        xs = [np.where(column, 1.0, np.nan) for column in there.T]
        xs[3] = pack_trials(0.0 * xs[3], np.array([2.0, 30.0, 9.0, 1.0]))
        return start_chain(Problem(Additive(), config, links, tuple(xs)), Streams(seed, index))

    def draw_prior(chain: Chain, rng: np.random.Generator) -> None:
        state = chain.state
        for own in (state.m, state.a):
            own[:] = np.sqrt(config.variance) * rng.normal(size=own.size)
        state.noise[free] = config.rate / rng.gamma(config.shape, size=3)
        chain.params[2]["thresholds"][:] = bsvd_prior._thresholds(ordinal, rng)  # type: ignore[arg-type]

    def statistics(chain: Chain) -> tuple[list[str], Array]:
        state, codes = chain.state, chain.problem.xs
        away = (chain.cells.y - state.m - state.a[:, None])[there]
        hits = codes[3][there[:, 3]]
        found = {
            "m": odd(state.m).sum(),
            "a": odd(state.a).sum(),
            "m square": even(state.m).sum(),
            "a square": even(state.a).sum(),
            "log noise": np.log(state.noise[0]),
            "log noise of levels": np.log(state.noise[1]),
            "residual": odd(away).sum(),
            "residual square": even(away).sum(),
            "log noise of shares": np.log(state.noise[3]),
            "y of shares along a": (odd(chain.cells.y[:, 3]) * odd(state.a))[there[:, 3]].sum(),
            "shares": np.sum(successes_of(hits) / trials_of(hits)),
            "shares square": np.sum((successes_of(hits) / trials_of(hits)) ** 2),
            "y along a": (odd(chain.cells.y) * odd(state.a)[:, None])[there].sum(),
            "first levels": float(np.sum(codes[1] == 0.0)),
            "last levels": float(np.sum(codes[2] == 3.0)),
        }
        return list(found), np.array(list(found.values()))

    draw_table = partial(bsvd_prior.draw_table, OfTable(links))
    return JointLaw(new_chain, draw_prior, draw_table, statistics)  # type: ignore[arg-type]


def two_way(link: Link) -> JointLaw:
    """Return the joint law of a matrix of one kind."""
    config = TwoWayConfig(variance=0.8, shape=3.0, rate=2.0)

    def new_chain(seed: int, index: int) -> Chain:
        row, column = (part.astype(np.int32) for part in np.nonzero(SEEN))
        entries = Entries(row, column, SEEN.shape)
        problem = Problem(TwoWay(), config, (link,), (np.ones(row.size),), layout=Sparse(entries))
        return start_chain(problem, Streams(seed, index))

    def draw_prior(chain: Chain, rng: np.random.Generator) -> None:
        state = chain.state
        for own in (state.u, state.v):
            own[:] = np.sqrt(config.variance) * rng.normal(size=own.size)
        state.noise[0] = config.rate / rng.gamma(config.shape)

    def statistics(chain: Chain) -> tuple[list[str], Array]:
        state = chain.state
        away = chain.cells.y - state.means(state.entries)
        found = {
            "u": odd(state.u).sum(),
            "v": odd(state.v).sum(),
            "u square": even(state.u).sum(),
            "v square": even(state.v).sum(),
            "log noise": np.log(state.noise[0]),
            "residual": odd(away).sum(),
            "residual square": even(away).sum(),
            "y along u": (odd(chain.cells.y[:, 0]) * odd(state.u)[state.entries.row]).sum(),
            "x": odd(chain.problem.xs[0]).sum(),
        }
        return list(found), np.array(list(found.values()))

    draw_table = partial(bsvd_prior.draw_table, OfTable((link,)))
    return JointLaw(new_chain, draw_prior, draw_table, statistics)  # type: ignore[arg-type]


# Samplers --------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A case of a model: compares so many sweeps; `short` of them by default, None for none."""

    model: str
    compare: Callable[[int, int], Comparison]
    short: int | None
    long: int


def _proportion() -> Link:
    column = Column("share", type=COLUMN_TYPES.get("proportion"))
    x = np.random.default_rng(0).beta(2.0, 3.0, 200)
    seen = np.ones(x.size, dtype=bool)
    return ProportionLink.calibrate(EncodedColumn(column, 0, x, seen, ~seen, ()), LinkConfig())


# Sweeps by default of cases of glfm; the others are only run at length.
SHORT_OF_GLFM = {
    "bias, no link noise": 3_000,
    "free thresholds, link noise": 3_000,
    "linear part, blocks of rows": 1_000,
}
# Precisions and coefficients of covariates leave their tails slowly.
LONGER_OF_BSVD = {"real matrix with slopes": 180_000}
CASES = {
    **{
        f"glfm, {case}": Case(
            "glfm", partial(test_geweke.run, case), SHORT_OF_GLFM.get(case), 60_000
        )
        for case in test_geweke.CASES
    },
    **{
        f"bsvd, {case}": Case(
            "bsvd",
            lambda n, seed, make=make: test_bsvd_geweke.run(make(), n, seed),
            None if case in test_bsvd_geweke.ONLY_LONG else 1_000,
            LONGER_OF_BSVD.get(case, 60_000),
        )
        for case, make in test_bsvd_geweke.SETTINGS.items()
    },
    "mixture": Case("mixture", test_mixture_geweke.run, 1_000, 40_000),
    "row-plus-column": Case(
        "row-plus-column", lambda n, seed: additive().compare(n, seed), 1_000, 40_000
    ),
    "two-way, levels": Case(
        "two-way", lambda n, seed: two_way(grades(4)).compare(n, seed), 1_000, 40_000
    ),
    "two-way, shares": Case(
        "two-way", lambda n, seed: two_way(_proportion()).compare(n, seed), 1_000, 40_000
    ),
}


def test_every_sampler_has_a_case() -> None:
    samplers = {name for name, model in EVERY_MODEL.items() if model.kind == "gibbs"}
    samplers -= UNSEEN.keys()  # chained equations are of no joint law
    samplers -= {"auto"}  # whose chains are those of other models (test_stacking.py)
    assert {case.model for case in CASES.values()} == samplers


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.short])
def test_a_sweep_has_the_joint_law_in_short(name: str, seed: int) -> None:
    case = CASES[name]
    assert case.short is not None
    comparison = case.compare(case.short, seed)
    assert comparison.passes, str(comparison)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_sweep_has_the_joint_law(name: str, seed: int) -> None:
    comparison = CASES[name].compare(CASES[name].long, seed)
    print(comparison)
    assert comparison.z.size >= 9
    assert comparison.passes, str(comparison)


# Ascents ---------------------------------------------------------------------------------------

TOYS = {"classes": {"classes": 6}, "halved-classes": {"classes": 6}}
MANY = 20  # tables of the long form


def test_every_ascent_has_a_case() -> None:
    ascents = {name for name, model in EVERY_MODEL.items() if model.kind == "ascent"}
    others = {"iqgme", "forest"}  # of which the first is not in `MODELS`: it needs a label
    assert ascents | others == {*UNSEEN, *TOYS}


@pytest.mark.parametrize("name", UNSEEN)
def test_a_model_predicts_cells_that_it_has_not_seen(name: str, seed: int) -> None:
    assert UNSEEN[name].faults(UNSEEN[name].tables, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSEEN)
def test_a_model_predicts_cells_of_many_tables(name: str, seed: int) -> None:
    assert UNSEEN[name].faults(MANY, seed + 1) == []


@pytest.mark.parametrize("name", TOYS)
def test_classes_predict_cells_that_they_have_not_seen(name: str, seed: int) -> None:
    """Factors and noise from their prior; every eighth cell hidden."""
    rng, n = np.random.default_rng(seed), 160
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(n, 6))
    hidden = rng.random(x.shape) < 0.125
    columns = {f"c{d}": pa.array(x[:, d], mask=hidden[:, d]) for d in range(6)}
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in columns}}
    options = {"model": name, "chains": 4, "seed": 0, "settings": TOYS[name]}
    problem, _, plan = prepare(pa.table(columns), types, **options)  # type: ignore[arg-type]
    posterior = sample(problem, plan).posterior
    where = {d: np.flatnonzero(hidden[:, d]) for d in range(6)}
    found = predict(posterior, where, [0.1, 0.5, 0.9])
    truth = np.concatenate([x[rows, d] for d, rows in where.items()])
    low, middle, high = np.concatenate([found[d].quantiles for d in where]).T
    assert np.mean((low < truth) & (truth < high)) > 0.7
    assert abs(np.mean(truth < middle) - 0.5) < 4.0 * 0.5 / np.sqrt(truth.size)
    error, spread = np.mean((truth - middle) ** 2), np.mean(truth**2)
    assert error < 0.9 * spread
