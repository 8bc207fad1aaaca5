import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Ends = NDArray[np.int64]
_Bytes = NDArray[np.uint8]

PAD: int

def work_size(K: int, F: int) -> int: ...
def visit_rows(
    start: int,
    end: int,
    indptr: _Ends,
    column: _Ints,
    count: _Ints,
    a: _Floats,
    w: _Floats,
    loadings: _Floats,
    products: _Floats,
    prior: _Floats,
    shared: _Floats,
    own: _Floats,
    at: _Ints,
    node: _Floats,
    weight: _Floats,
    diagonal: bool,
    mean_step: bool,
    rounds: int,
    tolerance: float,
    g: _Floats,
    n: _Floats,
    m: _Floats,
    cov: _Floats,
    rho: _Floats,
    x: _Floats,
    ratio: _Floats,
    bound: _Floats,
    work: _Floats,
) -> None: ...
def add_columns(
    start: int,
    end: int,
    indptr: _Ends,
    row: _Ints,
    cell: _Ints,
    ratio: _Floats,
    x: _Floats,
    a: _Floats,
    out: _Floats,
) -> None: ...
def add_locations(
    start: int,
    end: int,
    w: _Floats,
    loadings: _Floats,
    products: _Floats,
    shared: _Floats,
    own: _Floats,
    at: _Ints,
    g: _Floats,
    node: _Floats,
    weight: _Floats,
    diagonal: bool,
    n: _Floats,
    m: _Floats,
    cov: _Floats,
    rho: _Floats,
    gradient: _Floats,
    hessian: _Floats,
    work: _Floats,
) -> None: ...
def evaluate_locations(
    start: int,
    end: int,
    w: _Floats,
    loadings: _Floats,
    products: _Floats,
    shared: _Floats,
    own: _Floats,
    at: _Ints,
    g: _Floats,
    node: _Floats,
    weight: _Floats,
    diagonal: bool,
    n: _Floats,
    m: _Floats,
    cov: _Floats,
    rho: _Floats,
    new_rho: _Floats,
    sums: _Floats,
    work: _Floats,
) -> None: ...
def add_rises(start: int, end: int, w: _Floats, n: _Floats, sums: _Floats) -> None: ...
def add_rates(
    start: int,
    end: int,
    w: _Floats,
    shared: _Floats,
    own: _Floats,
    at: _Ints,
    g: _Floats,
    n: _Floats,
    rho: _Floats,
    sums: _Floats,
    work: _Floats,
) -> None: ...
def fill_exposures(
    start: int,
    end: int,
    indptr: _Ends,
    index: _Ints,
    seen: _Bytes,
    total: _Floats,
    mean: _Floats,
    out: _Floats,
) -> None: ...
