"""Random streams: each step and block its own, the same whoever asks, and saved exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli.streams import CELLS, HYPER, ROWS, START, WEIGHTS, Streams, column_step


class Key(NamedTuple):
    seed: int
    chain: int
    step: int
    block: int


KEYS = st.builds(
    Key,
    st.integers(0, 2**70),
    st.integers(0, 100),
    st.sampled_from([START, ROWS, WEIGHTS, HYPER, CELLS]) | st.integers(0, 999).map(column_step),
    st.integers(0, 10**6),
)


def numbers(key: Key, n: int = 8) -> list[int]:
    rng = Streams(key.seed, key.chain).get(key.step, key.block)
    return rng.integers(0, 2**63, n).tolist()


@given(KEYS, KEYS)
def test_two_streams_share_no_numbers_unless_they_are_one(a: Key, b: Key) -> None:
    shared = set(numbers(a)) & set(numbers(b))
    assert (len(shared) == 8) == (a == b)
    assert len(shared) in (0, 8)


def test_steps_of_columns_never_meet_the_other_steps() -> None:
    steps = [START, ROWS, WEIGHTS, HYPER, CELLS, *(column_step(d) for d in range(50))]
    assert len(set(steps)) == len(steps)


def test_the_same_stream_is_the_same_object_and_goes_on() -> None:
    streams = Streams(1, 0)
    first = streams.get(ROWS)
    assert streams.get(ROWS) is first
    assert streams.get(ROWS, 1) is not first
    whole = Streams(1, 0).get(ROWS).random(6)
    parts = [*first.random(2), *streams.get(ROWS).random(4)]
    np.testing.assert_array_equal(parts, whole)


def test_numbers_do_not_depend_on_which_stream_was_asked_first() -> None:
    forth, back = Streams(5, 2), Streams(5, 2)
    steps = [ROWS, WEIGHTS, column_step(0), column_step(1)]
    a = {step: forth.get(step).random() for step in steps}
    b = {step: back.get(step).random() for step in reversed(steps)}
    assert a == b


@given(st.lists(st.tuples(KEYS, st.sampled_from("unif"), st.integers(1, 5)), max_size=8))
def test_saved_streams_go_on_exactly(asked: list[tuple[Key, str, int]]) -> None:
    streams = Streams(11, 3)
    for key, what, n in asked:
        rng = streams.get(key.step, key.block)
        # 32-bit integers leave half a word behind, normals a varying number of words.
        match what:
            case "u":
                rng.random(n)
            case "n":
                rng.standard_normal(n)
            case "i":
                rng.integers(0, 9, n, dtype=np.uint32)
            case "f":
                rng.random(n, dtype=np.float32)
    again = Streams.load(streams.save())
    for step, block in [(key.step, key.block) for key, _, _ in asked] + [(ROWS, 77)]:
        a, b = streams.get(step, block), again.get(step, block)
        np.testing.assert_array_equal(
            a.integers(0, 9, 5, dtype=np.uint32), b.integers(0, 9, 5, dtype=np.uint32)
        )
        np.testing.assert_array_equal(a.standard_normal(9), b.standard_normal(9))


def test_saving_changes_nothing_and_is_a_copy() -> None:
    streams, other = Streams(4, 0), Streams(4, 0)
    streams.get(ROWS).random(3)
    other.get(ROWS).random(3)
    saved = streams.save()
    streams.get(ROWS).random(5)
    np.testing.assert_array_equal(
        Streams.load(saved).get(ROWS).random(4), other.get(ROWS).random(4)
    )
    assert all(isinstance(array, np.ndarray) for array in saved.values())


def test_streams_look_independent() -> None:
    draws = np.array(
        [
            Streams(s, c).get(step).standard_normal(500)
            for s in (0, 1)
            for c in (0, 1)
            for step in (ROWS, WEIGHTS)
        ]
    )
    correlations = np.corrcoef(draws)[np.triu_indices(8, 1)]
    assert np.max(np.abs(correlations)) < 5 / np.sqrt(500)
