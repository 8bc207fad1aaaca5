"""How much of a column's correction its least certain cells bear.

A column of numbers has one correction. Where another column says the same (a premium and its tax),
most forecasts are nearly exact, and call to be drawn together; those of rows in which the other is
missing, too, do not, and are few. So hidden cells are visited from the least certain on, and the
correction is weakened until what they have lost by it is no more than chance, wherever one stops:
under a right one the density without over that with it is a martingale of mean 1 [Ville 1939], so
that `LOSS` is reached with a probability of exp(-LOSS) at most. What is lost is the log of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.recalibration import log_tilt, polynomials

LOSS = 1.0  # of log score, that is taken for chance
SHARES = np.linspace(1.0, 0.0, 33)  # of a correction
DRAWS = 16  # of all chains together, or one of each, that tell which forecasts are certain

Gain = Callable[[float], Array]  # of a share of a correction: what it adds to log scores (n,)
Part = tuple[Posterior, Mapping[int, tuple[Array, Array]]]  # draws, and cells they have not seen


def held_tilts(
    tilts: Mapping[int, Array], places: Mapping[int, Array], parts: Sequence[Part]
) -> dict[int, Array]:
    """Return the tilts (4,) by column, weakened as is needed.

    places : by column the forecasts' distribution functions (n,) at the cells of all `parts`

    How certain a forecast is says the share of known values between its mean plus and minus an sd.
    """
    gains = {d: _gain_of(b, places[d]) for d, b in tilts.items()}
    doubtful = {d for d, gain in gains.items() if np.minimum(gain(1.0), 0.0).sum() < -LOSS}
    ends: dict[int, list[Array]] = {d: [] for d in doubtful}
    for posterior, hidden in parts:
        cells = {d: at for d, (at, _) in hidden.items() if d in doubtful}
        for d, part in predict(posterior.thinned(DRAWS), cells).items():
            ends[d].append(np.stack([part.mean - part.sd, part.mean + part.sd]))
    held = dict(tilts)
    for d in doubtful:
        known = np.sort(np.concatenate([hidden[d][1] for _, hidden in parts if d in hidden]))
        low, high = np.searchsorted(known, np.concatenate(ends[d], axis=1))
        held[d] = bearable(gains[d], high - low) * tilts[d]
    return held


def bearable(gain: Gain, uncertainty: Array) -> float:
    """Return the largest share of a correction by which the least certain cells lose nothing.

    uncertainty : (n,) of the forecasts that are to be corrected
    """
    order = np.argsort(-uncertainty, kind="stable")
    lowest = ((share, np.cumsum(gain(share)[order]).min(initial=0.0)) for share in SHARES)
    return next(float(share) for share, loss in lowest if loss >= -LOSS)


def _gain_of(b: Array, u: Array) -> Gain:
    f = polynomials(np.clip(u, 0.0, 1.0))
    return lambda share: log_tilt(share * b, f)
