import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int32]

def work_sizes(S: int) -> tuple[int, int]: ...
def update_bits(
    y: _Floats,
    observed: _Bytes,
    column: _Ints,
    known: _Bytes,
    lower: _Floats,
    upper: _Floats,
    sd: _Floats,
    spread: _Floats,
    B: _Floats,
    Z: _Bytes,
    n_columns: int,
    bias: int,
    count: NDArray[np.int64],
    n_rows: int,
    shared: bool,
    eta: _Floats,
    work: _Floats,
    iwork: _Ints,
    rng: np.random.Generator,
    odds: _Floats | None = None,
) -> int: ...
