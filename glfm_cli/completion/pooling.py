"""Estimates of several completed tables as one, by Rubin's rules [Rubin 1987]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtr, stdtrit

from glfm_cli.arrays import Array
from glfm_cli.completion.requests import INTERVAL, check_estimate
from glfm_cli.errors import UsageError


@dataclass(frozen=True, repr=False)
class Pooled:
    """Estimates of several completed tables as one; shown as a table.

    All are (p,), or numbers where there was one estimate a table.

    estimate, se : the mean over the tables, and its standard error
    df : degrees of freedom of Student's t
    p : of a two-sided test of whether the estimate is 0
    lower, upper : ends of the interval
    missing : share of the squared standard error that is due to missing cells
    terms : names of the estimates, or their numbers from 1
    """

    estimate: Array
    se: Array
    df: Array
    p: Array
    lower: Array
    upper: Array
    missing: Array
    terms: tuple[str, ...]

    def to_table(self) -> pa.Table:
        """Return one row a term."""
        names = ("estimate", "se", "df", "p", "lower", "upper", "missing")
        numbers = {name: pa.array(np.atleast_1d(getattr(self, name))) for name in names}
        return pa.table({"term": pa.array(self.terms), **numbers})

    def __repr__(self) -> str:
        """Return the table as text."""
        columns = [
            [name, *(x if isinstance(x, str) else f"{x:.4g}" for x in column)]
            for name, column in self.to_table().to_pydict().items()
        ]
        first, *others = ([x.rjust(max(map(len, one))) for x in one] for one in columns)
        terms = [x.strip().ljust(len(x)) for x in first]
        return "\n".join("  ".join(row) for row in zip(terms, *others, strict=True))


def pool(
    estimates: Sequence[Any],
    variances: Sequence[Any],
    df: Any = np.inf,
    *,
    interval: float = INTERVAL,
) -> Pooled:
    """Combine estimates of M completed tables by Rubin's rules.

    The squared standard error is T = W + (1 + 1/M) B, of the mean W of the variances and the
    variance B of the estimates; degrees of freedom are those of [Barnard and Rubin 1999].

    Parameters
    ----------
    estimates : M of (p,) or of a number
        What was estimated in each table, roughly normal, such as `params` of statsmodels; a pandas
        frame has a row for each table.
    variances : M of (p,) or of a number
        Their squared standard errors, above 0, such as `bse**2` of statsmodels.
    df : float or (p,)
        Degrees of freedom that the analysis has in a table without missing cells: its rows less
        its coefficients. If left out they are taken to be many.
    interval : float
        Probability of the intervals, in (0, 1).

    Raises
    ------
    UsageError
        There are fewer than two tables, one has other terms than the first, or a number is none.
    """
    check_estimate("auto", interval)
    df = np.asarray(df, dtype=float)
    estimates, variances = _tables("estimates", estimates), _tables("variances", variances)
    q, u = _numbers("estimates", estimates), _numbers("variances", variances)
    if len(q) < 2 or q.shape != u.shape:
        found = f"shapes {q.shape} and {u.shape}"
        raise UsageError("estimates and variances", value=found, expected="two tables or more")
    own, others = _names(estimates[0]), _names(variances[0])
    if None not in (own, others) and own != others:
        raise UsageError("variances", value=others, expected=f"the terms of the estimates, {own}")
    if df.ndim and df.shape != q.shape[1:]:
        raise UsageError("df", value=f"{df.size} of them", expected="one, or one a term")
    if not (u > 0).all():
        raise UsageError("variances", value=u.min(), expected="squared standard errors, above 0")
    if not (df > 0).all():
        raise UsageError("df", value=df.min(), expected="degrees of freedom, above 0")
    m = len(q)
    between = (1 + 1 / m) * q.var(axis=0, ddof=1)
    total = u.mean(axis=0) + between
    share = between / total
    seen = (1 - share) * df * (1 - 2 / (df + 3))
    with np.errstate(divide="ignore"):  # infinite, where all estimates are alike
        pooled_df = 1 / (share**2 / (m - 1) + 1 / seen)
    estimate, se = q.mean(axis=0), np.sqrt(total)
    half = stdtrit(pooled_df, (1 + interval) / 2) * se
    p = 2 * stdtr(pooled_df, -np.abs(estimate) / se)
    ends = estimate - half, estimate + half
    return Pooled(estimate, se, pooled_df, p, *ends, share, _terms(estimates, q))


def _tables(name: str, tables: Any) -> Sequence[Any]:
    """Return what there is of each table; of a pandas frame that has a row for each, these."""
    if hasattr(tables, "iterrows"):
        return [row for _, row in tables.iterrows()]
    if hasattr(tables, "iloc") or isinstance(tables, Iterator):
        return list(tables)
    if not hasattr(tables, "__len__"):
        raise UsageError(name, value=tables, expected="those of two tables or more")
    return tables


def _numbers(name: str, rows: Sequence[Any]) -> Array:
    """Return (M, p) or (M,) numbers of M tables, which must have the terms of the first."""
    terms = [_names(row) for row in rows]
    for i, one in enumerate(terms):
        if one != terms[0]:
            differs = sorted(set(one or ()) ^ set(terms[0] or ())) or "another order"
            raise UsageError(
                f"{name}: table {i + 1} has other terms than the first",
                value=differs,
                hint="Fit the same terms in every table, with all levels of each category.",
            )
    try:
        numbers = np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(name, expected="as many numbers of every table") from None
    if not np.isfinite(numbers).all():
        i, *k = np.argwhere(~np.isfinite(numbers))[0]
        found = numbers[(i, *k)]
        raise UsageError(f"{name} of table {i + 1}", value=found, expected="finite numbers")
    return numbers


def _names(row: Any) -> list[str] | None:
    """Return the names of a pandas series, None of what has none."""
    return [str(name) for name in row.index] if hasattr(row, "iloc") else None


def _terms(estimates: Sequence[Any], q: Array) -> tuple[str, ...]:
    names = _names(estimates[0])
    return tuple(names or (str(k + 1) for k in range(q[0].size)))
