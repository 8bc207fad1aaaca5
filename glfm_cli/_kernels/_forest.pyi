import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Singles = NDArray[np.float32]
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int32]
_Places = NDArray[np.intp]

def grow(
    z: _Floats,
    nominal: _Bytes,
    n_levels: int,
    y: _Floats,
    donors: _Ints,
    seed: int,
    left_out: int,
    tries: int,
    each: int,
    least: int,
    rng: np.random.Generator,
    root: _Ints,
    feature: _Ints,
    threshold: _Singles,
    child: _Ints,
    members: _Ints,
    pool: _Ints,
    unit: _Ints,
) -> tuple[int, int]: ...
class ColumnTrees:
    def __init__(
        self,
        z: _Floats,
        nominal: _Bytes,
        rows: _Places,
        own: _Ints,
        y: _Floats,
        root: _Ints,
        seed: int,
        left_out: int,
        feature: _Ints,
        threshold: _Singles,
        child: _Ints,
        members: _Ints,
        unit: _Ints,
    ) -> None: ...

def fill_moments(
    of: ColumnTrees,
    weight: float,
    middle: float,
    variance: float,
    atom: float,
    at_atom: float,
    out: _Floats,
    parts: _Floats,
) -> None: ...
def fill_levels(of: ColumnTrees, weight: float, prior: _Floats, p: _Floats) -> None: ...
def draw_cells(
    of: ColumnTrees, d: int, z: _Floats, middle: float, atom: float, rng: np.random.Generator
) -> None: ...
