"""A toy type of numbers: shares, in (0, 1), by the logit of the share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.real import RealLink
from glfm_cli.schema import ColumnType, Transform

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links import LinkConfig

PROPORTION = ColumnType("proportion", values="numbers", link=f"{__name__}:ProportionLink")


@dataclass(frozen=True, eq=False)
class ProportionLink(RealLink):
    """y = logit x, centred and scaled."""

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        column = replace(encoded.column, transform=Transform.LOGIT)
        return super().calibrate(replace(encoded, column=column), config)

    def check_cells(self, x: Array) -> None:
        super().check_cells(x)
        if np.any((x <= 0.0) | (x >= 1.0)):
            raise ValueError("a value is no share")
