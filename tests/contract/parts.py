"""Every model and every type of column, the toys among them, and cells of each type."""

from __future__ import annotations

import numpy as np

from glfm_cli.latent import MODELS
from glfm_cli.latent.capabilities import LimitedTypes, RefusesTypes
from glfm_cli.schema import COLUMN_TYPES
from tests.contract.toys import MODEL_LINES, TYPE_LINES

EVERY_MODEL = {**MODELS, **MODEL_LINES}
EVERY_TYPE = {**COLUMN_TYPES, **TYPE_LINES}
OF_DENSE = [name for name, model in EVERY_MODEL.items() if "dense" in model.layouts]
DENSE = [name for name in OF_DENSE if not isinstance(EVERY_MODEL[name], LimitedTypes)]
COUNTS = [name for name, model in EVERY_MODEL.items() if "counts" in model.layouts]
SPARSE = [name for name, model in EVERY_MODEL.items() if "sparse" in model.layouts]
N_TRIALS = 99


def types_of(model: str) -> list[str]:
    """Return the types of the columns of a table that a model takes."""
    only = EVERY_MODEL[model]
    kept = set(only.types if isinstance(only, LimitedTypes) else EVERY_TYPE)
    kept -= only.refuses if isinstance(only, RefusesTypes) else set()
    return [name for name in EVERY_TYPE if name in kept]


def entry_of(kind: str) -> dict[str, str]:
    """Return what a types file says of a column of a type, whose trials, if any, are in `n`."""
    more = {"trials": "n"} if EVERY_TYPE[kind].values == "successes" else {}
    return {"type": kind, **more}


FEW = {  # settings of short runs
    "clgp": {"iterations": 4, "inducing": 10, "dimensions": 2},
    "cnpf": {"components": 4, "dimensions": 2, "passes": 6},
}


def values_of(kind: str, z: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Return cells of a type that follow z."""
    if EVERY_TYPE[kind].values == "levels":
        return [str(v) for v in np.clip(np.floor(1.5 + z + rng.normal(0, 0.3, z.size)), 0, 3)]
    if EVERY_TYPE[kind].whole or EVERY_TYPE[kind].values == "successes":
        return [str(v) for v in rng.poisson(np.exp(1.0 + 0.5 * z))]
    y = z + rng.normal(0, 0.3, z.size)
    return [f"{v:.4f}" for v in (y if kind == "real" else 1.0 / (1.0 + np.exp(-y)))]
