"""What a completion is asked for besides its fit, checked before any table is read."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Literal, get_args

from glfm_cli.completion.estimates import Estimate
from glfm_cli.errors import UsageError
from glfm_cli.options import whole

INTERVAL = 0.95
Unseen = Literal["error", "missing"]


def check_estimate(estimate: str, interval: float) -> Estimate:
    """Return the estimate; raise UsageError when it or the interval is out of range."""
    known: dict[str, Estimate] = {name: name for name in get_args(Estimate)}
    if estimate not in known:
        raise UsageError("--estimate", value=estimate, expected=" or ".join(known))
    if not (isinstance(interval, Real) and 0 < float(interval) < 1):
        raise UsageError("--interval", value=interval, expected="a number between 0 and 1")
    return known[estimate]


def check_unseen(unseen: str) -> Unseen:
    """Return what to do with unseen levels; raise UsageError for an unknown word."""
    known: dict[str, Unseen] = {name: name for name in get_args(Unseen)}
    if unseen not in known:
        raise UsageError("--unseen", value=unseen, expected=" or ".join(known))
    return known[unseen]


def check_with_fit(fitted: bool, written: Mapping[str, object], unseen: str) -> None:
    """Raise UsageError when options of sampling meet a fit, or one of a fit meets none.

    fitted : whether there is a fit
    written : what was said of options that shape a fit, by name
    unseen : what an unseen level is
    """
    check_unseen(unseen)
    if not fitted and unseen != "error":
        raise UsageError("--unseen is for the levels of a fit", hint="Add --fit DIR.glfm.")
    for name in written if fitted else ():
        raise UsageError(
            f"--{name} and --fit cannot be used together: nothing is fitted anew",
            hint=f"Leave out --{name}; it is as it was when the fit was made.",
        )


def check_multiple(versions: int | None, estimate: Estimate, n_draws: int | None) -> None:
    """Raise UsageError when several versions of a table cannot be drawn as asked.

    versions : how many; None asks for nothing
    estimate : what fills the missing cells of a single table
    n_draws : draws that the run will keep, over all chains; None of an ascent, which keeps laws
    """
    if versions is None:
        return
    whole("multiple", versions)
    if estimate != "auto":
        raise UsageError(
            f"--multiple and --estimate {estimate} cannot be used together: joint draws fill its "
            "tables",
            hint="Leave out --estimate, or leave out --multiple.",
        )
    if n_draws is not None and versions > n_draws:
        raise UsageError(
            f"--multiple {versions} needs a draw for each table, but {n_draws} will be kept",
            hint="Raise --draws or --chains.",
        )
