"""Links: what the cells of a column are, given the law of a few latent numbers."""

from glfm_cli.links.config import LinkConfig
from glfm_cli.links.law import CellLaw, NormalMixture, Probabilities, RowsLaw
from glfm_cli.links.link import Link
from glfm_cli.links.observation import (
    LevelObservation,
    NumericObservation,
    Params,
    of_levels,
    of_numbers,
)
from glfm_cli.links.table import LINKS, link_from, make_link
