"""Complete a table: every requested gap filled, with its uncertainty."""

from __future__ import annotations

from glfm_cli.completion.files import Files
from glfm_cli.completion.impute import (
    CHAINS,
    DRAWS,
    INTERVAL,
    THIN,
    WARMUP,
    check_request,
    complete,
    foresee,
    impute,
    prepare,
)
from glfm_cli.completion.result import ColumnCompletion, Completion

__all__ = [
    "CHAINS",
    "DRAWS",
    "INTERVAL",
    "THIN",
    "WARMUP",
    "ColumnCompletion",
    "Completion",
    "Files",
    "check_request",
    "complete",
    "foresee",
    "impute",
    "prepare",
]
