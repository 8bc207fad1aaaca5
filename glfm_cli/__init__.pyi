"""The public names for type checkers, since `__init__.py` loads them on first use."""

from .acquisition import Suggestion as Suggestion
from .acquisition import suggest as suggest
from .classification import Classification as Classification
from .classification import classify as classify
from .completion import Completion as Completion
from .completion import Files as Files
from .completion import MatrixCompletion as MatrixCompletion
from .completion import Multiple as Multiple
from .completion import guess_schema as guess_schema
from .completion import impute as impute
from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import diagnose_fit as diagnose_fit
from .errors import GlfmError as GlfmError
from .estimators import GlfmClassifier as GlfmClassifier
from .estimators import GlfmFactorizer as GlfmFactorizer
from .estimators import GlfmImputer as GlfmImputer
from .evaluation import Evaluation as Evaluation
from .evaluation import compare_tables as compare_tables
from .evaluation import evaluate as evaluate
from .exploration import ComponentExploration as ComponentExploration
from .exploration import Exploration as Exploration
from .exploration import FactorExploration as FactorExploration
from .exploration import MapExploration as MapExploration
from .exploration import explore as explore
from .io import read_table as read_table
from .io import write_table as write_table
from .options import MatrixOptions as MatrixOptions
from .options import Sampling as Sampling
from .options import Saving as Saving
from .plots import plot_columns as plot_columns
from .plots import plot_completion as plot_completion
from .plots import plot_dependence as plot_dependence
from .plots import plot_diagnosis as plot_diagnosis
from .plots import plot_evaluation as plot_evaluation
from .plots import plot_exploration as plot_exploration
from .plots import plot_fit as plot_fit
from .plots import plot_map as plot_map
from .plots import plot_shares as plot_shares
from .plots import plot_tasks as plot_tasks
from .plots import plot_traces as plot_traces
from .schema import Schema as Schema
from .schema import read_schema as read_schema
from .store import Fit as Fit
from .store import load_fit as load_fit

__version__: str
