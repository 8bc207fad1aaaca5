"""From a table to a first types file.

The rules take a twentieth of a start, and are loaded when a table is guessed.
"""

from __future__ import annotations

import pyarrow as pa

from glfm_cli.guess.types_file import Guess


def guess_schema(table: pa.Table) -> Guess:
    """Guess what each column of a table means.

    Parameters
    ----------
    table : pyarrow.Table
        From `read_table`, or any other.

    Raises
    ------
    TableError
        The table has no row, two columns of one name, or no column that can be modelled.
    """
    from glfm_cli.guess.rules import guess_columns

    return guess_columns(table, features=False)


def guess_features(table: pa.Table) -> Guess:
    """Guess what each column of a table of features means, as `guess_schema` does.

    No column is taken for the numbers of the rows unless its name is an id's, and the table not for
    triplets.
    """
    from glfm_cli.guess.rules import guess_columns

    return guess_columns(table, features=True)
