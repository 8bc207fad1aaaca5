"""The joint law of a table whose cells are missing by their value [Geweke 2004]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Problem
from glfm_cli.links import Link, LinkConfig, make_link, selection
from glfm_cli.schema import Column, ColumnType
from glfm_cli.streams import Streams, column_step
from tests.statistical import bsvd_prior
from tests.statistical.bsvd_prior import Setting
from tests.statistical.geweke import JointLaw, even, odd
from tests.statistical.test_bsvd_geweke import CONFIG

ROWS, COLUMNS = 5, 2


def make_links() -> tuple[Link, ...]:
    """Return two links whose constants come from reference samples of their own."""
    found = []
    for d in range(COLUMNS):
        x, seen = np.random.default_rng(d).normal(3.0, 2.0, 200), np.ones(200, dtype=bool)
        column = Column(f"x{d}", type=ColumnType.REAL, missingness="probit")
        encoded = EncodedColumn(column, d, x, seen, ~seen, ends=np.full((200, 2), np.nan))
        found.append(make_link(encoded, LinkConfig()))
    return tuple(found)


SETTING = Setting(
    make_links(),
    replace(CONFIG, own_weights=False, noise_shape=4.0, noise_rate=3.0),
    np.ones((ROWS, COLUMNS), dtype=bool),
)


def new_chain(seed: int, index: int) -> Chain:
    xs = tuple(np.ones((ROWS, 2)) for _ in range(COLUMNS))
    return start_chain(Problem(Bsvd(), SETTING.config, SETTING.links, xs), Streams(seed, index))


def draw_prior(chain: Chain, rng: np.random.Generator) -> None:
    bsvd_prior.draw_prior(SETTING, chain, rng)
    for params in chain.params:
        params["curve"][:2] = selection.PRIOR_SD * rng.normal(size=2)
        params["curve"][2] = rng.beta(1.0, 9.0)


def draw_table(chain: Chain, rng: np.random.Generator) -> None:
    """Draw y, which of them are seen, and then what is missing as the link does."""
    model = chain.problem.model
    model.fill_eta(chain.state, chain.eta)
    for d, link in enumerate(SETTING.links):
        x, eta, var = chain.problem.xs[d], chain.eta_of(d), float(model.noise(chain.state)[d])
        a, b, c = chain.params[d]["curve"]
        y = eta + np.sqrt(var) * rng.normal(size=ROWS)
        seen = rng.random(ROWS) < (1.0 - c) * ndtr(a + b * y)
        x[seen], x[~seen] = link.value(y)[seen, None], (-np.inf, np.inf)
        chain.cells.y[:, d] = y
        own = chain.streams.get(column_step(d))
        link.augment(x, eta, var, chain.params[d], own, chain.cells.y[:, d : d + 1])


def statistics(chain: Chain) -> tuple[list[str], Array]:
    state, found = chain.state, {}
    for d in range(COLUMNS):
        gone = np.isinf(chain.problem.xs[d][:, 0])
        y, eta = chain.cells.y[:, d], chain.eta_of(d)
        a, b, c = chain.params[d]["curve"]
        residual = (y - eta) / np.sqrt(state.noise[d])
        found |= {
            f"a {d}": odd(a),
            f"b {d}": odd(b),
            f"b square {d}": even(b),
            f"log c {d}": np.log(c + 1e-3),
            f"missing {d}": gone.sum(),
            f"missing along a {d}": gone.sum() * odd(a),
            f"y of missing along b {d}": (odd(y) * gone).sum() * odd(b),
            f"y of seen along b {d}": (odd(y) * ~gone).sum() * odd(b),
            f"eta of missing along b {d}": (odd(eta) * gone).sum() * odd(b),
            f"residual of missing {d}": (even(residual) * gone).sum(),
            f"log noise {d}": np.log(state.noise[d]),
        }
    found |= {"log alpha": np.log(state.alpha), "eta square": even(chain.eta).sum()}
    return list(found), np.array(list(found.values()), dtype=np.float64)


LAW = JointLaw(new_chain, draw_prior, draw_table, statistics)
SHORT = 2_500


def test_a_sweep_has_the_joint_law(seed: int) -> None:
    comparison = LAW.compare(SHORT, seed)
    assert comparison.passes, str(comparison)


@pytest.mark.slow
def test_long_sweeps_have_the_joint_law(seed: int) -> None:
    comparison = LAW.compare(10 * SHORT, seed)
    assert comparison.passes, str(comparison)
