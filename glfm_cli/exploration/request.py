"""What is asked of an exploration besides its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glfm_cli.errors import UsageError
from glfm_cli.exploration.choice import Sample, check_sample
from glfm_cli.exploration.scales import Scale
from glfm_cli.options import names_given, whole
from glfm_cli.schema.phrases import did_you_mean, each_named

TOP = 5


@dataclass(frozen=True)
class Request:
    """Which draw is shown, and what of it.

    sample : how the draw is chosen
    top : how many patterns are shown; of a map, how many columns of an axis and rows
    columns : names of the columns that words and figures speak of; None for all
    all_features : whether features that say no more than chance are shown, too
    surprising : how many of the least expected cells and rows are wanted, 0 for none
    similar : a data row, counted from 1, whose likes are wanted
    dependence : whether the dependence between columns is wanted
    color : name of the column that colours the rows of a map; None for what it explains best
    """

    sample: Sample = "consensus"
    top: int = TOP
    columns: tuple[str, ...] | None = None
    all_features: bool = False
    surprising: int = 0
    similar: int | None = None
    dependence: bool = False
    color: str | None = None

    def __post_init__(self) -> None:
        check_sample(self.sample)
        for name, default in (("top", TOP), ("surprising", 0), ("similar", None)):
            number = whole(name, getattr(self, name), least=int(name == "top"))
            object.__setattr__(self, name, default if number is None else number)
        object.__setattr__(self, "columns", names_given("columns", self.columns))

    def check_rows(self, n_rows: int) -> None:
        """Raise UsageError when the row asked for is not in the table."""
        if self.similar is not None and not 1 <= self.similar <= n_rows:
            raise UsageError(
                "--similar", value=self.similar, expected=f"a data row from 1 to {n_rows}"
            )

    def check_without_features(self, model: str, more: Sequence[str] = ()) -> None:
        """Raise UsageError when something is requested that a model without features has not."""
        plain = Request()
        for name in ("sample", "surprising", "similar", "dependence", "all_features", *more):
            if getattr(self, name) != getattr(plain, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} is not available: {model} has no binary features",
                    hint="Leave it out, or explore with --model glfm.",
                )

    def check_no_color(self) -> None:
        """Raise UsageError when rows are to be coloured where there is no map of them."""
        if self.color is not None:
            raise UsageError(
                "--color is for maps of rows", hint="Leave it out, or use --model clgp."
            )

    def requested(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns asked for; a comma separates names, unless a name has one itself."""
        return tuple(each_named(self.columns or (), names))

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise UsageError when a column asked for is not among the modelled ones."""
        asked = [("--columns", name) for name in self.requested(names)]
        asked += [] if self.color is None else [("--color", self.color)]
        for option, name in asked:
            if name not in names:
                more = f" and {len(names) - 8} more." if len(names) > 8 else "."
                every = f"Modelled are {', '.join(names[:8])}{more}"
                raise UsageError(
                    f"{option} names no modelled column",
                    value=f"'{name}'",
                    hint=did_you_mean(name, names) or every,
                )

    def chosen(self, scales: Sequence[Scale]) -> tuple[Scale, ...]:
        """Return the columns asked for, in the order asked."""
        if self.columns is None:
            return tuple(scales)
        by_name = {scale.name: scale for scale in scales}
        return tuple(by_name[name] for name in self.requested(list(by_name)))
