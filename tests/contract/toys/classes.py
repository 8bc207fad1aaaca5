"""A toy model that sees values: classes of rows, fitted by expectation and maximisation.

    z_n ~ shares;  y_ns | z = k ~ N(m_ks, 1),  y the start that the column's link gives its values

The bound is the log likelihood, which no iteration lowers [Dempster, Laird and Rubin 1977].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import spans_of
from glfm_cli.latent.capabilities import Round
from glfm_cli.latent.model import Kind, Progress, Sees, Sizes, Spans, Values, take
from glfm_cli.links import NormalMixture
from glfm_cli.links.law import GivenLatent
from glfm_cli.streams import START, Streams


@dataclass(frozen=True)
class ClassesConfig:
    """Settings: how many `classes`, and the rise of the bound below which it has converged."""

    classes: int = 3
    rise: float = 1e-4


@dataclass(eq=False)
class State:
    """y (N, S), NaN where missing; shares (K,), m (K, S); noise (D,); bound, of the last step."""

    y: Array
    shares: Array
    m: Array
    noise: Array
    rise: float
    spans: Spans
    bound: float = -np.inf

    def log_joint(self) -> Array:
        away = np.nan_to_num(self.y[:, None] - self.m)
        return np.log(self.shares) - 0.5 * (away**2).sum(axis=2)


class Classes:
    """Latent classes by ascent; all restarts run to their end."""

    name = "classes"
    Config = ClassesConfig
    sees: Sees = "values"
    kind: Kind = "ascent"
    layouts = frozenset({"dense"})

    def start(self, values: Values, config: ClassesConfig, streams: Streams, chain: int) -> State:
        y, rng = self._seen(values), streams.get(START)
        m = rng.standard_normal((config.classes, y.shape[1]))
        noise = np.ones(len(values.problem.links))
        shares, spans = np.full(config.classes, 1 / config.classes), spans_of(values.problem.links)
        return State(y, shares, m, noise, config.rise, spans)

    def _seen(self, values: Values) -> Array:
        problem = values.problem
        columns = zip(problem.links, problem.xs, strict=True)
        return np.hstack(
            [np.where(np.isnan(x)[:, None], np.nan, link.start(x)[1]) for link, x in columns]
        )

    def step(self, state: State, values: Values, streams: Streams, adapt: bool) -> Progress:
        log_p = state.log_joint()
        norm = logsumexp(log_p, axis=1)
        r = np.exp(log_p - norm[:, None])
        seen = ~np.isnan(state.y)
        state.m = r.T @ np.nan_to_num(state.y) / np.maximum(r.T @ seen, 1e-12)
        state.shares = np.maximum(r.mean(axis=0), 1e-12)
        before, state.bound = state.bound, float(norm.sum())
        return Progress(state.bound, state.bound - before < values.tolerance * state.rise)

    def trace(self, state: State) -> dict[str, float]:
        return {"largest_share": float(state.shares.max())}

    def draw(self, state: State) -> dict[str, Any]:
        log_p = state.log_joint()
        gate = np.exp(log_p - logsumexp(log_p, axis=1)[:, None])
        arrays = {"gate": gate, "m": state.m, "shares": state.shares, "noise": state.noise}
        return arrays | {"spans": state.spans}

    def cells_law(self, draw: Mapping[str, Any], rows: slice | Array) -> Any:
        gate, m = draw["gate"][rows], draw["m"]

        def column(d: int, at: Any = slice(None)) -> NormalMixture:
            own = m[:, slice(*draw["spans"][d])]
            means = np.broadcast_to(own, (len(gate), *own.shape))
            return NormalMixture(gate[at], means[at], np.full((1, 1, 1), draw["noise"][d]))

        return SimpleNamespace(column=column)

    def joint(
        self, draw: Mapping[str, Any], rows: slice | Array, rng: np.random.Generator
    ) -> GivenLatent:
        gate, m = draw["gate"][rows], draw["m"]
        k = (rng.random((len(gate), 1)) > np.cumsum(gate, axis=1)[:, :-1]).sum(axis=1)
        return GivenLatent(m[k], draw["noise"], draw["spans"])

    def fold_in(
        self, draw: Mapping[str, Any], values: Values, sweeps: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        y = self._seen(values)
        return self.draw(State(y, draw["shares"], draw["m"], draw["noise"], 0.0, draw["spans"]))

    def warnings(self, state: State) -> list[str]:
        return []

    def save(self, state: State) -> dict[str, Array]:
        return {"shares": state.shares, "m": state.m, "bound": np.array(state.bound)}

    def load(self, arrays: Mapping[str, Any], values: Values, config: ClassesConfig) -> State:
        state = self.start(values, config, Streams(0, 0), 0)
        state.shares = take(arrays, "shares", np.float64, state.shares.shape).copy()
        state.m = take(arrays, "m", np.float64, state.m.shape).copy()
        state.bound = float(take(arrays, "bound", np.float64, ()))
        return state

    def pack(self, draw: Mapping[str, Any]) -> dict[str, Array]:
        return {name: value for name, value in draw.items() if name != "spans"}

    def unpack(self, arrays: Mapping[str, Any], sizes: Sizes) -> dict[str, Array]:
        K = take(arrays, "shares", np.float64, (None,)).size
        shapes = {"gate": (sizes.rows, K), "m": (K, sizes.latent), "shares": (K,)}
        shapes["noise"] = (sizes.columns,)
        found = {name: take(arrays, name, np.float64, shape) for name, shape in shapes.items()}
        return found | {"spans": sizes.spans}


class HalvedClasses(Classes):
    """The same where the better half of the restarts goes on after 5 steps."""

    name = "halved-classes"

    def rounds(self, problem: Any, restarts: int) -> Sequence[Round]:
        return [Round(5), Round(1000, halve=True, tolerance=10.0), Round(1000, best_alone=True)]

    def group(self, problem: Any, restart: int) -> int:
        return 0

    def enter(self, state: State, best_alone: bool) -> bool:
        return False

    def score(self, state: State, values: Values, bound: float) -> float:
        return bound

    def weights(self, problem: Any, scores: Mapping[int, float]) -> list[float]:
        return [1 / len(scores)] * len(scores)
