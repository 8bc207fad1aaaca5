"""The experts of a classifier as arrays that are kept, and from such arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme import Experts, FactorExperts, TaskDeviations
from glfm_cli.latent.model import take

Shapes = dict[str, tuple[int | None, ...]]

CORE = "core"  # the experts of the factors, in those of many features


def experts_out(q: Experts | FactorExperts) -> dict[str, Array]:
    """Return the numbers of q by name, those of experts of factors as `core.name`."""
    out: dict[str, Array] = {}
    for name in field_names(type(q)):
        value = getattr(q, name)
        if isinstance(value, Experts):
            out |= {f"{CORE}.{key}": array for key, array in experts_out(value).items()}
        else:
            out[name] = np.asarray(value, dtype=np.float64)
    return out


def experts_in(part: Mapping[str, Array], P: int, n_levels: int) -> Experts | FactorExperts:
    """Return the experts of P latent columns; ValueError where an array does not fit."""
    if "A" not in part:
        return _full_in(part, P, n_levels)
    L = int(take(part, "d", np.float64, (None,)).size)
    prefix = f"{CORE}."
    of_core = {k.removeprefix(prefix): v for k, v in part.items() if k.startswith(prefix)}
    core = _full_in(of_core, L, n_levels)
    shapes: Shapes = {
        "unit": (P,),
        "A": (P, L),
        "C": (P, L, L),
        "d": (L,),
        "vd": (L,),
        "beta_b": (L,),
        "theta": (core.H, L),
        "mu": (P,),
        "v": (P,),
        "psi_a": (core.H,),
        "psi_b": (core.H,),
        "rel_a": (P,),
        "rel_b": (P,),
    }
    return FactorExperts(core=core, **_values(part, FactorExperts, shapes))


def own_out(own: TaskDeviations) -> dict[str, Array]:
    """Return the numbers of tasks' own rules by name."""
    return {
        name: np.asarray(getattr(own, name), np.float64) for name in field_names(TaskDeviations)
    }


def own_in(part: Mapping[str, Array], q: Experts, n_tasks: int) -> TaskDeviations:
    """Return tasks' own rules about those of q; ValueError where an array does not fit."""
    size = q.F + 1
    shapes: Shapes = {"mv": (n_tasks, q.K, size), "C": (n_tasks, size, size)}
    own = TaskDeviations(**_values(part, TaskDeviations, shapes))
    if not (own.omega > 0 and own.a > 1 and own.b > 0):
        raise ValueError("the precisions of the tasks' own rules do not fit")
    return own


def _full_in(part: Mapping[str, Array], P: int, n_levels: int) -> Experts:
    H = int(take(part, "u", np.float64, (None,)).size)
    K = n_levels - 1
    shapes: Shapes = {
        "v1": (H - 1,),
        "v2": (H - 1,),
        "m": (H, P),
        "u": (H,),
        "nu": (H,),
        "d": (H,),
        "B_inv": (H, P, P),
        "mw": (H, K, P + 1),
        "Sw": (H, P + 1, P + 1),
        "phi": (K, P + 1),
        "b": (P + 1,),
    }
    return Experts(**_values(part, Experts, shapes))


def _values(part: Mapping[str, Array], kind: type, shapes: Shapes) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in field_names(kind):
        if name == CORE:
            continue
        shape = shapes.get(name, ())
        array = take(part, name, np.float64, shape)
        values[name] = np.array(array) if shape else float(array)
    return values


def field_names(kind: type) -> list[str]:
    """Return the fields from which a dataclass is made."""
    return [field.name for field in fields(kind) if field.init]
