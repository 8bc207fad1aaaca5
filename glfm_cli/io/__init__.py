"""Files to tables and back: CSV, TSV, Parquet and Arrow, losing nothing on the way.

`read_table` gives a `pyarrow.Table`. Of a CSV file every column is text, cell for cell as it
stands in the file, and the file's dialect travels in the table's metadata; Parquet and Arrow
keep their types. `write_table` writes the same dialect or types back, through a temporary file
in the same folder, so that a failed run never leaves half a table behind.
"""

from glfm_cli.io.batches import memory_needed, read_batches, rows_after
from glfm_cli.io.dialect import is_text_table, mark_written_type, notes_of
from glfm_cli.io.files import atomic_write, check_writable, is_device, same_file
from glfm_cli.io.folders import whole_folder
from glfm_cli.io.tables import (
    check_cells,
    check_target,
    naming_sheets,
    read_table,
    renamed_note,
    write_parts,
    write_table,
)
from glfm_cli.io.variable_names import STACKED
