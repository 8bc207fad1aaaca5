"""Saved fits in the place of a table: whether a path names one, and what was fitted."""

from __future__ import annotations

import os

from glfm_cli.completion.header import Encoded
from glfm_cli.completion.matrix.saved import matrix_of_fit
from glfm_cli.errors import UsageError
from glfm_cli.store import Fit


def is_saved_fit(path: object) -> bool:
    """Return True for a folder, or what is called like one of a saved fit."""
    if not isinstance(path, str | os.PathLike):
        return False
    return os.path.isdir(path) or os.fspath(path).rstrip("/").endswith(".glfm")


def encoded_of_fit(fit: Fit, why: str) -> Encoded:
    """Return the table, or the matrix, that a fit was made from; `why` says who needs it.

    Raises UsageError: it was left out.
    """
    if fit.matrix is not None and fit.matrix.cells is not None:
        return matrix_of_fit(fit)
    if fit.data is None:
        raise UsageError(
            f"the table was left out of this saved fit, and {why}",
            file=str(fit.path),
            hint="Save a fit without --no-data, or give the table and its types.",
        )
    return fit.data
