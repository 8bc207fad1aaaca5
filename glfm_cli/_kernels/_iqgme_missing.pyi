import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]
_Places = NDArray[np.intp]

def factor_missing(
    missing_start: _Places,
    cov_start: _Places,
    missing: _Places,
    second: _Bytes,
    diagonal: _Floats,
    A: _Floats,
    B: _Floats,
    needed: _Bytes,
    cov: _Floats,
    log_det: _Floats,
    scratch: _Floats,
) -> int: ...
def fill_missing(
    start: _Places,
    missing_start: _Places,
    cov_start: _Places,
    missing: _Places,
    cov: _Floats,
    linear: _Floats,
    x: _Floats,
) -> None: ...
def add_covariances(
    missing_start: _Places,
    cov_start: _Places,
    missing: _Places,
    cov: _Floats,
    weight: _Floats,
    total: _Floats,
) -> None: ...
