"""The compiled row update is exact: its transition matrix, enumerated, has the posterior as law.

The kernel itself runs here, not a copy: its random decisions are taken from a script and their
probabilities reported, so that every path is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

from glfm_cli._kernels import _glfm
from tests.statistical.enumeration import (
    Columns,
    Decision,
    TinyModel,
    compose,
    from_matrix,
    lift,
    ordered_matrices,
    stationary,
    to_classes,
    to_matrix,
    total_variation,
    transition_matrix,
)
from tests.statistical.mutants import (
    BITS_MUTANTS,
    BOUNDS,
    EVERY_BIT,
    FEWER_BITS,
    KERNELS,
    MUTANTS,
    compile_mutant,
    mutated,
)

WIDTH = 40  # more than any decision of the kernel has options


class RowKernel:
    """The compiled update of one row of a `TinyModel`, as `transition_matrix` takes it."""

    def __init__(self, model: TinyModel, n: int, module: ModuleType, fixed_scan: bool) -> None:
        self.model, self.n, self.module, self.fixed_scan = model, n, module, fixed_scan
        n_columns = model.y.shape[1]
        self.bias = int(model.var_bias is not None)
        self.column = np.arange(n_columns, dtype=np.int32)
        if model.noise_scaled:
            segments = [[0, n_columns, 0]]
            scale = np.ones(1)
        else:  # one group a column: each has a noise variance of its own
            segments = [[s, s + 1, s] for s in range(n_columns)]
            scale = model.var_noise
        self.segments = np.array(segments, dtype=np.int32)
        self.tau = model.var_B / scale
        self.var_bias = (model.var_bias or 1.0) / scale
        self.capacity = model.max_features + self.bias
        floats, ints = module.work_sizes(model.n_rows, self.capacity, n_columns, len(scale))
        self.work, self.iwork = np.zeros(floats), np.zeros(ints, dtype=np.int32)

    def __call__(self, columns: Columns):
        def run(script: tuple[int, ...]) -> tuple[Sequence[Decision], Columns]:
            forced = self.left_to_right(columns) if self.fixed_scan else []
            Z = np.zeros((self.model.n_rows, self.capacity), dtype=np.uint8)
            Z[:, : self.bias] = 1
            used = self.bias + len(columns)
            Z[:, self.bias : used] = to_matrix(columns, self.model.n_rows)
            used, status, decisions = self.module.scripted_row(
                self.model.y.copy(),
                self.model.observed.astype(np.uint8),
                self.column,
                self.segments,
                np.sqrt(self.model.var_noise),
                self.tau,
                self.var_bias,
                Z,
                used,
                self.bias,
                self.model.alpha,
                self.work,
                self.iwork,
                self.n,
                np.array([*forced, *script], dtype=np.int32),
                WIDTH,
            )
            assert status == 0
            return decisions[len(forced) :], from_matrix(Z[:, self.bias : used])

        return run

    def left_to_right(self, columns: Columns) -> list[int]:
        """Return the choices that make the shuffle leave the features in their order."""
        shared = sum(1 for column in columns if column & ~(1 << self.n))
        return list(range(shared - 1, 0, -1))


def row_matrices(model: TinyModel, module: ModuleType = _glfm, fixed_scan: bool = False):
    states = ordered_matrices(model.n_rows, model.max_features)
    return [
        transition_matrix(states, RowKernel(model, n, module, fixed_scan))
        for n in range(model.n_rows)
    ]


def sweep_error(model: TinyModel, rows: list[np.ndarray]) -> float:
    states = ordered_matrices(model.n_rows, model.max_features)
    law = to_classes(states, stationary(compose(rows, range(model.n_rows))))
    return total_variation(law, model.posterior())


def tiny(var_bias: float | None = None, noise_scaled: bool = True, cap: int = 3) -> TinyModel:
    y = np.array([[1.3, -0.4, 2.1], [-1.8, 0.9, 0.3], [1.1, 1.6, -1.2]])
    noise = np.array([0.4, 1.0, 0.7])
    return TinyModel(y, np.ones((3, 3), bool), 1.5, 2.0, noise, var_bias, noise_scaled, cap)


def test_row_update_has_the_posterior_as_stationary_law() -> None:
    model = tiny()
    assert sweep_error(model, row_matrices(model)) < 1e-12


def test_fixed_scan_of_the_same_kernel_is_caught() -> None:
    model = tiny()
    assert sweep_error(model, row_matrices(model, fixed_scan=True)) > 0.005


@pytest.mark.parametrize("noise_scaled", [True, False])
@pytest.mark.parametrize("var_bias", [None, 10.0])
def test_bias_and_both_weight_priors_are_exact(var_bias: float | None, noise_scaled: bool) -> None:
    model = tiny(var_bias, noise_scaled, cap=2)
    assert sweep_error(model, row_matrices(model)) < 1e-12


@pytest.mark.parametrize("noise_scaled", [True, False])
def test_a_row_with_gaps_leaves_invariant_the_posterior_that_integrates_them(
    noise_scaled: bool,
) -> None:
    for n in range(3):
        observed = np.ones((3, 3), bool)
        observed[n, [0, 2]] = False
        full = tiny(noise_scaled=noise_scaled, cap=2)
        model = TinyModel(
            full.y, observed, 1.5, 2.0, full.var_noise, None, noise_scaled, max_features=2
        )
        states, posterior = ordered_matrices(3, 2), model.posterior()
        T = transition_matrix(states, RowKernel(model, n, _glfm, fixed_scan=False))
        after = to_classes(states, lift(states, posterior) @ T)
        assert total_variation(after, posterior) < 1e-12


@pytest.mark.parametrize("mutant", [*MUTANTS, *BITS_MUTANTS, *BOUNDS])
def test_mutants_replace_a_line_of_the_kernels_that_ship(mutant: str) -> None:
    _, sources = mutated(mutant)
    ours = {file: (KERNELS / file).read_text(encoding="utf-8") for file in sources}
    assert sum(text != ours[file] for file, text in sources.items()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["new features from their prior", "singletons dropped first"])
def test_mutants_of_the_row_update_are_caught(mutant: str, tmp_path) -> None:
    model = tiny()
    assert sweep_error(model, row_matrices(model, compile_mutant(mutant, tmp_path))) > 0.02


def test_log_odds_have_the_digits_that_a_flip_needs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = np.concatenate([rng.random(4000), 2.0 ** -rng.uniform(0.0, 53.0, 4000)])
    right = np.log(u) - np.log1p(-u)
    u[0] = 0.0
    _glfm.log_odds(u)
    assert u[0] < -700.0
    np.testing.assert_allclose(u[1:], right[1:], rtol=1e-11, atol=1e-13)


def rows_swept(module: ModuleType, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bits and pseudo-observations after some sweeps of rows with many features."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns, n_features, capacity = 200, 12, 24, 31
    Z = np.zeros((n_rows, capacity), dtype=np.uint8)
    Z[:, 0] = 1
    Z[:, 1:n_features] = rng.random((n_rows, n_features - 1)) < 0.3
    y = Z @ rng.normal(size=(capacity, n_columns)) + rng.normal(size=(n_rows, n_columns))
    observed = (rng.random(y.shape) < 0.7).astype(np.uint8)
    column, segments = np.arange(n_columns, dtype=np.int32), np.array([[0, n_columns, 0]])
    floats, ints = module.work_sizes(n_rows, capacity, n_columns, 1)
    ones, used = np.ones(n_columns), n_features
    for _ in range(5):
        used, status = module.sweep(
            *(y, observed, column, segments.astype(np.int32), ones, np.ones(1), np.ones(1), Z),
            *(used, 1, 2.0, np.zeros(floats), np.zeros(ints, dtype=np.int32), rng),
        )
        assert status == 0
    return Z, y


@pytest.mark.slow
def test_bounds_pass_over_no_bit_that_flips(seed: int, tmp_path) -> None:
    ours = rows_swept(_glfm, seed)
    for name in (EVERY_BIT, FEWER_BITS):
        (tmp_path / name).mkdir()
        found = rows_swept(compile_mutant(name, tmp_path / name), seed)
        same = all(np.array_equal(one, other) for one, other in zip(ours, found, strict=True))
        assert same == (name == EVERY_BIT)
