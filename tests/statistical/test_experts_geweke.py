"""One sweep of the mixture of experts has its joint law as its invariant law [Geweke 2004].

The method is that of `geweke`: many chains that start from draws of the joint law, each sweep
followed by a new table given the parameters. Features and labels are missing, one feature is seen
with noise only, of some gaps something is told, and all that experts share is sampled,
hyperparameters too.

`python -m pytest -m slow -rP tests/statistical/test_experts_geweke.py` shows the figures.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wishart

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows, gibbs
from glfm_cli.latent.iqgme.gibbs import GibbsState, sweep
from glfm_cli.latent.iqgme.gibbs_draw import Drawn, draw_places, draw_sticks
from glfm_cli.latent.iqgme.prior import Prior
from tests.iqgme_problems import signs
from tests.statistical.geweke import Comparison, compare, even, odd

SHORT, LONG = 600, 40_000
N_CHAINS = 100
CONFIG = IqgmeConfig(
    experts=3,
    alpha_shape=2.0,
    alpha_rate=1.0,
    expert_degrees=3.0,
    scale_shape=4.0,
    center_precision=0.5,
    weight_shape=3.0,
    weight_rate=2.0,
    rate_shape=4.0,
    weight_center=0.5,
)
P, H = 3, CONFIG.experts
PRIOR = Prior.of(CONFIG, P)
# The third feature has noise, which rules act on, too.
KNOWN = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]], dtype=bool)
LABELLED = np.array([1, 1, 1, 1, 0, 1], dtype=bool)
NOISE = np.array([0.0, 0.0, 0.4])
PRECISION = np.zeros((6, 3))
PRECISION[[1, 4, 4], [0, 0, 1]] = 1.5, 0.7, 2.0  # of what is told of gaps
N = len(KNOWN)


def normal(mean: Array, cov: Array, rng: np.random.Generator) -> Array:
    """Return one draw of a normal law."""
    return mean + np.linalg.cholesky(cov) @ rng.standard_normal(len(mean))


def draw_joint(rng: np.random.Generator) -> tuple[GibbsState, KnownRows]:
    """Return parameters and rows from the model, independently of the package's sampler."""
    alpha = rng.gamma(CONFIG.alpha_shape) / CONFIG.alpha_rate
    sticks = np.minimum(rng.beta(1.0, alpha, H - 1), 1.0 - 1e-12)
    rate = rng.gamma(CONFIG.rate_shape, CONFIG.weight_rate / CONFIG.rate_shape)
    lam = rng.gamma(CONFIG.weight_shape, size=P + 1) / np.append(
        np.full(P, rate), CONFIG.weight_rate
    )
    zeta = rng.standard_normal((1, P + 1)) / np.sqrt(CONFIG.weight_center * lam)
    mw = zeta + rng.standard_normal((H, 1, P + 1)) / np.sqrt(lam)
    nu0 = P + CONFIG.expert_degrees
    B0 = np.eye(P) / (nu0 * CONFIG.expert_variance)
    r = rng.gamma(CONFIG.scale_shape, size=H) / CONFIG.scale_shape
    nB = np.array([wishart(nu0, B0 / one).rvs(random_state=rng) for one in r])
    m = np.array([normal(np.zeros(P), np.linalg.inv(one), rng) for one in nB])
    m /= np.sqrt(CONFIG.center_precision)
    q = Drawn(sticks, alpha, m, nB, np.linalg.cholesky(nB), r, mw, zeta, lam)
    z = rng.choice(H, N, p=q.pi / q.pi.sum())
    x = np.array([normal(m[k], np.linalg.inv(nB[k]) + np.diag(NOISE), rng) for k in z])
    state = GibbsState(q, z, x, np.zeros((N, 1)))
    return state, draw_table(state, rng)


def draw_table(state: GibbsState, rng: np.random.Generator) -> KnownRows:
    """Draw known features, scores and what is known of them, given experts and z; return rows.

    Gaps stay, so that the known features are drawn given them.
    """
    q = state.q
    for n, k in enumerate(state.z):
        o, g = np.flatnonzero(KNOWN[n]), np.flatnonzero(~KNOWN[n])
        if o.size:
            D = np.linalg.inv(q.nB[k]) + np.diag(NOISE)
            regression = np.linalg.solve(D[np.ix_(g, g)], D[np.ix_(g, o)])
            mean = q.m[k, o] + (state.x[n, g] - q.m[k, g]) @ regression
            cov = D[np.ix_(o, o)] - D[np.ix_(o, g)] @ regression
            state.x[n, o] = normal(mean, cov, rng)
    w = q.mw[state.z, 0]
    score = np.einsum("np,np->n", w[:, :P], state.x) + w[:, P]
    state.t[:, 0] = score + rng.standard_normal(N)
    told = state.x + rng.standard_normal((N, P)) / np.sqrt(np.where(PRECISION > 0, PRECISION, 1.0))
    told = np.where(PRECISION > 0.0, told, 0.0)
    label = signs(state.t[:, 0] > 0.0)
    return KnownRows(state.x.copy(), KNOWN, label, LABELLED, NOISE, told, PRECISION)


def statistics(state: GibbsState, rows: KnownRows) -> tuple[list[str], Array]:
    """Return names and values of the statistics of the present state; no labels of experts."""
    q, x = state.q, state.x
    own = x - q.m[state.z]
    t = state.t[LABELLED, 0]
    assert rows.told is not None
    away = (rows.told - x)[PRECISION > 0.0]
    found: dict[str, float] = {
        "log alpha": np.log(q.alpha),
        "first stick": q.sticks[0],
        "together": np.mean(state.z[:, None] == state.z),
        "in the first": np.mean(state.z == 0),
        "x": odd(x).sum(),
        "x square": even(x).sum(),
        "x missing": even(x[:, :2][~KNOWN[:, :2]]).sum(),
        "x products": odd(x[:, 0] * x[:, 1]).sum(),
        "around centre": even(own).sum(),
        "mu": odd(q.m).sum(),
        "mu square": even(q.m).sum(),
        "log det": np.mean(q.log_det),
        "log scale": np.log(q.r).sum(),
        "correlation": odd(q.nB[:, 0, 1]).sum(),
        "w": odd(q.mw).sum(),
        "w square": even(q.mw).sum(),
        "zeta": odd(q.zeta).sum(),
        "log lam": np.log(q.lam).sum(),
        "t": odd(t).sum(),
        "t square": even(t).sum(),
        "t along x": (odd(t) * odd(x[LABELLED, 0])).sum(),
        "t along what may be missing": (odd(t) * odd(x[LABELLED, 2])).sum(),
        "above": float(np.sum(t > 0.0)),
        "told": even(away).sum(),
        "told along x": (odd(away) * odd(x[PRECISION > 0.0])).sum(),
    }
    return list(found), np.array(list(found.values()), dtype=np.float64)


def run(n_sweeps: int, seed: int) -> Comparison:
    """Run both simulators, as many draws as sweeps, and compare them."""
    rng = np.random.default_rng([seed, 1])
    simulated, means = [], []
    for _ in range(N_CHAINS):
        for _ in range(n_sweeps // N_CHAINS):
            simulated.append(statistics(*draw_joint(rng))[1])
        (state, rows), found = draw_joint(rng), []
        for _ in range(n_sweeps // N_CHAINS):
            sweep(state, rows, PRIOR, rng)
            rows = draw_table(state, rng)
            names, values = statistics(state, rows)
            found.append(values)
        means.append(np.mean(found, axis=0))
    return compare(names, np.array(means), np.array(simulated))


def test_sweep_has_the_joint_law_in_short(seed: int) -> None:
    comparison = run(SHORT, seed)
    assert comparison.z.size >= 20
    assert comparison.passes, str(comparison)


@pytest.mark.slow
def test_sweep_has_the_joint_law(seed: int) -> None:
    comparison = run(LONG, seed)
    print(comparison)
    assert comparison.passes, str(comparison)


@pytest.mark.slow
def test_centres_that_forget_the_number_of_rows_are_caught(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named mutant: centres are as uncertain as if an expert had no rows."""

    def forgetful(
        m: Array, u: Array, nu: Array, B_inv: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        return draw_places(m, np.full_like(u, PRIOR.u0), nu, B_inv, rng)

    monkeypatch.setattr(gibbs, "draw_places", forgetful)
    comparison = run(SHORT, seed)
    assert not comparison.passes, str(comparison)


@pytest.mark.slow
def test_sticks_that_forget_the_rows_are_caught(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named mutant: the sticks are drawn from their prior."""

    def forgetful(n: Array, alpha: float, rng: np.random.Generator) -> Array:
        return draw_sticks(np.zeros_like(n), alpha, rng)

    monkeypatch.setattr(gibbs, "draw_sticks", forgetful)
    comparison = run(4 * SHORT, seed)
    assert not comparison.passes, str(comparison)
