"""What the mixture of experts keeps as named arrays, and from such arrays, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.acceleration import Acceleration
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.fit import Member
from glfm_cli.latent.iqgme.gibbs_draw import Drawn, draw_prior
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.prior import FactorPrior, IqgmeConfig, Prior
from glfm_cli.latent.iqgme.rows import KnownRows
from glfm_cli.latent.iqgme.temperature import LARGEST_POWER
from glfm_cli.latent.iqgme.usage import Usage
from glfm_cli.latent.model import take

Kind = TypeVar("Kind")

# What cannot be 0 or less, of q of experts of either form.
OF_EXPERTS = ("v1", "v2", "tau1", "tau2", "u", "nu", "c", "d", "g", "a", "b")
OF_FACTORS = ("vd", "beta_a", "beta_b", "v", "u_a", "u_b", "psi_a", "psi_b", "rel_a", "rel_b")
FARTHEST = 1e6  # sds of columns that an expert lies from 0; beside squares of 1e8 a 1 is lost


def out(thing: Any) -> dict[str, Array]:
    """Return the numbers of a dataclass by name; of one within it as `name.field`.

    Files have at most three axes; the first two of more become one.
    """
    found: dict[str, Array] = {}
    for name in field_names(thing):
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


def field_names(thing: Any) -> list[str]:
    """Return the fields that a dataclass is made of."""
    return [field.name for field in fields(thing) if field.init]


def like(part: Mapping[str, Array], template: Kind, positive: Sequence[str] = ()) -> Kind:
    """Return a copy of a dataclass with the numbers that `out` gave of another of its sizes.

    Raises ValueError: an array is missing or of another size, or a number of those named is not
        positive.
    """
    values: dict[str, Any] = {}
    for name in field_names(template):
        own = getattr(template, name)
        if is_dataclass(own):
            continue
        shape = np.shape(own)
        stored = (shape[0] * shape[1], *shape[2:]) if len(shape) > 3 else shape
        array = take(part, name, np.float64, stored)
        if name in positive and not np.all(array > 0.0):
            raise ValueError(f"'{name}' has numbers that are not positive")
        values[name] = array.reshape(shape).copy() if shape else float(array)
    return replace(template, **values)  # type: ignore[type-var]


def experts_in(part: Mapping[str, Array], P: int, n_levels: int) -> Experts | FactorExperts:
    """Return the experts of P latent columns; ValueError where an array does not fit."""
    if "A" not in part:
        return _full_in(part, P, n_levels - 1)
    L = int(take(part, "d", np.float64, (None,)).size)
    take(part, "C", np.float64, (P, L, L))  # before anything is made of that size
    core = _full_in(under(part, "core."), L, n_levels - 1)
    prior = FactorPrior.of(IqgmeConfig(), P, L)
    blank = FactorExperts.from_prior(prior, core.H, 0)
    return like(part, replace(blank, core=core), OF_FACTORS)


def _full_in(part: Mapping[str, Array], P: int, K: int) -> Experts:
    H = len(take(part, "B_inv", np.float64, (None, P, P)))
    take(part, "mw", np.float64, (H, K, P + 1))
    take(part, "m", np.float64, (H, P), largest=FARTHEST)
    try:
        q = like(part, Experts.from_prior(Prior.of(IqgmeConfig(), P), H, K), OF_EXPERTS)
    except np.linalg.LinAlgError:
        raise ValueError("'B_inv' is not positive definite") from None
    if np.any(q.nu <= P - 1.0):
        raise ValueError("'nu' has numbers that are too small")
    return q


def own_in(part: Mapping[str, Array], q: Experts, n_tasks: int) -> TaskDeviations:
    """Return tasks' own rules about those of q; ValueError where an array does not fit."""
    prior = Prior.of(IqgmeConfig(), 0)
    own = like(part, TaskDeviations.unknown(prior, n_tasks, q.K, q.F, 1.0), ("omega", "b"))
    if not own.a > 1:
        raise ValueError("'a' of the tasks' own rules does not fit")
    return own


def member_in(arrays: Mapping[str, Array], P: int, n_levels: int, n_tasks: int | None) -> Member:
    """Return one of the fits that predict together; ValueError where an array does not fit."""
    experts, shares, own = experts_in(under(arrays, "experts."), P, n_levels), None, None
    if n_tasks is not None:
        shares = take(arrays, "shares", np.float64, (n_tasks, experts.H))
        deviations = under(arrays, "own.")
        own = own_in(deviations, experts.rules, n_tasks) if deviations else None
    weight = float(take(arrays, "weight", np.float64, ()))
    left_out = None
    if "left_out" in arrays:
        left_out = take(arrays, "left_out", np.float64, (None, n_levels))
    return Member(experts, weight, shares, own, power_in(arrays), left_out)


def power_in(arrays: Mapping[str, Array]) -> float:
    """Return the power of forecasts, 1 where none was kept; ValueError where none can be that."""
    power = float(take(arrays, "power", np.float64, ())) if "power" in arrays else 1.0
    if not 1.0 / LARGEST_POWER <= power <= LARGEST_POWER:
        raise ValueError("'power' is out of the range of powers")
    return power


def local_in(part: Mapping[str, Array], rows: KnownRows, q: Any, n_atoms: int) -> Local:
    """Return q of a table's rows under experts q."""
    n, H = len(rows.x), q.H
    shapes = ((n_atoms, n), (H, n, rows.n_label))
    return like(part, Local(*(np.empty(shape) for shape in shapes)))


def past_in(part: Mapping[str, Array], q: Experts) -> Acceleration:
    """Return the latest coefficients and their moves."""
    m, size = np.shape(take(part, "before", np.float64, (None, None)))
    if m and size != q.mw.size:
        raise ValueError("'before' is not of the experts' coefficients")
    return like(part, Acceleration(np.empty((m, size)), np.empty((m, size))))


def sums_in(part: Mapping[str, Array], zero: Kind) -> Kind | None:
    """Return sums over rows, of the sizes of `zero`; None where there are none."""
    return like(part, zero) if part else None


def usage_in(part: Mapping[str, Array], n_tasks: int, n_experts: int) -> Usage:
    """Return which experts the tasks use."""
    H = take(part, "sigma", np.float64, (n_tasks, None, n_experts)).shape[1]
    sticks, sigma = np.empty((n_tasks, H - 1)), np.empty((n_tasks, H, n_experts))
    return like(part, Usage(sticks, sticks, 1.0, 1.0, sigma), ("v1", "v2", "tau1", "tau2"))


def drawn_in(part: Mapping[str, Array], H: int | None, P: int, K: int) -> Drawn:
    """Return experts as the sampler drew them."""
    H = len(take(part, "nB", np.float64, (H, P, P)))
    take(part, "mw", np.float64, (H, K, P + 1))
    blank = draw_prior(Prior.of(IqgmeConfig(), P), H, K, np.random.default_rng(0))
    drawn = like(part, blank, ("alpha", "r", "lam", "sticks"))
    if np.any(drawn.sticks >= 1.0):
        raise ValueError("'sticks' has numbers that are not below 1")
    return drawn
