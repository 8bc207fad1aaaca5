"""Random streams: one seed, one result, whoever does the work.

Every step of the sampler (a column's augmentation, the row update, ...) and every row block of a
chain has a stream of its own, so a draw depends on what it updates and never on the thread or
process that makes it. A stream is NumPy's SFC64, the fastest of its generators, started by a
`SeedSequence` that is keyed by seed, chain, step and block: NumPy's way to independent streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

START, ROWS, WEIGHTS, HYPER, CELLS, CHECKS, TABLES, DRAWS, FOLD, BITS, PARTS, LEARN = range(12)
EFFECTS = 12
_COLUMN = 16
_BATCHES = 2**32 - 1  # beyond all chains
_WORDS = 8  # of one stream's state, as `save` writes it


def column_step(d: int) -> int:
    """Return the step that owns the draws of column `d`."""
    return _COLUMN + d


def seed_of_batch(seed: int, number: int) -> int:
    """Return the seed of a batch of rows, the run's own of the first."""
    if number == 0:
        return seed
    words = np.random.SeedSequence(seed, spawn_key=(_BATCHES, number)).generate_state(2, np.uint64)
    return int(words[0]) + (int(words[1]) << 64)


class Streams:
    """The random streams of one chain.

    seed : the run's seed, >= 0
    chain : which chain; two chains share no draws. Streams that were loaded do not know it.
    """

    def __init__(self, seed: int, chain: int) -> None:
        self.chain = chain
        sequence = np.random.SeedSequence(seed, spawn_key=(chain,))
        self._key = sequence.generate_state(2, np.uint64)
        self._generators: dict[tuple[int, int], np.random.Generator] = {}

    def get(self, step: int, block: int = 0) -> np.random.Generator:
        """Return the generator of a step and row block; the same object every time."""
        generator = self._generators.get((step, block))
        if generator is None:
            sequence = np.random.SeedSequence(list(map(int, self._key)), spawn_key=(step, block))
            generator = np.random.Generator(np.random.SFC64(sequence))
            self._generators[step, block] = generator
        return generator

    def save(self) -> dict[str, np.ndarray]:
        """Return where every stream stands, as plain arrays (step, block, state words)."""
        rows = []
        for (step, block), generator in sorted(self._generators.items()):
            state = generator.bit_generator.state
            words = np.concatenate(
                [
                    np.array([step, block], dtype=np.uint64),
                    np.array([state["has_uint32"], state["uinteger"]], dtype=np.uint64),
                    state["state"]["state"],
                ]
            )
            rows.append(words)
        states = np.array(rows, dtype=np.uint64).reshape(-1, _WORDS)
        return {"key": self._key.copy(), "streams": states}

    @classmethod
    def load(cls, arrays: Mapping[str, np.ndarray]) -> Streams:
        """Return streams that go on where `save` was called.

        Raises ValueError when the arrays are not what `save` returns.
        """
        if arrays.keys() != {"key", "streams"}:
            raise ValueError("the random state is missing")
        streams = cls(0, 0)
        key, states = (np.asarray(arrays[name]) for name in ("key", "streams"))
        if key.shape != (2,) or states.ndim != 2 or states.shape[1] != _WORDS:
            raise ValueError("the random state has another shape")
        if key.dtype != np.uint64 or states.dtype != np.uint64:
            raise ValueError("the random state is not made of 64-bit words")
        if np.any(states[:, 2:4] > np.array([1, 2**32 - 1], dtype=np.uint64)):
            raise ValueError("the random state is out of range")
        streams._key = key.copy()
        for words in states:
            generator = streams.get(int(words[0]), int(words[1]))
            state: dict[str, Any] = dict(generator.bit_generator.state)
            state["has_uint32"] = int(words[2])
            state["uinteger"] = int(words[3])
            state["state"]["state"] = words[4:].copy()
            generator.bit_generator.state = state
        return streams
