"""Complete tables with missing values and explain what is in them.

The public names load on first use, so that `import glfm_cli` (and with it `glfm --help`)
stays fast and the build hook can be imported before the kernels are compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "GlfmError": ".errors",
    "Fit": ".store",
    "Sampling": ".options",
    "Saving": ".options",
    "MatrixOptions": ".options",
    "Files": ".completion",
    "Schema": ".schema",
    "Completion": ".completion",
    "MatrixCompletion": ".completion",
    "GlfmClassifier": ".estimators",
    "GlfmFactorizer": ".estimators",
    "GlfmImputer": ".estimators",
    "Classification": ".classification",
    "classify": ".classification",
    "Evaluation": ".evaluation",
    "compare_tables": ".evaluation",
    "evaluate": ".evaluation",
    "Diagnosis": ".diagnosis",
    "diagnose_fit": ".diagnosis",
    "Exploration": ".exploration",
    "ComponentExploration": ".exploration",
    "FactorExploration": ".exploration",
    "MapExploration": ".exploration",
    "explore": ".exploration",
    "Multiple": ".completion",
    "impute": ".completion",
    "load_fit": ".store",
    "Suggestion": ".acquisition",
    "suggest": ".acquisition",
    "plot_columns": ".plots",
    "plot_completion": ".plots",
    "plot_dependence": ".plots",
    "plot_diagnosis": ".plots",
    "plot_evaluation": ".plots",
    "plot_exploration": ".plots",
    "plot_fit": ".plots",
    "plot_map": ".plots",
    "plot_shares": ".plots",
    "plot_tasks": ".plots",
    "plot_traces": ".plots",
    "read_table": ".io",
    "write_table": ".io",
    "read_schema": ".schema",
    "guess_schema": ".guess",
}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
