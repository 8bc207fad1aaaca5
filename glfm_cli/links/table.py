"""Which link a column has: that of its type, by the table of types (schema/types.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError
from glfm_cli.links.config import LinkConfig
from glfm_cli.links.link import Link
from glfm_cli.schema import COLUMN_TYPES, Column, ColumnType
from glfm_cli.schema.atoms import atom_of

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn


class _Links(Mapping[str, type[Link]]):
    """The class of each type's link, imported when it is asked for."""

    def __getitem__(self, name: str) -> type[Link]:
        module, _, link = COLUMN_TYPES[name].link.partition(":")
        return getattr(import_module(module), link)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMN_TYPES)

    def __len__(self) -> int:
        return len(COLUMN_TYPES)


LINKS = _Links()


def make_link(
    encoded: EncodedColumn, config: LinkConfig, *, rates: bool = False, weights: bool = False
) -> Link:
    """Return the link of a column, its constants calibrated on the observed cells.

    rates : whether the model is one of rates, to which counts are Poisson
    weights : whether cells may have weights, as trials of one rate need

    Raises SchemaError: the column's transform does not fit its type; TableError: a value lies
        outside the domain of the transform or too far out for a finite latent value, or no level is
        known.
    """
    own, at = _class_of(encoded.column, rates, weights), None
    if encoded.column.missingness is not None:
        if rates:
            raise SchemaError(
                "models of rates take no `missingness`",
                column=encoded.column.name,
                hint="Use another --model, or leave `missingness` out.",
            )
        return own.calibrate(encoded, config)
    if encoded.ends is not None and encoded.column.atom not in (None, "none"):
        raise SchemaError(
            "`atom` does not go with cells that are intervals, such as <0.5",
            column=encoded.column.name,
            hint="Leave out `atom`, or list such texts under `missing:`.",
        )
    if encoded.ends is not None and rates:
        raise SchemaError(
            "models of rates take no cells that are intervals, such as 5+",
            column=encoded.column.name,
            hint="Use another --model, or list such texts under `missing:`.",
        )
    if config.atoms and encoded.ends is None:
        at = atom_of(encoded.column, encoded.x[encoded.observed])
    if at is None:
        return own.calibrate(encoded, config)
    return _two_part().around(at, encoded, config, own)


def link_from(
    column: Column,
    n_levels: int,
    constants: Mapping[str, Array],
    config: LinkConfig,
    *,
    rates: bool = False,
) -> Link:
    """Return the link whose `constants` these are; `rates` as in `make_link`.

    Raises ValueError: they are not those of such a link, with a phrase that says why.
    """
    own = _class_of(column, rates, weights=set(constants) <= {"extra_variance"})
    if "at" in constants:
        return _two_part().with_part(column, n_levels, constants, config, own)
    return own.from_constants(column, n_levels, constants, config)


def _two_part() -> Any:
    """Return the class of columns with an atom."""
    return getattr(import_module("glfm_cli.links.two_part"), "TwoPartLink")  # noqa: B009


def _class_of(column: Column, rates: bool, weights: bool) -> type[Link]:
    """Return the class of a column's link: that of its type, of counts under rates, of trials.

    Of two levels in a matrix, which alone has weights; its link has no constants.
    """
    if rates:
        return getattr(import_module("glfm_cli.links.poisson"), "PoissonCount")  # noqa: B009
    if weights and column.binomial:
        return getattr(import_module("glfm_cli.links.binomial"), "BinomialLink")  # noqa: B009
    if weights and column.type is not None and column.type == ColumnType.CATEGORICAL:
        return getattr(import_module("glfm_cli.links.binary"), "BinaryLink")  # noqa: B009
    if column.missingness is not None:
        return getattr(import_module("glfm_cli.links.selection"), "selected")(column)  # noqa: B009
    return LINKS[str(column.type)]
