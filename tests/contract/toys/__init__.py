"""Parts that live in the tests: a file each, and the one line that registers it."""

from __future__ import annotations

from typing import Any

import glfm_cli
from glfm_cli.cli.app import COMMANDS
from glfm_cli.io.formats import FORMATS
from glfm_cli.latent import MODELS
from glfm_cli.schema import COLUMN_TYPES
from tests.contract.toys import tally
from tests.contract.toys.additive import Additive
from tests.contract.toys.cards import CARDS
from tests.contract.toys.classes import Classes, HalvedClasses
from tests.contract.toys.grades import GRADES
from tests.contract.toys.proportion import PROPORTION
from tests.contract.toys.two_way import TwoWay

MODEL_LINES = {
    "row-plus-column": Additive(),
    "two-way": TwoWay(),
    "classes": Classes(),
    "halved-classes": HalvedClasses(),
}
TYPE_LINES = {"proportion": PROPORTION, "grades": GRADES}
COMMAND_LINES = {"tally": tally}
EXPORT_LINES = {"tally": tally.__name__}
FORMAT_LINES = {"cards": CARDS}
LINES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (MODELS, MODEL_LINES),
    (COLUMN_TYPES, TYPE_LINES),
    (COMMANDS, COMMAND_LINES),
    (glfm_cli._EXPORTS, EXPORT_LINES),
    (FORMATS, FORMAT_LINES),
)


def register() -> None:
    """Let commands of this process take the toys."""
    for table, lines in LINES:
        table.update(lines)
