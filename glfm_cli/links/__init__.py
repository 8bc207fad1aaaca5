"""Links: what the cells of a column are, given the law of a few latent numbers."""

from glfm_cli.links.config import LinkConfig
from glfm_cli.links.law import CellLaw, NormalMixture, Probabilities, RowsLaw
from glfm_cli.links.link import Link
from glfm_cli.links.observation import (
    LevelObservation,
    NumericObservation,
    Observation,
    Params,
    Summary,
    of_levels,
    of_numbers,
)
from glfm_cli.links.table import LINKS, link_from, make_link

__all__ = [
    "LINKS",
    "CellLaw",
    "LevelObservation",
    "Link",
    "LinkConfig",
    "NormalMixture",
    "NumericObservation",
    "Observation",
    "Params",
    "Probabilities",
    "RowsLaw",
    "Summary",
    "link_from",
    "make_link",
    "of_levels",
    "of_numbers",
]
