"""Which link a column has: the one table of types; adding a type is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.links.config import LinkConfig
from glfm_cli.links.count import CountLink
from glfm_cli.links.link import Link
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.links.positive import PositiveLink
from glfm_cli.links.real import RealLink
from glfm_cli.schema import Column, ColumnType

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn

LINKS: dict[str, type[Link]] = {
    ColumnType.REAL: RealLink,
    ColumnType.POSITIVE: PositiveLink,
    ColumnType.COUNT: CountLink,
    ColumnType.CATEGORICAL: CategoricalLink,
    ColumnType.ORDINAL: OrdinalLink,
    ColumnType.BINOMIAL: BinomialLink,
}


def make_link(encoded: EncodedColumn, config: LinkConfig) -> Link:
    """Return the link of a column, its constants calibrated on the observed cells.

    Raises
    ------
    SchemaError
        The column's type has no link, or its transform does not fit the type.
    TableError
        A value lies outside the domain of the transform or too far out for a finite latent
        value, or no level is known.
    """
    return _class_of(encoded.column).calibrate(encoded, config)


def link_from(
    column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
) -> Link:
    """Return the link whose `constants` these are.

    Raises
    ------
    ValueError
        They are not those of such a link, with a phrase that says why.
    """
    return _class_of(column).from_constants(column, n_levels, constants, config)


def _class_of(column: Column) -> type[Link]:
    found = LINKS.get(str(column.type))
    if found is None:
        raise SchemaError(
            f"type {column.type} is not available in this model",
            column=column.name,
            hint=f"Take one of {', '.join(LINKS)}.",
        )
    return found
