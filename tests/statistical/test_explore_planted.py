"""What is planted is found, and noise is called noise: some tables of the published generator."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from glfm_cli import explore

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "explore_planted.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PATH.stem] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module


bench = load()


def test_the_generator_gives_what_it_promises() -> None:
    one = bench.planted(0, n_rows=4000)
    assert np.allclose(one.Z.mean(axis=0), bench.SHARES, atol=0.03)
    assert (np.count_nonzero(one.weights, axis=1) == bench.TOUCHED).all()
    assert set(np.abs(one.weights[one.weights != 0])) == {2.0}
    gaps = sum(column.null_count for column in one.table.columns) / (4000 * one.table.num_columns)
    assert abs(gaps - bench.MISSING) < 0.01
    assert bench.planted(45).Z.shape[1] == 0
    again = bench.planted(0, n_rows=4000)
    assert again.table.equals(one.table)
    effects = [bench.effect_of(number) for number in range(bench.N_TABLES)]
    assert effects.count(0.0) == 10


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_strong_features_are_found_with_the_right_rows_and_words(number: int) -> None:
    found = bench.run(number)
    assert found.accuracy.min() > 0.95
    assert found.named >= 15
    assert found.right == found.named
    assert found.stability[found.real].min() > 0.5


@pytest.mark.slow
def test_noise_lists_nothing_in_19_of_20_tables() -> None:
    listed = 0
    for number in range(40, 60):
        truth = bench.planted(number, n_rows=300)
        listed += bool(explore(truth.table, truth.types, seed=number).features)
    assert listed <= 1


@pytest.mark.slow
def test_what_is_listed_is_planted() -> None:
    outcomes = [bench.run(number) for number in (0, 14, 15, 40)]
    assert all(one.real.all() for one in outcomes)
    assert sum(one.real.size for one in outcomes) >= 12


@pytest.mark.slow
def test_of_effects_too_faint_to_be_found_hardly_anything_is_listed() -> None:
    listed = bench.run(27).real
    assert listed.size <= 1
