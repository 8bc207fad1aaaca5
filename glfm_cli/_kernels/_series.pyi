import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

def fill_steps(
    gaps: _Floats, slow: float, fast: float, closest: float, parts: _Floats
) -> None: ...
def fill_blocks(
    which: _Ints, parts: _Floats, scale: float, root: float, diagonal: _Floats, below: _Floats
) -> None: ...
def factor_series(
    which: _Ints, parts: _Floats, scale: float, seen: _Floats, factor: _Floats
) -> float | None: ...
def solve_lower(factor: _Floats, x: _Floats) -> None: ...
def solve_upper(factor: _Floats, x: _Floats) -> None: ...
def fill_lines(
    factor: _Floats,
    seen: _Floats,
    b: _Floats,
    X: _Floats,
    code: _Ints,
    half: _Floats,
    grams: _Floats,
) -> None: ...
def fill_shared(
    factor: _Floats,
    seen: _Floats,
    b: _Floats,
    X: _Floats,
    prior: _Floats,
    code: _Ints,
    half: _Floats,
    gram: _Floats,
    whole: _Floats,
) -> None: ...
