"""The mixture of experts as the driver sees it: an ascent for one table or many tasks, a sampler.

A problem has the `TaskTables` that it is fitted to. What is kept of a restart is a `Member`, of a
sweep a `Drawn`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.capabilities import Round
from glfm_cli.latent.iqgme.ascent import CoordinateAscent
from glfm_cli.latent.iqgme.deviations import OwnSums
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.fit import ROUGH, Member, Start, begin, weights_of
from glfm_cli.latent.iqgme.forms import Form, forms_of, labelled_in
from glfm_cli.latent.iqgme.gibbs import GibbsState, start_gibbs, sweep
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.left_out_labels import (
    every_level,
    left_out_labels,
    left_out_levels,
    left_out_score,
)
from glfm_cli.latent.iqgme.level_data import LevelData
from glfm_cli.latent.iqgme.local import sound
from glfm_cli.latent.iqgme.packing import (
    drawn_in,
    experts_in,
    local_in,
    member_in,
    out,
    own_in,
    past_in,
    prefixed,
    sums_in,
    under,
    usage_in,
)
from glfm_cli.latent.iqgme.prior import IqgmeConfig, Prior, forms_for
from glfm_cli.latent.iqgme.rows import KnownRows
from glfm_cli.latent.iqgme.tasks import TaskStart, begin_tasks, omega_for, told_by_labels
from glfm_cli.latent.iqgme.temperature import inverse_temperature
from glfm_cli.latent.model import Kind, Progress, Sees, Sizes, Values, take
from glfm_cli.streams import START, Streams

SLACK = 8.0  # by how much log probabilities of labels left out differ without saying much

@dataclass(eq=False)
class TaskTables:
    """What is fitted: the rows of one table, or of each of several tasks.

    restarts : of the fit;  pool : for parts of a restart where the driver lends threads
    stop : asked whether to end while the scale of tasks' deviations is looked for
    """

    rows: tuple[KnownRows, ...]
    config: IqgmeConfig
    many: bool
    restarts: int
    pool: ThreadPoolExecutor | None = None
    stop: Callable[[], bool] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def n_label(self) -> int:
        """Return the number of the label's variables."""
        return self.rows[0].n_label

    @cached_property
    def _prepared(self) -> list[tuple[Form, float | None]]:
        forms = forms_of(self.config, self.rows)
        if not self.many:
            return [(form, None) for form in forms]
        return [(form, omega_for(self.rows, form, self.config, self.stop)) for form in forms]

    @property
    def forms(self) -> list[Form]:
        """Return the forms that restarts have, in turn."""
        with self._lock:  # the first restarts begin side by side
            return [form for form, _ in self._prepared]

    def form_of(self, restart: int) -> tuple[Form, float | None]:
        """Return the form of a restart, and the precision of tasks' deviations if they have some.

        The first restarts are of the first form, and so on.
        """
        forms = self.forms
        return self._prepared[restart * len(forms) // self.restarts]

    @property
    def data(self) -> Any:
        """Return the rows as starts take them."""
        return self.rows if self.many else self.rows[0]


@dataclass(eq=False)
class State:
    """A restart: where it stands, the form of its experts, and what it is fitted to."""

    start: CoordinateAscent
    form: Form
    place: int
    tables: TaskTables

    def left_out(self, levels: Sequence[LevelData]) -> Array:
        """Return the log probability of levels of each labelled row, were its label not known."""
        start, rows = self.start, self.tables.rows[0]
        assert isinstance(start, Start)
        q, local = start.experts, start.local
        if isinstance(q, Experts):
            return left_out_labels(rows, q, local, self.form.prior.u0, levels)
        return left_out_levels(self.form, rows, q, None, q.pi, local, levels)


def tables_of(values: Values) -> TaskTables:
    """Return what a problem is fitted to."""
    tables: TaskTables = values.problem.tables
    return tables


class ExpertsModel:
    """What fits of the mixture of experts have in common."""

    Config = IqgmeConfig
    sees: Sees = "values"
    layouts = frozenset({"dense"})

    def cells_law(self, draw: Any, rows: Any) -> Any:
        """Raise: labels and features have laws of their own, see `label_law`."""
        raise TypeError("the laws of labels and features are those of `label_law`")

    def joint(self, draw: Any, rows: Any, rng: np.random.Generator) -> Any:
        """Raise, as `cells_law` does."""
        raise TypeError("the laws of labels and features are those of `label_law`")

    def fold_in(self, draw: Any, values: Values, sweeps: int, rng: np.random.Generator) -> Any:
        """Return the draw: new rows change nothing of what rows share."""
        return draw

    def warnings(self, state: Any) -> list[str]:
        """Return nothing."""
        return []


class ExpertAscent(ExpertsModel):
    """Variational fits, of one table or of many tasks that share experts."""

    name = "iqgme"
    kind: Kind = "ascent"

    def start(self, values: Values, config: IqgmeConfig, streams: Streams, chain: int) -> State:
        """Return restart number `chain`."""
        tables, rng = tables_of(values), streams.get(START)
        form, omega = tables.form_of(chain)
        if tables.many:
            start: Any = begin_tasks(tables.rows, form, config, rng, chain, omega)
        else:
            start = begin(tables.rows[0], form, config, rng, chain)
        return State(start, form, chain, tables)

    def step(self, state: State, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one iteration, or one move to fewer experts."""
        tables, start, made = tables_of(values), state.start, len(state.start.bounds)
        config = replace(tables.config, tolerance=values.tolerance * tables.config.tolerance)
        with sound():
            pool = tables.pool if values.threads > 1 else None
            start.step(tables.data, state.form, config, pool)
        bound = start.bounds[-1] if len(start.bounds) > made else None
        return Progress(bound, start.converged)

    # How restarts compete ------------------------------------------------------------------

    def rounds(self, problem: Any, restarts: int) -> Sequence[Round]:
        """Return a short round, one of the better half, and one for the best alone.

        Where one is to predict alone, the better half goes on for twice as many steps, and so on.
        """
        config: IqgmeConfig = problem.config
        steps, most = min(config.short, config.iterations), config.iterations
        last = Round(most, best_alone=True)
        if config.average:
            return [Round(steps), Round(most, halve=True, tolerance=ROUGH), last]
        rounds, left, budget = [Round(steps)], restarts, config.short
        while left > 1:
            left, budget = (left + 1) // 2, 2 * budget
            rounds.append(Round(min(budget, most), halve=True))
        return [*rounds, last]

    def group(self, problem: Any, restart: int) -> int:
        """Return the form of a restart: what a few steps give does not say which form ends best."""
        tables: TaskTables = problem.tables
        if not tables.config.average:
            return 0
        n_rows = sum(len(rows.x) for rows in tables.rows)
        sizes = n_rows, tables.rows[0].n_features, labelled_in(tables.rows)
        n_forms = len(forms_for(tables.config, *sizes))
        return restart * n_forms // tables.restarts

    def enter(self, state: State, best_alone: bool) -> bool:
        """Let the best go on though it may have converged roughly."""
        if best_alone:
            state.start.quiet = 0
        return state.start.converged

    def score(self, state: State, values: Values, bound: float) -> float:
        """Return the bound, or where it is about features alone, what it gives to labels."""
        tables, start = tables_of(values), state.start
        if isinstance(start, Start):
            rows = tables.rows[0]
            if rows.label is None or not rows.labelled.any():
                return bound
            return float(state.left_out([rows.label])[rows.labelled].sum())
        if not (isinstance(start, TaskStart) and told_by_labels(tables.rows)):
            return bound
        q, shares = start.experts, start.usage.weights
        return left_out_score(state.form, tables.rows, q, start.own, shares, start.locals)

    def weights(self, problem: Any, scores: Mapping[int, float]) -> list[float]:
        """Return the weights of restarts that predict together."""
        tables: TaskTables = problem.tables
        values = list(scores.values())
        if tables.many and told_by_labels(tables.rows):
            return [float(w) for w in softmax(values)]
        if not tables.many and tables.rows[0].labelled.any():
            return [float(w) for w in softmax(np.array(values) / SLACK)]
        return weights_of(values, tables.forms, tables.n_label)

    # What is kept --------------------------------------------------------------------------

    def trace(self, state: State) -> dict[str, float]:
        """Return how many experts there are."""
        return {"experts": float(state.start.experts.H)}

    def draw(self, state: State) -> Member:
        """Return what predicts, of weight 1."""
        start = state.start
        if isinstance(start, TaskStart):
            return Member(start.experts, 1.0, start.usage.weights, start.own)
        assert isinstance(start, Start)
        rows = state.tables.rows[0]
        if rows.label is None or not rows.labelled.any():
            return Member(start.experts, 1.0)
        log_p, code = state.left_out(every_level(rows))[rows.labelled], rows.label.x[rows.labelled]
        power = inverse_temperature(log_p, code)
        return Member(start.experts, 1.0, power=power, left_out=log_p)

    def save(self, state: State) -> dict[str, Array]:
        """Return the restart as named arrays."""
        start = state.start
        flags = [start.quiet, start.moved, start.tried, start.free, state.place]
        arrays = {"bounds": np.array(start.bounds), "flags": np.array(flags, dtype=np.int64)}
        arrays |= prefixed("experts.", out(start.experts))
        arrays |= {} if start.sums is None else prefixed("sums.", out(start.sums))
        if not isinstance(start, TaskStart):
            assert isinstance(start, Start)
            arrays |= prefixed("past.", out(start.past))
            return arrays | prefixed("local.", out(start.local))
        for j, local in enumerate(start.locals):
            arrays |= prefixed(f"local.{j}.", out(local))
        arrays |= prefixed("usage.", out(start.usage))
        arrays |= {} if start.own is None else prefixed("own.", out(start.own))
        return arrays | (
            {} if start.own_sums is None else prefixed("own_sums.", out(start.own_sums))
        )

    def load(self, arrays: Mapping[str, Array], values: Values, config: IqgmeConfig) -> State:
        """Return the restart that `save` was given."""
        tables = tables_of(values)
        quiet, moved, tried, free, place = map(int, take(arrays, "flags", np.int64, (5,)))
        if not 0 <= place < tables.restarts or min(quiet, free) < 0:
            raise ValueError("'flags' does not fit")
        form, J = tables.form_of(place)[0], len(tables.rows)
        q = experts_in(under(arrays, "experts."), tables.rows[0].n_features, tables.n_label + 1)
        if getattr(q, "L", 0) != getattr(form.prior, "L", 0):
            raise ValueError("experts have another number of factors than the settings say")
        common: dict[str, Any] = {
            "sums": sums_in(under(arrays, "sums."), form.zero(q)),
            "bounds": take(arrays, "bounds", np.float64, (None,)).tolist(),
            "quiet": quiet,
            "moved": bool(moved),
            "tried": bool(tried),
            "free": free,
        }
        if not tables.many:
            local = local_in(under(arrays, "local."), tables.rows[0], q, q.H)
            past = past_in(under(arrays, "past."), q.rules)
            return State(Start(q, local, past=past, **common), form, place, tables)
        usage = usage_in(under(arrays, "usage."), J, q.H)
        n_atoms = usage.sigma.shape[1]
        locals_ = [
            local_in(under(arrays, f"local.{j}."), rows, q, n_atoms)
            for j, rows in enumerate(tables.rows)
        ]
        own, rules = under(arrays, "own."), q.rules
        deviations = own_in(own, rules, J) if own else None
        zero = OwnSums.zero(J, q.H, rules.K, rules.F)
        sums = sums_in(under(arrays, "own_sums."), zero)
        return State(TaskStart(q, usage, locals_, deviations, sums, **common), form, place, tables)

    def pack(self, draw: Member) -> dict[str, Array]:
        """Return a member as named arrays."""
        return out(draw)

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> Member:
        """Return a member of `sizes.latent` features, with tasks if it has shares of them."""
        n_tasks = len(arrays["shares"]) if "shares" in arrays else None
        phi = "experts.core.phi" if "experts.core.phi" in arrays else "experts.phi"
        K = len(take(arrays, phi, np.float64, (None, None)))
        return member_in(arrays, sizes.latent, K + 1, n_tasks)


@dataclass(eq=False)
class GibbsChain:
    """A chain of the sampler, and the log likelihood of its last sweep, up to a constant."""

    gibbs: GibbsState
    log_p: float = 0.0


class ExpertSampler(ExpertsModel):
    """The Gibbs sampler, of one table and experts of full covariances."""

    name = "iqgme"
    kind: Kind = "gibbs"

    def start(
        self, values: Values, config: IqgmeConfig, streams: Streams, chain: int
    ) -> GibbsChain:
        """Return the state that a chain begins with."""
        rows, prior = self._rows(values, config)
        return GibbsChain(start_gibbs(rows, prior, config, streams.get(START)))

    def _rows(self, values: Values, config: IqgmeConfig) -> tuple[KnownRows, Prior]:
        rows = tables_of(values).rows[0]
        return rows, Prior.of(config, rows.n_features)

    def step(self, state: GibbsChain, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one sweep."""
        rows, prior = self._rows(values, values.problem.config)
        with sound():
            log_p = sweep(state.gibbs, rows, prior, streams.get(START))
        if not np.isfinite(log_p):
            raise NumericalError("the log likelihood of the mixture is not a finite number")
        state.log_p = log_p
        return Progress()

    def trace(self, state: GibbsChain) -> dict[str, float]:
        """Return the log likelihood before the last sweep."""
        return {"log_likelihood": state.log_p}

    def draw(self, state: GibbsChain) -> Drawn:
        """Return the experts as they are."""
        q = state.gibbs.q
        return replace(q, mw=q.mw.copy(), lam=q.lam.copy(), zeta=q.zeta.copy())

    def save(self, state: GibbsChain) -> dict[str, Array]:
        """Return the chain as named arrays."""
        g = state.gibbs
        arrays = {"x": g.x, "t": g.t, "z": g.z.astype(np.int64)}
        return arrays | prefixed("q.", out(g.q)) | {"log_p": np.array(state.log_p)}

    def load(self, arrays: Mapping[str, Array], values: Values, config: IqgmeConfig) -> GibbsChain:
        """Return the chain that `save` was given."""
        rows, _ = self._rows(values, config)
        (n, P), K, H = rows.x.shape, rows.n_label, config.experts
        shapes = {"x": (n, P), "t": (n, K)}
        x, t = (take(arrays, name, np.float64, shape).copy() for name, shape in shapes.items())
        z = take(arrays, "z", np.int64, (n,)).copy()
        if n and not (z.min() >= 0 and z.max() < H):
            raise ValueError("'z' is out of range")
        q = drawn_in(under(arrays, "q."), H, P, K)
        log_p = float(take(arrays, "log_p", np.float64, ()))
        return GibbsChain(GibbsState(q, z, x, t), log_p)

    def pack(self, draw: Drawn) -> dict[str, Array]:
        """Return a draw as named arrays."""
        return out(draw)

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> Drawn:
        """Return a draw of `sizes.latent` features."""
        K = len(take(arrays, "zeta", np.float64, (None, None)))
        return drawn_in(arrays, None, sizes.latent, K)


def experts_model(config: IqgmeConfig) -> ExpertAscent | ExpertSampler:
    """Return the model that a configuration asks for."""
    return ExpertSampler() if config.inference == "gibbs" else ExpertAscent()
