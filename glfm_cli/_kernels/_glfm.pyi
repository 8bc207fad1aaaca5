import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int32]

def work_sizes(N: int, C: int, S: int, G: int) -> tuple[int, int]: ...
def sweep(
    y: _Floats,
    observed: _Bytes,
    column: _Ints,
    segments: _Ints,
    sd: _Floats,
    tau: _Floats,
    bias_var: _Floats,
    Z: _Bytes,
    n_columns: int,
    bias: int,
    alpha: float,
    work: _Floats,
    iwork: _Ints,
    rng: np.random.Generator,
) -> tuple[int, int]: ...
def draw_weights(
    y: _Floats,
    observed: _Bytes,
    column: _Ints,
    segments: _Ints,
    sd: _Floats,
    tau: _Floats,
    bias_var: _Floats,
    Z: _Bytes,
    n_columns: int,
    bias: int,
    work: _Floats,
    iwork: _Ints,
    unit_noise: _Bytes,
    scale_group: _Floats,
    factor: _Floats,
    noise_shape: float,
    noise_rate: float,
    noise_scaled: int,
    noise: _Floats,
    B: _Floats,
    rng: np.random.Generator,
) -> int: ...
def permutation(n: int, rng: np.random.Generator) -> _Ints: ...
def log_odds(u: _Floats) -> None: ...
def fill_eta(Z: _Bytes, B: _Floats, n_columns: int, out: _Floats) -> None: ...
def scripted_row(
    y: _Floats,
    observed: _Bytes,
    column: _Ints,
    segments: _Ints,
    sd: _Floats,
    tau: _Floats,
    bias_var: _Floats,
    Z: _Bytes,
    n_columns: int,
    bias: int,
    alpha: float,
    work: _Floats,
    iwork: _Ints,
    n: int,
    choices: _Ints,
    width: int,
) -> tuple[int, int, list[tuple[int, list[float]]]]: ...
