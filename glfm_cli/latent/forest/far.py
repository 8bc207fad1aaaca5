"""Trees and lines of cells that nobody near tells of: see `related`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.trees import Trees, Units, grow, scaled


@dataclass(frozen=True, eq=False)
class Far:
    """Those of a kept draw: of columns that have such cells beside others, none of the rest."""

    trees: Trees
    lines: Lines

    @classmethod
    def grow(
        cls,
        two: Array,
        z: Array,
        seen: Array,
        told: Array,
        kinds: Kinds,
        linear: Array,
        n_trees: Array,
        left_out: int,
        least: Array,
        config: ForestConfig,
        rng: np.random.Generator,
        units: Units | None = None,
    ) -> Far:
        """Return those of cells z (F, N), linear and least being as `ForestState` has them.

        two : (D,) bool, which columns have them;  told : (D, N) bool, by which they are scaled
        units : rows that are left out together, as `grow` has it
        """
        there = np.where(two[:, None], seen, 0).astype(np.uint8)
        lines = Lines.fit(z, seen, kinds, np.flatnonzero(two & (linear != 0)).tolist(), rng)
        every, size = range(len(seen)), (n_trees, left_out)
        trees = grow(z, there, kinds, every, *size, least, config, rng, lines, units=units)
        told = told & (there != 0)
        return cls(scaled(trees, z, there, kinds, config.prior, lines, told), lines)

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        parts = {**self.trees.pack(), **self.lines.pack()}
        return {f"far_{name}": part for name, part in parts.items()}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], kinds: Kinds, rows: int) -> Far:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        own = {name[4:]: part for name, part in arrays.items() if name.startswith("far_")}
        trees = Trees.unpack(own, kinds.n_columns, rows, features=kinds.levels.size)
        return cls(trees, Lines.unpack(own, kinds, rows))
