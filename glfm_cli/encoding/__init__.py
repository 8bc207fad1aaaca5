"""Tables to arrays and back: what every model sees of a table, and the completed table.

`encode` turns the modelled columns of a table into numbers, level codes and masks, checking each
observed cell against the column's type; `decode` puts completed cells back and leaves every other
cell as it was.
"""

from __future__ import annotations

from glfm_cli.encoding.data import Data, EncodedColumn
from glfm_cli.encoding.decode import blank, cell_texts, decode
from glfm_cli.encoding.encode import encode
from glfm_cli.encoding.flags import flag_columns
from glfm_cli.encoding.new_rows import LearntColumn, encode_rows
from glfm_cli.encoding.values import number_texts

__all__ = [
    "Data",
    "EncodedColumn",
    "LearntColumn",
    "blank",
    "cell_texts",
    "decode",
    "encode",
    "encode_rows",
    "flag_columns",
    "number_texts",
]
