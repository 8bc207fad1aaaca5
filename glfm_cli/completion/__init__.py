"""Complete a table, or a matrix given as triplets: every missing cell, with its uncertainty."""

from glfm_cli.completion.complete import Filling, complete
from glfm_cli.completion.cost import estimate_cost, with_process
from glfm_cli.completion.files import Files
from glfm_cli.completion.header import Encoded
from glfm_cli.completion.impute import FitLike, impute, plan_imputation
from glfm_cli.completion.kept import Kept
from glfm_cli.completion.matrix import MatrixCompletion, MatrixData, prepare_matrix
from glfm_cli.completion.multiple import Multiple
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.completion.pooling import Pooled, pool
from glfm_cli.completion.prepare import (
    TableLike,
    Types,
    as_schema,
    as_table,
    guess_schema,
    is_guessed,
    prepare,
    with_types,
)
from glfm_cli.completion.record import run_record, save_record
from glfm_cli.completion.requests import check_estimate
from glfm_cli.completion.result import ColumnCompletion, Completion
from glfm_cli.completion.session import Session, plan_session
from glfm_cli.completion.traces import check_traces, write_traces
from glfm_cli.completion.verdict import judge
