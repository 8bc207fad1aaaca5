"""How far completed cells can be trusted: observed cells are hidden, completed and scored."""

from glfm_cli.evaluation.compare import compare_tables
from glfm_cli.evaluation.design import TIMEOUT, Design
from glfm_cli.evaluation.evaluate import RATES, REPEATS, evaluate
from glfm_cli.evaluation.evaluation import Evaluation
from glfm_cli.evaluation.forecast import Forecast
from glfm_cli.evaluation.methods import METHODS
from glfm_cli.evaluation.results import Outcome
