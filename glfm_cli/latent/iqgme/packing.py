"""What the mixture of experts keeps as named arrays, and from such arrays, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.deviations import OwnSums, TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.fit import Member
from glfm_cli.latent.iqgme.forms import Form
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.rows import Rows
from glfm_cli.latent.iqgme.usage import Usage
from glfm_cli.latent.model import take

Shapes = dict[str, tuple[int | None, ...]]

CORE = "core"  # the experts of the factors, in those of many features


def out(thing: Any) -> dict[str, Array]:
    """Return the numbers of a dataclass by name; of one within it as `name.field`.

    Files have at most three axes; the first two of more become one.
    """
    found: dict[str, Array] = {}
    for name in field_names(type(thing)):
        value = getattr(thing, name)
        if is_dataclass(value):
            found |= {f"{name}.{key}": array for key, array in out(value).items()}
        elif value is not None:
            array = np.asarray(value, dtype=np.float64)
            found[name] = array.reshape(-1, *array.shape[2:]) if array.ndim > 3 else array
    return found


def under(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def prefixed(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays with a prefix before their names."""
    return {prefix + name: array for name, array in arrays.items()}


def experts_in(part: Mapping[str, Array], P: int, n_levels: int) -> Experts | FactorExperts:
    """Return the experts of P latent columns; ValueError where an array does not fit."""
    if "A" not in part:
        return _full_in(part, P, n_levels)
    L = int(take(part, "d", np.float64, (None,)).size)
    core = _full_in(under(part, f"{CORE}."), L, n_levels)
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


def member_in(arrays: Mapping[str, Array], P: int, n_levels: int, n_tasks: int | None) -> Member:
    """Return one of the fits that predict together; ValueError where an array does not fit."""
    experts, shares, own = experts_in(under(arrays, "experts."), P, n_levels), None, None
    if n_tasks is not None:
        shares = take(arrays, "shares", np.float64, (n_tasks, experts.H))
        deviations = under(arrays, "own.")
        own = own_in(deviations, experts.rules, n_tasks) if deviations else None
    return Member(experts, float(take(arrays, "weight", np.float64, ())), shares, own)


def local_in(part: Mapping[str, Array], form: Form, rows: Rows, q: Any, n_atoms: int) -> Local:
    """Return q of a table's rows under experts q."""
    n, H = len(rows.x), q.H
    shapes = ((n_atoms, n), (H, n, rows.n_label), (H, *form.noisy(rows)))
    names = ("rho", "t", "y")
    return Local(*(take(part, k, np.float64, s).copy() for k, s in zip(names, shapes, strict=True)))


def sums_in(part: Mapping[str, Array], form: Form, q: Any) -> Any:
    """Return the sums over rows that experts q are updated from; None where there are none."""
    if not part:
        return None
    sums = form.zero(q)
    for name in field_names(type(sums)):
        array = getattr(sums, name)
        found = take(part, name, np.float64, np.shape(array))
        setattr(sums, name, found.copy() if np.ndim(found) else float(found))
    return sums


def usage_in(part: Mapping[str, Array], n_tasks: int, n_experts: int) -> Usage:
    """Return which experts the tasks use."""
    H = take(part, "sigma", np.float64, (n_tasks, None, n_experts)).shape[1]
    shapes: Shapes = dict.fromkeys(("v1", "v2"), (n_tasks, H - 1))
    shapes["sigma"] = (n_tasks, H, n_experts)
    return Usage(**_values(part, Usage, shapes))


def own_sums_in(part: Mapping[str, Array], n_tasks: int, q: Experts) -> OwnSums | None:
    """Return the sums that the tasks' deviations are updated from; None where there are none."""
    if not part:
        return None
    S, K, F = q.H, q.K, q.F + 1
    X = take(part, "X", np.float64, (n_tasks * S, F, F)).reshape(n_tasks, S, F, F)
    T = take(part, "T", np.float64, (n_tasks * S, K, F)).reshape(n_tasks, S, K, F)
    return OwnSums(X.copy(), T.copy())


def drawn_in(part: Mapping[str, Array], H: int | None, P: int, K: int) -> Drawn:
    """Return experts as the sampler drew them."""
    H = take(part, "m", np.float64, (H, P)).shape[0]
    shapes: Shapes = {
        "sticks": (H - 1,),
        "m": (H, P),
        "nB": (H, P, P),
        "root": (H, P, P),
        "r": (H,),
        "mw": (H, K, P + 1),
        "zeta": (K, P + 1),
        "lam": (P + 1,),
    }
    return Drawn(**_values(part, Drawn, shapes))
