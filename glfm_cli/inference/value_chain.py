"""One chain of a model that sees values: sweeps of a sampler, or iterations of an ascent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError, broke_down
from glfm_cli.inference.chain import inner, params_in, params_out
from glfm_cli.inference.posterior import Draw
from glfm_cli.latent.model import Params, Problem, Progress, ValueModel, Values, sees_values, take
from glfm_cli.streams import Streams

FALL = 1e-8  # relative fall of a bound that is more than rounding


@dataclass
class Ascent:
    """How far an ascent has come.

    bounds : after every iteration that gave one
    scores : by which it was compared at the end of each round that it has been through
    entered : rounds that it has gone into
    done : whether it has converged
    """

    bounds: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    entered: int = 0
    done: bool = False

    def add(self, progress: Progress, model: str) -> None:
        """Take in what a step has reached; NumericalError when its bound fell, or is none."""
        self.done, bound = progress.done, progress.bound
        if bound is None:
            return
        if not np.isfinite(bound):
            raise NumericalError(f"the bound of the model '{model}' is not a finite number")
        most = max(FALL * abs(bound), progress.rounding)
        if not progress.noisy and self.bounds and bound < self.bounds[-1] - most:
            raise NumericalError(
                f"the bound of the model '{model}' fell from {self.bounds[-1]:.10g} to {bound:.10g}"
            )
        self.bounds.append(bound)

    def save(self) -> dict[str, Array]:
        """Return it as named arrays."""
        return {
            "bounds": np.array(self.bounds, dtype=np.float64),
            "scores": np.array(self.scores, dtype=np.float64),
            "at": np.array([self.entered, int(self.done)], dtype=np.int64),
        }

    @classmethod
    def load(cls, arrays: Mapping[str, Array]) -> Ascent:
        """Return what `save` was given; ValueError when it is something else."""
        bounds, scores = (take(arrays, name, np.float64, (None,)) for name in ("bounds", "scores"))
        entered, done = (int(i) for i in take(arrays, "at", np.int64, (2,)))
        if entered < scores.size or done not in (0, 1):
            raise ValueError("'at' does not fit")
        return cls(bounds.tolist(), scores.tolist(), entered, bool(done))


@dataclass
class ValueChain:
    """One chain, ready for its next step; `done` were made."""

    problem: Problem
    streams: Streams
    values: Values
    state: Any
    done: int = 0
    ascent: Ascent = field(default_factory=Ascent)

    @property
    def model(self) -> ValueModel:
        """Return the model."""
        model = self.problem.model
        assert sees_values(model)
        return model

    @property
    def params(self) -> tuple[Params, ...]:
        """Return the parameters of the links."""
        return self.values.params

    def sweep(self, adapt: bool) -> None:
        """Make one step; NumericalError when a covariance lost positive definiteness."""
        try:
            progress = self.model.step(self.state, self.values, self.streams, adapt)
        except np.linalg.LinAlgError as error:
            raise broke_down(error) from error
        if self.model.kind == "ascent":
            self.ascent.add(progress, self.model.name)
        self.done += 1

    def save(self) -> dict[str, Array]:
        """Return all that the coming steps depend on, as named arrays."""
        arrays = {"sweep": np.array(self.done, dtype=np.int64)}
        arrays |= {f"latent.{k}": v for k, v in self.model.save(self.state).items()}
        arrays |= params_out(self.values.params)
        if self.model.kind == "ascent":
            arrays |= {f"ascent.{k}": v for k, v in self.ascent.save().items()}
        return arrays | {f"random.{k}": v for k, v in self.streams.save().items()}

    def keep(self) -> Draw:
        """Return the current state as a draw; that of an ascent traces its bound."""
        trace = dict(self.model.trace(self.state))
        if self.ascent.bounds:
            trace = {"bound": self.ascent.bounds[-1], **trace}
        params = self.values.params
        copies = tuple({name: value.copy() for name, value in p.items()} for p in params)
        return Draw(self.model.draw(self.state), copies, trace)


def start_values(problem: Problem, streams: Streams, index: int, threads: int = 1) -> ValueChain:
    """Return chain number `index` at its starting point."""
    model = problem.model
    assert sees_values(model)
    columns = zip(problem.links, problem.xs, strict=True)
    params = tuple(link.start(x)[0] for link, x in columns)
    values = Values(problem, params, threads=threads)
    return ValueChain(problem, streams, values, model.start(values, problem.config, streams, index))


def load_values(problem: Problem, arrays: Mapping[str, Array], threads: int = 1) -> ValueChain:
    """Return the chain that `ValueChain.save` described; ValueError when it is none."""
    model = problem.model
    assert sees_values(model)
    sweep = int(take(arrays, "sweep", np.int64, ()))
    if sweep < 0:
        raise ValueError(f"'sweep' is {sweep}, expected a number from 0")
    params, streams = params_in(problem.links, arrays), Streams.load(inner(arrays, "random."))
    values = Values(problem, params, threads=threads)
    state = model.load(inner(arrays, "latent."), values, problem.config)
    ascent = Ascent.load(inner(arrays, "ascent.")) if model.kind == "ascent" else Ascent()
    return ValueChain(problem, streams, values, state, sweep, ascent)
