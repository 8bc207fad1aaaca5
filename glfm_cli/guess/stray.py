"""Numbers that are written for a missing cell: -9, 999, 32767."""

from __future__ import annotations

import numpy as np

_LENGTHS = range(2, 8)
# Of logs of boreholes, -999.25; of files of short and long integers, their last number.
HIGH_CODES = np.array(
    [7, 8, 9, 99.9, 999.9, 9999.9, 99999.9, 99.99, 999.99, 9999.99, 999.25, 9999.25, 99999.25]
    + [99.999, 999.999, 9999.999, 99.9999]  # magnitudes, and their errors
    + [32767, 32768, 65535, 2147483647, 2147483648]
    + [float(f"{digit}" * length) for digit in (6, 7, 8, 9) for length in _LENGTHS]
    + [10.0**length - low for low in (2, 3, 4) for length in _LENGTHS]
)
LOW_CODES = -np.concatenate([np.arange(1.0, 10.0), HIGH_CODES])
# Among words or dates, few numbers can be anything else.
STRAY_CODES = np.concatenate([LOW_CODES, HIGH_CODES[HIGH_CODES >= 66]])
