"""A chain that was saved goes on exactly as if it had not been."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.completion import prepare
from glfm_cli.inference.chain import Chain, load_chain, start_chain
from glfm_cli.latent.model import Problem
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.streams import Streams

pytestmark = pytest.mark.kernels

TYPES = {
    "columns": {
        "a": "real",
        "p": {"type": "positive", "transform": "none"},
        "n": "count",
        "city": "categorical",
        "k": "ordinal",
    }
}
SETTINGS: list[dict[str, object]] = [
    {},
    {"prior_scale": "independent"},
    {"bias": False, "initial_features": 3},
    {"alpha": 2, "weight_variance": 1, "link_noise": 0.1},
    {"max_features": 2},
]


def problem_of(settings: dict[str, object]) -> Problem:
    n = 60
    rng = np.random.default_rng(4)
    gap = rng.random((5, n)) < 0.2
    values = {
        "a": rng.normal(size=n),
        "p": np.where(rng.random(n) < 0.2, 0.0, rng.gamma(3, size=n)),
        "n": rng.poisson(4, n),
        "city": np.array(list("xyz"))[rng.integers(0, 3, n)],
        "k": rng.integers(0, 4, n),
    }
    table = pa.table(
        {
            name: pa.array(column.tolist(), mask=gap[i])
            for i, (name, column) in enumerate(values.items())
        }
    )
    plan = {"model": "glfm", "chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}
    return prepare(table, TYPES, settings=settings, **plan)[0]  # type: ignore[arg-type]


def bytes_of(chain: Chain) -> bytes:
    return to_stream(chain.save())


def through_a_file(problem: Problem, chain: Chain) -> Chain:
    return load_chain(problem, read_one(pa.py_buffer(bytes_of(chain))))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("adapting", [0, 8])
def test_a_saved_chain_goes_on_bit_for_bit(settings: dict[str, object], adapting: int) -> None:
    """Saved after each of its sweeps, in the warm-up and after it, or never."""
    problem = problem_of(settings)
    straight = start_chain(problem, Streams(3, 1))
    broken = start_chain(problem, Streams(3, 1))
    for sweep in range(12):
        straight.sweep(adapt=sweep < adapting)
        broken.sweep(adapt=sweep < adapting)
        broken = through_a_file(problem, broken)
    assert straight.done == broken.done == 12
    assert bytes_of(straight) == bytes_of(broken)
    assert straight.keep().trace == broken.keep().trace
    assert problem.model.warnings(straight.state) == problem.model.warnings(broken.state)


def test_keeping_a_draw_changes_nothing_that_follows() -> None:
    problem = problem_of({})
    kept, not_kept = (start_chain(problem, Streams(3, 1)) for _ in range(2))
    for _ in range(5):
        kept.sweep(adapt=True)
        kept.keep()
        not_kept.sweep(adapt=True)
    assert bytes_of(kept) == bytes_of(not_kept)


@pytest.mark.parametrize("name", sorted(start_chain(problem_of({}), Streams(0, 0)).save()))
def test_a_state_without_an_array_or_with_another_is_refused(name: str) -> None:
    problem = problem_of({})
    chain = start_chain(problem, Streams(3, 1))
    chain.sweep(adapt=True)
    arrays = chain.save()
    array = np.asarray(arrays[name])
    bad = [None, array.astype(np.int32), np.zeros((2, 2, 2)), array.reshape(1, *array.shape)]
    if array.dtype == np.float64:
        bad.append(np.full_like(array, np.nan))
    for value in bad:
        spoilt = {**arrays, name: value}
        if value is None:
            del spoilt[name]
        with pytest.raises(ValueError):
            load_chain(problem, spoilt)


def test_a_random_state_out_of_range_is_refused() -> None:
    words = Streams(0, 0)
    words.get(1).random(3)
    for column, value in ((2, 2), (3, 2**32)):
        saved = words.save()
        saved["streams"][0, column] = value
        with pytest.raises(ValueError, match="out of range"):
            Streams.load(saved)
