import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def mixture_quantiles(
    mean: _Floats,
    sd: _Floats,
    weight: _Floats,
    p: _Floats,
    lower: float,
    upper: float,
    out: _Floats,
) -> None: ...
def add_table_rows(
    which: NDArray[np.int32], table: NDArray[np.float32], out: NDArray[np.float32]
) -> None: ...
def pick_columns(
    weight: NDArray[np.float32], u: _Floats, out: NDArray[np.intp]
) -> None: ...
def sum_steps(
    at: _Floats, weights: _Floats, eta: _Floats, sd: _Floats, end: float, out: _Floats
) -> None: ...
def interpolate(table: _Floats, x: _Floats, y: _Floats, out: _Floats) -> None: ...
