import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def add_numbers(
    lower: _Floats, upper: _Floats, mean: _Floats, var: _Floats, s2: float, value: _Floats,
    g1: _Floats, g2: _Floats, curvature: _Floats,
) -> float: ...  # fmt: skip
def add_ordered(
    code: _Floats, theta: _Floats, mean: _Floats, var: _Floats, value: _Floats, g1: _Floats,
    g2: _Floats, curvature: _Floats, d_theta: _Floats,
) -> None: ...  # fmt: skip
def add_binary(
    code: _Floats, mean: _Floats, var: _Floats, value: _Floats, g1: _Floats, g2: _Floats,
    curvature: _Floats,
) -> None: ...  # fmt: skip
def add_levels(
    code: _Floats, mean: _Floats, var: _Floats, normals: _Floats, f: _Floats, value: _Floats,
    g1: _Floats, g2: _Floats, curvature: _Floats,
) -> None: ...  # fmt: skip
