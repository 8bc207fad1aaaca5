import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Slots = NDArray[np.intp]

def fill_categorical(
    x: _Floats, eta: _Floats, slot: _Slots, rng: np.random.Generator, y: _Floats
) -> tuple[int, float, int]: ...
def fill_means_of_largest(
    winner: _Slots,
    eta: _Floats,
    slot: _Slots,
    nodes: _Floats,
    weights: _Floats,
    scratch: _Floats,
    mean: _Floats,
    log_z: _Floats,
) -> None: ...
def fill_below_winner(
    x: _Floats,
    y: _Floats,
    slot: _Slots,
    rng: np.random.Generator,
    lower: _Floats,
    upper: _Floats,
) -> None: ...
def fill_probabilities(eta: _Floats, var: _Floats, slot: _Slots, out: _Floats) -> None: ...
def fill_log_probability(
    x: _Floats, eta: _Floats, var: _Floats, slot: _Slots, out: _Floats
) -> None: ...
def standard_normals(rng: np.random.Generator, out: _Floats) -> None: ...
