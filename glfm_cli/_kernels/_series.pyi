import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def factor_series(
    which: NDArray[np.int64], parts: _Floats, scale: float, seen: _Floats, factor: _Floats
) -> bool: ...
