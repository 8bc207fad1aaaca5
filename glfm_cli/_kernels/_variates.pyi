import numpy as np
from numpy.typing import NDArray

def fill_truncated_normal(
    mean: NDArray[np.float64],
    sd: float,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    rng: np.random.Generator,
    out: NDArray[np.float64],
) -> None: ...
def quantiles_between(
    a: NDArray[np.float64], b: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]: ...
