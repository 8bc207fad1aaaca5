"""Tables to arrays and back: what every model sees of a table, and the completed table.

`encode` turns the modelled columns of a table into numbers, level codes and masks, checking each
observed cell against the column's type; `decode` puts completed cells back and leaves every other
cell as it was.
"""

from glfm_cli.encoding.data import Data, EncodedColumn, NotCompleted
from glfm_cli.encoding.decode import blank, cell_texts, decode
from glfm_cli.encoding.encode import encode
from glfm_cli.encoding.flags import flag_columns
from glfm_cli.encoding.group_level import first_of_group
from glfm_cli.encoding.groups import predictors_of, time_of
from glfm_cli.encoding.levels import level_numbers
from glfm_cli.encoding.new_rows import LearntColumn, encode_rows, with_types
from glfm_cli.encoding.numeric import encode_numbers, numerals_of
from glfm_cli.encoding.obeyed import broken_rows
from glfm_cli.encoding.relations import (
    Relations,
    bounds_of,
    learnt_cells,
    levels_of,
    placed,
    rows_inside,
    settle,
    with_known,
)
from glfm_cli.encoding.source import open_column, text_of
from glfm_cli.encoding.trials import is_trials, pack_trials, successes_of, trials_of
from glfm_cli.encoding.triplets import (
    Ids,
    Triplets,
    encode_ids,
    encode_triplets,
    is_triplets,
    layout_of,
)
from glfm_cli.encoding.values import number_texts
