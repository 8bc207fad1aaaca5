import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int32]

def place_rows(
    start: int,
    end: int,
    y: _Floats,
    seen: _Bytes,
    log_pi: _Floats,
    mu: _Floats,
    Sigma: _Floats,
    root: _Floats,
    noise: _Floats,
    u: _Floats,
    e_eta: _Floats,
    e_y: _Floats,
    z: _Ints,
    eta: _Floats,
    log_p: _Floats,
    L: _Floats,
    b: _Floats,
    at: NDArray[np.intp],
) -> int: ...
def fill_law(
    start: int,
    end: int,
    seen: _Bytes,
    eta: _Floats,
    mu: _Floats,
    Sigma: _Floats,
    nothing: _Floats,
    z: _Ints,
    first: NDArray[np.intp],
    mean: _Floats,
    cov: _Floats,
    L: _Floats,
    B: _Floats,
    b: _Floats,
    at: NDArray[np.intp],
) -> int: ...
