"""Complete tables with missing values and explain what is in them.

The public names load on first use, so that `import glfm_cli` (and with it `glfm --help`)
stays fast and the build hook can be imported before the kernels are compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# The public names of each room.
_ROOMS = {
    ".errors": ("GlfmError",),
    ".store": ("Fit", "load_fit"),
    ".options": ("Sampling", "Saving", "MatrixOptions"),
    ".completion": (
        *("Files", "Completion", "MatrixCompletion", "Multiple", "Pooled", "guess_schema"),
        *("impute", "pool"),
    ),
    ".schema": ("Schema", "read_schema"),
    ".estimators": ("GlfmClassifier", "GlfmFactorizer", "GlfmImputer"),
    ".classification": ("Classification", "classify"),
    ".evaluation": ("Evaluation", "compare_tables", "evaluate"),
    ".diagnosis": ("Diagnosis", "diagnose_fit"),
    ".exploration": (
        *("Exploration", "ComponentExploration", "FactorExploration", "MapExploration"),
        "explore",
    ),
    ".acquisition": ("Suggestion", "suggest"),
    ".plots": (
        *("plot_columns", "plot_completion", "plot_dependence", "plot_diagnosis"),
        *("plot_evaluation", "plot_exploration", "plot_fit", "plot_map", "plot_shares"),
        *("plot_tasks", "plot_traces"),
    ),
    ".io": ("read_table", "write_table"),
}
_EXPORTS = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        try:
            return getattr(import_module(_EXPORTS[name], __name__), name)
        except ImportError as error:
            errors = import_module(".errors", __name__)
            if errors.is_uncompiled(error):
                raise ImportError(errors.UNCOMPILED, name=error.name) from None
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
