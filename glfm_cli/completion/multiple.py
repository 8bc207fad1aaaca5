"""Multiple imputation: several completed versions of one table, stacked.

Each version is one joint draw of all missing cells from one kept draw of the posterior, so that an
analysis made of every version shows, by how much the results differ, what missing cells leave open
[Rubin 1987]. The stacked form is that of R's `mice::complete(..., "long", include = TRUE)`, which
`mice::as.mids` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.dependent import TableDraws
from glfm_cli.completion.models import Asked, knows, model_of, named
from glfm_cli.encoding import Data, blank, decode, flag_columns, placed
from glfm_cli.errors import UsageError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import Precision
from glfm_cli.io import STACKED, is_text_table, mark_written_type
from glfm_cli.io.frames import table_like
from glfm_cli.options import Sampling
from glfm_cli.streams import TABLES, Streams

if TYPE_CHECKING:
    from glfm_cli.completion.analysis.versions import Compatible

VERSION, ROW = STACKED
# Regressions see what many features do to a table that is nearly linear: they add variation that
# is theirs alone, and draw coefficients towards zero. A linear part follows it without them, so
# that chains start without features and expect few. Of noise it expects little, since what is left
# over beside it may be little: a column that others tell exactly would be drawn too far from it.
LINEAR: dict[str, object] = {
    "components": 10, "alpha_rate": 10.0, "initial_features": 0, "noise_rate": 0.05,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Multiple:
    """Several completed versions of one table.

    table, data : the completed table, and which of its cells were missing
    posterior, seed : what the versions are drawn from
    chosen : for each version, the chain and the place in it (both from 0) of its draw
    alike : a warning that the draws are too few, where they are
    compatible : the analysis that they are for, which draws each anew; None without one
    given : the data that were completed, of whichever kind
    """

    table: pa.Table
    data: Data
    posterior: Posterior
    seed: int
    chosen: tuple[tuple[int, int], ...]
    alike: tuple[str, ...] = ()
    compatible: Compatible | None = None
    given: Any = None

    def __len__(self) -> int:
        return len(self.chosen)

    def __repr__(self) -> str:
        rows = self.table.num_rows
        return f"<Multiple: {len(self)} versions of {rows} rows, by outputs() or tables()>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of the versions, one line each: after they were drawn, all."""
        return (*self.alike, *(self.compatible.warnings() if self.compatible else ()))

    def tables(self) -> Iterator[pa.Table]:
        """Yield the completed versions, one table at a time."""
        posterior, data = self.posterior, self.data
        joint = TableDraws(posterior, data)
        for number, (chain, place) in enumerate(self.chosen, start=1):
            # A stream of its own: a version does not depend on how many others there are.
            rng = Streams(self.seed, 0).get(TABLES, number)
            cells = joint.draw(rng, posterior.chains[chain][place]) if data.missing else {}
            if self.compatible is not None:
                cells = self.compatible.draw(cells, number)
            whole, drawn = placed(data, cells)
            fills = {data.columns[d].column.name: values for d, values in drawn.items()}
            # A cell that has a value in one version may have none in another.
            table = self.table if whole is data else blank(self.table, data)
            yield decode(table, whole, fills)

    def outputs(self) -> Iterator[Any]:
        """Yield the completed versions, each of the kind that was given, with index and dtypes."""
        filled = {one.column.name for one in self.data.columns if one.requested.any()}
        for table in self.tables():
            yield table_like(table, self.given, filled)

    def parts(self, *, flags: bool = False) -> Iterator[pa.Table]:
        """Yield the incomplete table, then each version, with `.imp` and `.id` before them.

        Parameters
        ----------
        flags : bool
            Whether each gets the columns NAME_imp, 1 where a cell was completed.
        """
        data = self.data
        first = numbered(_flagged(blank(self.table, data), data, flags), 0)
        yield first
        for number, table in enumerate(self.tables(), start=1):
            part = numbered(_flagged(table, data, flags), number)
            yield pa.Table.from_arrays(part.columns, schema=first.schema)

    def to_table(self) -> pa.Table:
        """Return the incomplete table (`.imp` 0) and the versions (1, 2, ...) stacked."""
        return pa.concat_tables(self.parts()).unify_dictionaries()

    def to_dict(self) -> dict[str, Any]:
        """Return how many versions there are, their draws (counted from 1), and warnings."""
        return {
            "tables": len(self),
            "drawn_from": [{"chain": c + 1, "draw": t + 1} for c, t in self.chosen],
            "warnings": list(self.warnings),
            **({} if self.compatible is None else self.compatible.to_dict()),
        }


def with_linear_part(sampling: Sampling) -> Sampling:
    """Return the options of a run for several versions: LINEAR where a model knows such a part.

    What is said stands.
    """
    settings = {**LINEAR, **(sampling.settings or {})}
    found = named(replace(sampling, settings=settings), Asked("dense"))
    return found if knows(model_of(found, "dense"), settings) else sampling


def choose_multiple(
    table: pa.Table,
    data: Data,
    posterior: Posterior,
    seed: int,
    precision: Precision,
    versions: int,
    compatible: Compatible | None = None,
) -> Multiple:
    """Return `versions` versions of a completed table, each from a draw far from the others'.

    Raises UsageError: they are no whole number from 1, or the table has a column `.imp` or `.id`.
    """
    if not isinstance(versions, Integral) or versions < 1:
        raise UsageError("--multiple", value=versions, expected="a whole number from 1")
    check_names(table)
    if not data.missing:  # all are alike
        return Multiple(table, data, posterior, seed, ((0, 0),) * versions, ())
    if posterior.weights is not None:  # what is drawn from each restart of an ascent is its law
        chosen = _by_weight(posterior.weights, versions)
        return Multiple(table, data, posterior, seed, chosen, (), compatible)
    weights = posterior.chain_weights() if posterior.stacked else None
    places = spread([len(chain) for chain in posterior.chains], versions, weights)
    # Versions for an analysis have chains of their own, and a draw is but where each begins.
    alike = () if compatible else _too_short(posterior, precision, versions)
    return Multiple(table, data, posterior, seed, tuple(places), alike, compatible)


def _by_weight(weights: Sequence[float], n: int) -> tuple[tuple[int, int], ...]:
    """Return n places (chain, draw) in proportion to the weights of chains of one draw."""
    ends = np.cumsum(weights)
    at = np.searchsorted(ends / ends[-1], (np.arange(n) + 0.5) / n)
    return tuple((int(chain), 0) for chain in at)


def check_names(table: pa.Table) -> None:
    """Raise UsageError when the table has a column of a name that stacking needs."""
    for name in (VERSION, ROW):
        if name in table.column_names:
            raise UsageError(
                "the stacked tables need a column of this name of their own",
                column=name,
                hint="Rename the column, or leave it out.",
            )


def spread(
    lengths: Sequence[int], n: int, weights: Sequence[float] | Array | None = None
) -> list[tuple[int, int]]:
    """Return n places (chain, draw) as far from each other as chains of these lengths allow.

    Chains share them in proportion to their weights, else to their lengths; within a chain they
    are evenly spaced, the last at its end. First comes one place of each chain, then the next of
    each.
    """
    share = [0] * len(lengths)
    for _ in range(n):
        # The chain whose places would still be furthest apart with one more.
        parts = lengths if weights is None else weights
        apart = [part / (count + 1) for part, count in zip(parts, share, strict=True)]
        share[int(np.argmax(apart))] += 1
    places = [
        (j, chain, -(-(j + 1) * length // count) - 1)
        for chain, (length, count) in enumerate(zip(lengths, share, strict=True))
        for j in range(count)
    ]
    return [(chain, place) for _, chain, place in sorted(places)]


def _too_short(posterior: Posterior, precision: Precision, n: int) -> tuple[str, ...]:
    """Return a warning when the draws are worth fewer independent ones than versions wanted."""
    if n > posterior.n_draws:
        return (
            f"{n} tables were made of {posterior.n_draws} draws, so that some share theirs and "
            "differ too little; run more --draws or --chains",
        )
    chains = len(posterior.chains)
    if n <= max(precision.worth, chains):
        return ()
    return (
        f"{n} tables were asked for, but the draws of {chains} chains are worth only about "
        f"{max(precision.worth, chains):.0f} independent ones, so that some tables are too alike; "
        "run more --chains",
    )


def _flagged(table: pa.Table, data: Data, flags: bool) -> pa.Table:
    return flag_columns(table, data) if flags else table


def numbered(table: pa.Table, number: int) -> pa.Table:
    """Return the table with its number and its rows' numbers in front."""
    n_rows = table.num_rows
    rows: Array = np.arange(1, n_rows + 1)
    columns = [
        (VERSION, pa.array(np.full(n_rows, number), pa.int32()), "int32"),
        (ROW, pa.array(rows, pa.int64()), "int64"),
    ]
    for place, (name, values, kind) in enumerate(columns):
        field = pa.field(name, values.type)
        if is_text_table(table):
            field = mark_written_type(pa.field(name, pa.string()), kind)
            values = values.cast(pa.string())
        table = table.add_column(place, field, values)
    return table
