"""Cells that a fit has not seen, of a model without a posterior, in tables that are drawn.

The q of an ascent is no posterior, and chained equations have none, so that no joint law of
parameters and table stays as it is. Tables are drawn from an ascent's prior, of chained trees from
smooth functions. What does hold of a fit that a user can trust, in both directions:

    u = F(x-) + v (F(x) - F(x-)),  v uniform,  is uniform, F the predictive distribution of x
    regret = log p(x | row, what all rows share) - log p(x | fit)  is 0 or more on average, and
        small where the table says much

The first tells intervals too wide from too narrow ones; the second is Gibbs' inequality, and tells
a fit that has used what it saw from one that knows the columns alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import expit, logsumexp, ndtr
from scipy.stats import poisson, wishart

from glfm_cli.arrays import Array
from glfm_cli.classification.fit import fit_experts
from glfm_cli.completion import prepare
from glfm_cli.completion.matrix.matrix import prepare_matrix
from glfm_cli.encoding import encode_triplets
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import sample
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows, LabelLaw, LevelData, label_law
from glfm_cli.latent.model import Pairs
from glfm_cli.links import LinkConfig, of_levels
from glfm_cli.links.law import GammaPoisson
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.schema import Schema

Rng = np.random.Generator
LARGEST_Z = 4.5


class Unseen(NamedTuple):
    """What a fit says of cells (n,) that it has not seen; regret in nats."""

    u: Array
    regret: Array

    @classmethod
    def of(cls, below: Array, at: Array, regret: Array, rng: Rng) -> Unseen:
        """Return it for F(x-), F(x) and the regret of every cell."""
        return cls(below + rng.random(at.size) * (at - below), regret)

    @classmethod
    def joined(cls, parts: list[Unseen]) -> Unseen:
        """Return the cells of several together."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Limits(NamedTuple):
    """What is known of a fit: by how much the square of u's distance from 1/2 may be off 1/12.

    wide, narrow : share by which it may be smaller (intervals too wide), larger (too narrow)
    regret : nats a cell that it may have
    """

    wide: float
    narrow: float
    regret: float

    def faults(self, seen: Unseen) -> list[str]:
        """Return what lies outside, beyond Monte Carlo error."""
        n = seen.u.size
        mean, error = float(np.mean(seen.u) - 0.5), LARGEST_Z * np.sqrt(1.0 / 12.0 / n)
        spread = float(np.mean(12.0 * (seen.u - 0.5) ** 2) - 1.0)
        spread_error = LARGEST_Z * np.sqrt(0.8 / n)
        regret, regret_error = seen.regret.mean(), LARGEST_Z * seen.regret.std() / np.sqrt(n)
        checks = {
            f"u is {mean:+.3f} off, at most {error:.3f}": abs(mean) <= error,
            f"spread {spread:+.3f}": -self.wide <= spread + spread_error
            and spread - spread_error <= self.narrow,
            f"regret {regret:.3f} below 0": regret >= -regret_error,
            f"regret {regret:.3f} above {self.regret}": regret <= self.regret,
        }
        return [fault for fault, passes in checks.items() if not passes]


def of_column(
    posterior: Posterior, d: int, rows: Array, x: Array, log_true: Array, rng: Rng
) -> Unseen:
    """Return what a posterior says of cells of one column of a table, or of pairs of a matrix."""
    link, ends = posterior.links[d], np.zeros((2, x.size))
    log_p, each = np.full(x.size, -np.inf), np.arange(x.size)
    for draw, share in zip(posterior.draws(), posterior.shares() / posterior.n_draws, strict=True):
        law, params = posterior.cells_law(draw, rows).column(d), draw.params[d]
        log_p = np.logaddexp(log_p, np.log(share) + link.log_density(x, law, params))
        if link.discrete:
            p = of_levels(link).probabilities(law, params)
            sums = np.column_stack([np.zeros(x.size), np.cumsum(p, axis=1)])
            ends += share * np.stack([sums[each, x.astype(int)], sums[each, x.astype(int) + 1]])
        elif isinstance(law, GammaPoisson):
            ends += share * np.stack([law.cdf(x - 1.0), law.cdf(x)])
        else:
            ends += share * link.forecast(x, law, params)[:, 0]
    return Unseen.of(*ends, log_true - log_p, rng)


# clgp, forest: smooth functions of a place ------------------------------------------------------

KINDS = {"real": 5, "ordinal": 1, "categorical": 1}
CLGP = {"model": "clgp", "settings": {"dimensions": 2, "inducing": 20, "iterations": 150}}
FOREST = {"model": "forest", "warmup": 5, "draws": 25, "thin": 1}


def curves(
    rng: Rng, options: Mapping[str, Any], n: int = 250, others: int = 1200
) -> dict[str, Unseen]:
    """Functions with noise of places in two dimensions; three ordered levels, two levels.

    The truth knows functions, noise and thresholds, and of a row's place what its other cells say:
    it is one of `others`, drawn from the prior as those of the rows are.
    """
    kinds = [kind for kind, times in KINDS.items() for _ in range(times)]
    x, D = rng.standard_normal((n + others, 2)), len(kinds)
    z = x * np.exp(0.3 * rng.standard_normal(2))
    square = 0.5 * (z**2).sum(axis=1)
    K = x @ x.T + np.exp(z @ z.T - square[:, None] - square) + 1e-6 * np.eye(n + others)
    f = np.linalg.cholesky(K) @ rng.standard_normal((n + others, D))
    noise = 0.4 * np.exp(0.3 * rng.standard_normal(D))
    cells, log_p = zip(
        *(curve_cells(kind, f[:n, d], f[n:, d], noise[d], rng) for d, kind in enumerate(kinds)),
        strict=True,
    )
    hidden = rng.random((n, D)) < 0.2
    place = sum(np.where(hidden[:, [d]], 0.0, log_p[d]) for d in range(D))
    place -= logsumexp(place, axis=1, keepdims=True)
    columns, types = {}, {}
    for d, kind in enumerate(kinds):
        real = kind == "real"
        text = cells[d] if real else cells[d].astype(str)
        columns[f"c{d}"] = pa.array(text, mask=hidden[:, d])
        how = {"transform": "none"} if real else {"levels": sorted(set(text))}
        types[f"c{d}"] = {"type": kind, **how}
    table, schema = pa.table(columns), {"columns": types}
    problem, _, plan = prepare(table, schema, chains=1, seed=1, **options)
    posterior, found = sample(problem, plan).posterior, {}
    for d, kind in enumerate(kinds):
        rows = np.flatnonzero(hidden[:, d])
        log_true = logsumexp(place[rows] + log_p[d][rows], axis=1)
        name = "numbers" if kind == "real" else "levels"
        seen = of_column(posterior, d, rows, cells[d][rows].astype(float), log_true, rng)
        found.setdefault(name, []).append(seen)
    return {name: Unseen.joined(parts) for name, parts in found.items()}


def curve_cells(kind: str, f: Array, at: Array, sd: float, rng: Rng) -> tuple[Array, Array]:
    """Return the cells (n,) of rows whose function is f, and log p (n, others) were it `at`."""
    y = f + sd * rng.standard_normal(f.size)
    if kind == "real":
        return y, -0.5 * ((y[:, None] - at) / sd) ** 2 - np.log(sd * np.sqrt(2.0 * np.pi))
    if kind == "ordinal":
        cuts = np.quantile(f, [0.3, 0.7])
        ends = np.array([-np.inf, *cuts, np.inf])[:, None]
        code, p = np.searchsorted(cuts, y), np.diff(ndtr((ends - at) / sd), axis=0)
    else:
        code, p = (rng.random(f.size) < expit(2.0 * f)).astype(int), expit([-2.0 * at, 2.0 * at])
    return code, np.log(np.maximum(p, 1e-300))[code]


# cnpf: counts -----------------------------------------------------------------------------------


def cnpf(rng: Rng, rows: int = 150, columns: int = 60, mean: float = 30.0) -> dict[str, Unseen]:
    """Four correlated components; a quarter of the pairs of half the columns hidden.

    The truth knows the rates.  mean : total that a row has about
    """
    T, shape, variance = 4, 0.5, 0.8
    w, location = rng.gamma(2.0, 0.25, T), np.sqrt(variance) * rng.standard_normal((T, 2))
    size = rng.standard_normal((rows, 1))
    x = rng.gamma(w, size=(rows, T)) * np.exp(rng.standard_normal((rows, 2)) @ location.T + size)
    rate = x @ rng.gamma(shape, size=(T, columns)) * mean / (shape * columns * w.sum())
    y = rng.poisson(rate)
    hidden = (rng.random(y.shape) < 0.25) & (np.arange(columns) < columns // 2)
    u, i = np.nonzero(hidden | (y > 0))
    table = pa.table({"u": u, "i": i, "y": pa.array(y[u, i], mask=hidden[u, i])})
    value = {"type": "count", "role": "value", "absent": "zero"}
    types = {"columns": {"u": "row", "i": "column", "y": value}}
    triplets = encode_triplets(table, Schema.from_dict(types))
    settings = {"components": 5, "dimensions": 2, "location_variance": variance}
    problem, _, plan = prepare_matrix(triplets, model="cnpf", chains=1, seed=1, settings=settings)
    posterior = sample(problem, plan).posterior
    gone = np.flatnonzero(~triplets.value.observed)
    pairs = Pairs(*(codes[gone].astype(np.int64) for codes in (triplets.row, triplets.column)))
    # Codes are in the order in which ids come first.
    u = triplets.rows.values.to_numpy()[pairs.row]
    i = triplets.columns.values.to_numpy()[pairs.column]
    log_true, at = poisson.logpmf(y[u, i], rate[u, i]), np.arange(gone.size)
    seen = of_column(posterior.at(pairs), 0, at, y[u, i].astype(float), log_true, rng)
    return {"counts": seen}


# iqgme: experts ---------------------------------------------------------------------------------

EXPERTS = IqgmeConfig(
    experts=4, factors=0, alpha_shape=2.0, expert_degrees=4.0, scale_shape=8.0,
    weight_shape=3.0, weight_rate=3.0, rate_shape=6.0, weight_center=0.5,
)  # fmt: skip
P = 3


class Truth(NamedTuple):
    """Shares (H,), centres (H, P), covariances (H, P, P) and coefficients (H, P + 1) of experts."""

    pi: Array
    mu: Array
    cov: Array
    w: Array

    @classmethod
    def drawn(cls, config: IqgmeConfig, rng: Rng) -> Truth:
        """Return experts from the prior."""
        H, nu0 = config.experts, P + config.expert_degrees
        alpha = rng.gamma(config.alpha_shape) / config.alpha_rate
        v = np.append(rng.beta(1.0, alpha, H - 1), 1.0)
        pi = v * np.cumprod(np.append(1.0, 1.0 - v[:-1]))
        rate = rng.gamma(config.rate_shape, config.weight_rate / config.rate_shape)
        rates = np.append(np.full(P, rate), config.weight_rate)
        lam = rng.gamma(config.weight_shape, size=P + 1) / rates
        zeta = rng.standard_normal(P + 1) / np.sqrt(config.weight_center * lam)
        w = zeta + rng.standard_normal((H, P + 1)) / np.sqrt(lam)
        scale = rng.gamma(config.scale_shape, size=H) / config.scale_shape
        unit = np.atleast_3d(wishart(nu0, np.eye(P) / nu0).rvs(H, random_state=rng))
        cov = scale[:, None, None] * config.expert_variance * np.linalg.inv(unit)
        wide = zip(np.zeros((H, P)), cov / config.center_precision, strict=True)
        return cls(pi, np.array([rng.multivariate_normal(*each) for each in wide]), cov, w)

    def log_p(self, x: Array, known: Array, k: int, positive: bool) -> tuple[float, float]:
        """Return log p of feature k of a row, and of its label, given its known features."""
        log_gate, log_x, log_label = np.log(self.pi), [], []
        for h, (mu, cov, w) in enumerate(zip(self.mu, self.cov, self.w, strict=True)):
            own, away = cov[np.ix_(known, known)], (x - mu)[known]
            regression = np.linalg.solve(own, cov[known]).T
            mean, left = mu + regression @ away, cov - regression @ cov[known]
            log_det = np.linalg.slogdet(2.0 * np.pi * own)[1]
            log_gate[h] -= 0.5 * (away @ np.linalg.solve(own, away) + log_det)
            log_x.append(
                -0.5 * ((x[k] - mean[k]) ** 2 / left[k, k] + np.log(2 * np.pi * left[k, k]))
            )
            score = (w[:P] @ mean + w[P]) / np.sqrt(1.0 + w[:P] @ left @ w[:P])
            log_label.append(np.log(np.maximum(ndtr(score if positive else -score), 1e-300)))
        log_gate -= logsumexp(log_gate)
        return logsumexp(log_gate + log_x), logsumexp(log_gate + log_label)


def iqgme(rng: Rng, n: int = 120, new: int = 200) -> dict[str, Unseen]:
    """Features and labels of new rows of four experts, a fifth of all features missing."""
    truth, each = Truth.drawn(EXPERTS, rng), np.arange(new)
    z = rng.choice(EXPERTS.experts, n + new, p=truth.pi)
    x = np.array([rng.multivariate_normal(truth.mu[h], truth.cov[h]) for h in z])
    score = np.einsum("np,np->n", truth.w[z], np.column_stack([x, np.ones(n + new)]))
    label = (score + rng.standard_normal(n + new) > 0.0).astype(float)
    known, k = rng.random(x.shape) >= 0.2, rng.integers(0, P, new)
    known[n + each, k] = False  # to be predicted

    def rows(at: slice) -> KnownRows:
        levels = LevelData(
            OrdinalLink("label", 2, LinkConfig()), {"thresholds": np.zeros(1)}, label[at]
        )
        seen = known[at]
        return KnownRows(np.where(seen, x[at], 0.0), seen, levels, np.ones(len(seen), dtype=bool))

    fit = fit_experts(rows(slice(n)), EXPERTS, chains=2, seed=1)
    laws = [label_law(rows(slice(n, None)), one.experts, features=True) for one in fit.members]
    law = LabelLaw.average(laws, [one.weight for one in fit.members])
    log_true = np.array([
        truth.log_p(x[i], np.flatnonzero(known[i]), k[i - n], label[i] > 0.0)
        for i in range(n, n + new)
    ]).T  # fmt: skip
    sd = np.sqrt(law.x_var[:, each, k])
    away = (x[n + each, k] - law.x[:, each, k]) / sd
    u = (law.gate * ndtr(away)).sum(axis=0)
    log_p = logsumexp(-0.5 * away**2 - np.log(sd * np.sqrt(2.0 * np.pi)), axis=0, b=law.gate)
    above = (law.gate * ndtr(law.mean[..., 0] / np.sqrt(law.var[..., 0]))).sum(axis=0)
    yes = label[n:] > 0.0
    ends = np.where(yes, 1.0 - above, 0.0), np.where(yes, 1.0, 1.0 - above)
    return {
        "features": Unseen(u, log_true[0] - log_p),
        "labels": Unseen.of(*ends, log_true[1] - np.log(ends[1] - ends[0]), rng),
    }


class Judged(NamedTuple):
    """How a model sees cells of tables that are drawn, in so many tables, and limits."""

    draw: Callable[[Rng], dict[str, Unseen]]
    tables: int
    limits: dict[str, Limits]

    def faults(self, tables: int, seed: int) -> list[str]:
        """Return what is wrong of the cells of so many tables."""
        found: dict[str, list[Any]] = {}
        for number in range(tables):
            for kind, seen in self.draw(np.random.default_rng([seed, number])).items():
                found.setdefault(kind, []).append(seen)
        assert found.keys() == self.limits.keys()
        return [
            f"{kind}: {fault}"
            for kind, parts in found.items()
            for fault in self.limits[kind].faults(Unseen.joined(parts))
        ]


UNSEEN = {
    "clgp": Judged(
        partial(curves, options=CLGP),
        4,
        {"numbers": Limits(0.15, 0.0, 0.5), "levels": Limits(0.05, 0.05, 0.2)},
    ),
    "forest": Judged(
        partial(curves, options=FOREST),
        4,
        {"numbers": Limits(0.2, 0.0, 0.6), "levels": Limits(0.1, 0.0, 0.3)},
    ),
    "cnpf": Judged(cnpf, 8, {"counts": Limits(0.0, 0.1, 0.15)}),
    "iqgme": Judged(
        iqgme, 8, {"features": Limits(0.0, 0.1, 0.25), "labels": Limits(0.05, 0.0, 0.05)}
    ),
}
