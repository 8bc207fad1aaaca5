"""Chains of several models side by side.

Chain c is one of the candidate that the settings give it, and leaves that model's posterior as it
is: nothing is shared between chains. How much each candidate counts is no matter of this model:
`inference.stacking` finds it, column by column, by cells that were hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.capabilities import JoinsRows, RefusesTypes, SuitsOthers
from glfm_cli.latent.model import Kind, LatentModel, Problem, Rows, Sees, Sizes, take
from glfm_cli.links.law import RowsLaw
from glfm_cli.settings import require, require_whole

MOST = 8  # chains of one candidate among the first
COUNTS = "glfm", "mixture", "bsvd", "forest", "linear"  # of chains, in the candidates' order
FROM = {"linear": 1.5}  # turns: where chains are few, two of each of the others come before


@dataclass(frozen=True)
class AutoConfig:
    """Of which models chains are: so many of each in turn, until there are as many as asked for.

    glfm : chains of the latent feature model
    mixture : chains of the mixture of normals
    bsvd : chains of the low-rank model
    forest : chains of chained extra trees; none where a column is of a type that these do not take
    linear : chains of the latent feature model with a linear part
    search : whether candidates search for the ways that forecast each column best, such as the size
        of trees' leaves; it takes half of the time of short chains
    """

    glfm: int = 2
    mixture: int = 0
    bsvd: int = 0
    forest: int = 3
    linear: int = 2
    search: bool = True

    def __post_init__(self) -> None:
        require_whole(self, **dict.fromkeys(COUNTS, (0, MOST)))
        require(len(self.turns) > 0, "glfm", self.glfm, "one candidate at least")

    @property
    def turns(self) -> tuple[int, ...]:
        """Return the candidates of the first chains, which those after them repeat."""
        each = [
            (max(t, FROM.get(name, 0)), k)
            for k, name in enumerate(COUNTS)
            for t in range(getattr(self, name))
        ]
        return tuple(k for _, k in sorted(each))


@dataclass(frozen=True, eq=False)
class AutoDraw:
    """A snapshot: the place of the candidate, and that model's snapshot."""

    which: int
    own: Any


@dataclass(frozen=True)
class Auto:
    """Chains of candidates. A chain is its candidate's own; what is asked of a draw is, too.

    models : the candidates, by the names of their settings
    """

    models: Mapping[str, LatentModel] = field(default_factory=dict)

    name = "auto"
    Config = AutoConfig
    sees: Sees = "gaussian"
    kind: Kind = "gibbs"
    layouts = frozenset({"dense"})

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return the names of the candidates."""
        return tuple(self.models)

    def config_for(self, kinds: Sequence[str], layout: str) -> AutoConfig:
        """Return no chains of candidates that do not take all types of columns."""
        refused: dict[str, Any] = {
            name: 0
            for name, model in self.models.items()
            if isinstance(model, RefusesTypes) and model.refuses & set(kinds)
        }
        return AutoConfig(**refused)

    def several(self, kinds: Sequence[str]) -> bool:
        """Return whether chains are of candidates that see values, too, where nothing is set."""
        models = list(self.models.values())
        return any(models[k].sees != self.sees for k in self.config_for(kinds, "dense").turns)

    def with_each(self, change: Callable[[LatentModel], LatentModel]) -> Auto:
        """Return the same of changed candidates, but of those that see values."""
        models = {n: change(m) if m.sees == self.sees else m for n, m in self.models.items()}
        return replace(self, models=models)

    def turn(self, problem: Problem, index: int) -> int:
        """Return the place of the candidate of which a chain is."""
        turns = problem.config.turns
        return int(turns[index % len(turns)])

    def problem_of(self, problem: Problem, which: int) -> Problem:
        """Return the problem as a candidate alone has it."""
        model = self.models[self.candidates[which]]
        search = problem.config.search
        config = model.config_beside(search) if isinstance(model, SuitsOthers) else model.Config()
        return replace(problem, model=model, config=config)

    def kept_of(self, which: int) -> int:
        """Return of how many draws a chain of a candidate keeps the first."""
        model = self.models[self.candidates[which]]
        return model.kept_beside if isinstance(model, SuitsOthers) else 1

    def mark(self, own: Any, which: int) -> AutoDraw:
        """Return a candidate's snapshot as one of this model."""
        return AutoDraw(which, own)

    def candidate(self, draw: AutoDraw) -> int:
        """Return the place of the candidate that made a draw."""
        return draw.which

    def own(self, draw: AutoDraw) -> Any:
        """Return the candidate's own snapshot."""
        return draw.own

    def _model(self, of: AutoDraw) -> LatentModel:
        return self.models[self.candidates[of.which]]

    def cells_law(self, draw: AutoDraw, rows: Rows) -> RowsLaw:
        """Return the law of the cells of some rows under one draw."""
        return self._model(draw).cells_law(draw.own, rows)

    def joint(self, draw: AutoDraw, rows: Rows, rng: np.random.Generator) -> RowsLaw:
        """Return a law given which the cells of the rows are independent."""
        return self._model(draw).joint(draw.own, rows, rng)

    def save(self, state: Any) -> dict[str, Array]:
        """Return nothing: the candidate's chain saves itself."""
        return {}

    def draw(self, state: Any) -> Any:
        """Return nothing, likewise."""

    def trace(self, state: Any) -> dict[str, float]:
        """Return nothing: candidates have no scalars in common."""
        return {}

    def warnings(self, state: Any) -> list[str]:
        """Return nothing: advice of a candidate is about settings that are not here."""
        return []

    def join_rows(self, draws: Sequence[AutoDraw]) -> AutoDraw:
        """Return the candidate's draw of all rows, below each other."""
        model = self._model(draws[0])
        assert isinstance(model, JoinsRows)
        return AutoDraw(draws[0].which, model.join_rows([draw.own for draw in draws]))

    def pack(self, draw: AutoDraw) -> dict[str, Array]:
        """Return the candidate's arrays, and which it is."""
        which = np.array(draw.which, dtype=np.int32)
        return {"candidate": which, **self._model(draw).pack(draw.own)}

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> AutoDraw:
        """Return the snapshot that `pack` was given."""
        which = self.candidate_in(arrays)
        return AutoDraw(which, self.models[self.candidates[which]].unpack(arrays, sizes))

    def candidate_in(self, arrays: Mapping[str, Array]) -> int:
        """Return the place of the candidate whose arrays these are; ValueError if nobody's."""
        which = int(take(arrays, "candidate", np.int32, ()))
        if not 0 <= which < len(self.models):
            raise ValueError(f"'candidate' is {which}, expected 0 to {len(self.models) - 1}")
        return which
