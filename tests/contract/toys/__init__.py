"""Parts that live in the tests: a file each, and the one line that registers it."""

from __future__ import annotations

from glfm_cli.latent import MODELS
from glfm_cli.schema import COLUMN_TYPES
from tests.contract.toys.additive import Additive
from tests.contract.toys.classes import Classes, HalvedClasses
from tests.contract.toys.grades import GRADES
from tests.contract.toys.proportion import PROPORTION
from tests.contract.toys.two_way import TwoWay

MODEL_LINES = {
    "additive": Additive(),
    "two-way": TwoWay(),
    "classes": Classes(),
    "halved-classes": HalvedClasses(),
}
TYPE_LINES = {"proportion": PROPORTION, "grades": GRADES}


def register() -> None:
    """Let commands of this process take the toys."""
    MODELS.update(MODEL_LINES)
    COLUMN_TYPES.update(TYPE_LINES)
