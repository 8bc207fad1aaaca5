import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def place_factors(
    base: _Floats,
    psi: _Floats,
    G: _Floats,
    unit: _Floats,
    W: _Floats,
    labelled: NDArray[np.uint8],
    own: _Floats,
    linear: _Floats,
    mean: _Floats,
    ss: _Floats,
    value: _Floats,
    trace: _Floats,
    Q: _Floats,
    scratch: _Floats,
    precision: _Floats,
) -> int: ...
