"""Complete a table: every requested gap filled, with its uncertainty."""

from __future__ import annotations

from glfm_cli.completion.files import Files
from glfm_cli.completion.impute import (
    INTERVAL,
    check_multiple,
    check_request,
    check_with_fit,
    complete,
    estimate_cost,
    impute,
)
from glfm_cli.completion.multiple import Multiple
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.completion.prepare import CHAINS, DRAWS, THIN, WARMUP, as_schema, prepare
from glfm_cli.completion.record import run_record, write_record
from glfm_cli.completion.result import ColumnCompletion, Completion
from glfm_cli.completion.session import (
    DEFAULTS,
    SamplingOptions,
    SaveOptions,
    Session,
    partial_folder,
    plan_session,
)
from glfm_cli.completion.traces import check_traces, write_traces

__all__ = [
    "CHAINS",
    "DEFAULTS",
    "DRAWS",
    "INTERVAL",
    "THIN",
    "WARMUP",
    "ColumnCompletion",
    "Completion",
    "Files",
    "Fitted",
    "Multiple",
    "SamplingOptions",
    "SaveOptions",
    "Session",
    "as_schema",
    "check_multiple",
    "check_request",
    "check_traces",
    "check_with_fit",
    "complete",
    "estimate_cost",
    "impute",
    "partial_folder",
    "plan_session",
    "prepare",
    "run_record",
    "write_record",
    "write_traces",
]
