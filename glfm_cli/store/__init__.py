"""A posterior on disk: a folder `NAME.glfm/` that is written during a run and loaded after it.

    run.json              format, versions, model and settings, plan, seed, hashes
    types.yaml            the types
    links.arrow           the constants of every link
    data.arrow            the encoded table, unless it was left out
    matrix.arrow          of a fit of triplets, the ids and how covariates are made
    chain-N.draws.arrow   an Arrow IPC stream, one record batch a draw, appended to
    chain-N.state.arrow   the chain's last state with its random state, replaced as a whole

Nothing is pickled, and a folder from elsewhere is checked before it is trusted. `load_fit` gives
a `Fit`; a run writes through a `Store`. docs/reference/folder.md describes the files.
"""

from glfm_cli.store.drafts import as_open_as, check_free
from glfm_cli.store.fit import Fit, load_fit
from glfm_cli.store.folder import check_folder
from glfm_cli.store.header import (
    ClassifierHeader,
    Header,
    Modelled,
    hash_of_data,
    hash_of_types,
    read_header,
    versions,
)
from glfm_cli.store.log import EVERY
from glfm_cli.store.matrix import (
    MatrixCells,
    MatrixHeader,
    cell_arrays,
    hash_of_content,
    hash_of_matrix,
    matrix_arrays,
)
from glfm_cli.store.writer import Store, discard
