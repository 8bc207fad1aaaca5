"""How many units of a population each row of a table stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding.numeric import encode_numbers
from glfm_cli.encoding.source import open_column
from glfm_cli.errors import TableError
from glfm_cli.schema import Column, Role


def weights_of(table: pa.Table, columns: Sequence[Column], file: str | None) -> Array | None:
    """Return the weights (n_rows,) of the column of role weight, None where there is none.

    Raises TableError: a weight is missing, no number or below 0, or all are 0; names row and
        column.
    """
    index = next((i for i, c in enumerate(columns) if c.role is Role.WEIGHT), None)
    if index is None:
        return None
    plain = replace(columns[index].of_numbers(), transform=None, bounds=(None, None))
    source = open_column(table, index, plain, file)
    weights = encode_numbers(source).x
    hint = "A row that stands for nobody has weight 0; or give the column role ignore."
    wrong = np.isnan(weights)
    if wrong.any():
        raise source.cell_error(
            wrong, "a number in every row", hint, "the cell of role weight is empty"
        )
    if (weights < 0.0).any():
        raise source.cell_error(weights < 0.0, "a weight from 0", hint)
    if not weights.any():
        raise TableError("every weight is 0", file=file, column=plain.name, hint=hint)
    weights.setflags(write=False)
    return weights
