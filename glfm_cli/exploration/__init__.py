"""Explore a table: which groups of rows it has, what marks each, and how sure that is."""

from __future__ import annotations

from glfm_cli.exploration.explore import check_nothing_to_sample, describe_run, explore
from glfm_cli.exploration.explore_matrix import (
    MatrixJob,
    describe_matrix,
    explore_matrix,
    fit_job,
    matrix_job,
    table_job,
)
from glfm_cli.exploration.features import Effect, Feature
from glfm_cli.exploration.files import check_folder, check_format, write_files
from glfm_cli.exploration.job import Job, hide, is_saved_fit, open_fit, prepare_exploration
from glfm_cli.exploration.lines import convergence_line, remainder_line, sample_line
from glfm_cli.exploration.matrix_result import MatrixExploration
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.request import TOP, Request, make_request
from glfm_cli.exploration.result import Exploration

__all__ = [
    "TOP",
    "Effect",
    "Exploration",
    "Feature",
    "Job",
    "MatrixExploration",
    "MatrixJob",
    "Pattern",
    "Request",
    "check_folder",
    "check_format",
    "check_nothing_to_sample",
    "convergence_line",
    "describe_matrix",
    "describe_run",
    "explore",
    "explore_matrix",
    "fit_job",
    "hide",
    "is_saved_fit",
    "make_request",
    "matrix_job",
    "open_fit",
    "prepare_exploration",
    "remainder_line",
    "sample_line",
    "table_job",
    "write_files",
]
