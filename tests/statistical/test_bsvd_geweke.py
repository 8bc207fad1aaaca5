"""The joint law of the low-rank model, and mutants that it catches [Geweke 2004].

That a sweep has it as its invariant law is tested in `tests/contract/test_priors.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.encoding import successes_of
from glfm_cli.inference.chain import Chain
from glfm_cli.latent.bsvd import births, row_noise
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.schema import ColumnType
from tests.statistical.bsvd_prior import Setting, draw_prior, draw_table, make_links, new_chain
from tests.statistical.geweke import Comparison, JointLaw, even, odd

SHORT = 2_000

CONFIG = BsvdConfig(
    max_components=2,
    candidates=1,
    scale_shape=3.0,
    scale_rate=2.0,
    noise_shape=3.0,
    noise_rate=2.0,
    extra_scale=0.8,
    bias_variance=1.0,
    intercept_scale=0.7,
    effect_shape=3.0,
    effect_rate=2.0,
    own_weights=True,
)
SEEN = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)
R, C = np.array([[-1.0], [0.5], [1.0], [-0.5]]), np.array([[1.0], [-1.0], [0.5]])


def matrix_of(kind: ColumnType, *, slopes: bool = False, row_noise: bool = False) -> Setting:
    """Return a 4 x 3 matrix of one kind with three gaps and a covariate on either side."""
    config = replace(CONFIG, slopes=slopes, row_noise=row_noise)
    return Setting(make_links(kind), config, SEEN, R, C)


def own_weights_off(setting: Setting) -> Setting:
    """Return a setting in which covariates have prior means alone, and two components are usual."""
    return replace(setting, config=replace(setting.config, own_weights=False, on_mass=2.0))


SETTINGS = {
    "real matrix": lambda: matrix_of(ColumnType.REAL),
    "ordinal matrix": lambda: matrix_of(ColumnType.ORDINAL),
    "binomial matrix": lambda: matrix_of(ColumnType.BINOMIAL),
    "matrix of many trials": lambda: Setting(
        make_links(ColumnType.BINOMIAL), CONFIG, SEEN, R, C, trials=(400.0, 450.0)
    ),
    "real matrix without own weights": lambda: own_weights_off(matrix_of(ColumnType.REAL)),
    "real matrix with slopes": lambda: matrix_of(ColumnType.REAL, slopes=True),
    "real matrix with slopes and noise of rows": lambda: matrix_of(
        ColumnType.REAL, slopes=True, row_noise=True
    ),
    "binomial matrix with slopes": lambda: matrix_of(ColumnType.BINOMIAL, slopes=True),
    "table": lambda: Setting(
        make_links(ColumnType.REAL, ColumnType.ORDINAL, ColumnType.CATEGORICAL), CONFIG, SEEN
    ),
}


def statistics(chain: Chain) -> tuple[list[str], Array]:
    """Return names and values of the statistics of the present state."""
    state = chain.state
    k = state.active
    s, U, V = state.s[k], state.U[:, k], state.V[:, k]
    n_rows, n_columns = state.matrix.shape
    y = state.matrix.values(chain.cells.y)
    residual = y - state.x
    variance = state.noise[state.matrix.owner[state.matrix.rows.index]]
    residual /= np.sqrt(variance + (chain.cells.own[:, 0] if state.matrix.own.size else 0.0))
    residual *= np.sqrt(state.row_precision)[np.nonzero(SEEN)[0]] if state.design.row_noise else 1.0
    found: dict[str, float] = {
        "rank": k.size,
        "first on": state.on[0],
        "log alpha": np.log(state.alpha),
        "s": odd(s / np.sqrt(n_rows * n_columns)).sum(),
        "s square": even(s * np.sqrt(state.alpha)).sum(),
        "U": odd(U * np.sqrt(n_rows)).sum(),
        "U square": even(U * np.sqrt(n_rows)).sum(),
        "V square": even(V * np.sqrt(n_columns)).sum(),
        "U first row along V": odd(U[0] * V[0]).sum(),
        "x": odd(state.x).sum(),
        "x square": even(state.x).sum(),
        "y": odd(y).sum(),
        "residual": odd(residual).sum(),
        "residual square": even(residual).sum(),
        "residual along x": (odd(residual) * odd(state.x)).sum(),
        "G_R square": even(state.G_R).sum(),
        "y along G_R": (odd(y) * odd(state.G_R[:, 0])[state.matrix.rows.index]).sum(),
    }
    found |= {
        f"log noise {d}": np.log(state.noise[d]) for d in np.flatnonzero(state.unit_noise == 0)
    }
    of_groups = state.tau.size if state.design.one_kind else 1
    unused = () if state.config.own_weights else (1, 3)
    found |= {f"log tau {i}": np.log(state.tau[i]) for i in range(of_groups) if i not in unused}
    if state.design.slopes:
        found |= {
            "slopes": odd(state.slope).sum(),
            "slopes square": even(state.slope * np.sqrt(state.tau[4])).sum(),
            "y along slopes": (odd(y) * odd(np.outer(state.slope, state.level)[SEEN])).sum(),
            "slopes along G_C": (odd(state.slope[:, 0]) * odd(state.G_C[:, 0])).sum(),
        }
    if state.design.row_noise:
        f = np.log(state.row_precision)
        found |= {
            "variation": state.variation,
            "log f": odd(f).sum(),
            "log f square": even(f).sum(),
            "residual along f": (even(y - state.x) * f[np.nonzero(SEEN)[0]]).sum(),
            "f along G_C": (odd(f) * odd(state.G_C[:, 0])).sum(),
        }
    if state.design.one_kind:
        found |= {"mu": odd(state.mu), "G_C square": even(state.G_C).sum()}
    sides = (("rows", state.of_rows, U, state.G_C), ("columns", state.of_columns, V, state.G_R))
    for side, means, factors, intercepts in sides if state.of_rows.p else ():
        n, b = factors.shape[0], means.factors[:, k]
        around = factors - means.X @ b
        found |= {
            f"{side} coefficients square": even(b * np.sqrt(n)).sum(),
            f"{side} factors along covariates": odd(n * (means.X * around)).sum(),
            f"{side} log precision": np.log(means.precision[0]),
            f"{side} intercepts along covariates": odd(means.X[:, 0] * intercepts[:, 0]).sum(),
            f"{side} coefficients of intercepts": odd(means.intercepts).sum(),
            f"{side} log precision of intercepts": np.log(means.precision[1]),
            f"y along {side} coefficients": odd(y).sum() * odd(means.intercepts).sum(),
        }
    for link, params, x in zip(chain.problem.links, chain.params, chain.problem.xs, strict=True):
        if not link.known:
            # Small numbers and codes are successes without trials.
            found[f"first level {link.name}"] = float(np.sum(successes_of(x) == 0.0))
        if isinstance(link, OrdinalLink):
            gaps = np.log(np.diff(params["thresholds"]))
            found |= {f"log gap {i} {link.name}": gap for i, gap in enumerate(gaps)}
    return list(found), np.array(list(found.values()), dtype=np.float64)


# Each is part of another, or like it but for one number.
ONLY_LONG = ("matrix of many trials", "real matrix", "real matrix with slopes", "binomial matrix")


def law_of(setting: Setting) -> JointLaw:
    """Return the joint law of a setting."""
    own = (partial(one, setting) for one in (new_chain, draw_prior, draw_table))
    return JointLaw(*own, statistics)


def run(setting: Setting, n_sweeps: int, seed: int) -> Comparison:
    """Compare both simulators; births, exact by any number of steps, take few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(births, "FEWEST_STEPS", 2)
        return law_of(setting).compare(n_sweeps, seed)


def test_scales_stay_positive(seed: int) -> None:
    chain = new_chain(SETTINGS["real matrix"](), seed, 0)
    for _ in range(200):
        chain.sweep(adapt=False)
        assert (chain.state.s[chain.state.on] > 0.0).all()


@pytest.mark.slow
def test_noise_of_rows_that_forgets_half_is_caught(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        row_noise,
        "draw_row_precision",
        lambda S, n, noise, v, rng: rng.gamma(v**-2 + 0.5 * n) / (v**-2 + S / noise),
    )
    comparison = run(SETTINGS["real matrix with slopes and noise of rows"](), SHORT // 2, seed)
    assert not comparison.passes, str(comparison)
