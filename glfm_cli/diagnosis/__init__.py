"""Diagnose a saved fit: do the chains agree, does the model fit, which cells are uncertain?"""

from glfm_cli.diagnosis.check import ColumnCheck, Compared, check_columns
from glfm_cli.diagnosis.diagnose import UNCERTAIN_CELLS, diagnose_fit
from glfm_cli.diagnosis.result import Diagnosis
