import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Ends = NDArray[np.int64]

def scan_component(
    start: int,
    end: int,
    indptr: _Ends,
    index: _Ints,
    cell: _Ints,
    weight: _Floats,
    v: _Floats,
    E: _Floats,
    residual: _Floats,
    square: _Floats,
) -> None: ...
def shift_residuals(
    start: int, end: int, indptr: _Ends, index: _Ints, step: _Floats, v: _Floats, E: _Floats
) -> None: ...
def fill_means(
    start: int, end: int, indptr: _Ends, index: _Ints, left: _Floats, right: _Floats, x: _Floats
) -> None: ...
def work_size(q: int) -> int: ...
def solve_units(
    start: int,
    end: int,
    indptr: _Ends,
    index: _Ints,
    cell: _Ints,
    weight: _Floats,
    prec_own: _Floats,
    prec_other: _Floats,
    y: _Floats,
    own: _Floats,
    other: _Floats,
    regressor: _Floats,
    prior: _Floats,
    prior_linear: _Floats,
    mean: _Floats,
    deviation: _Floats,
    quadratic: _Floats,
    work: _Floats,
) -> int: ...
