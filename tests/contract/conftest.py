"""What the contract tests share: the toy parts, registered while a test runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glfm_cli.latent import MODELS
from glfm_cli.schema import COLUMN_TYPES
from tests.contract.toys import MODEL_LINES, TYPE_LINES


@pytest.fixture(scope="module")
def toys() -> Iterator[None]:
    """Let commands of this process take the toys."""
    with pytest.MonkeyPatch.context() as patch:
        for name, model in MODEL_LINES.items():
            patch.setitem(MODELS, name, model)
        for name, kind in TYPE_LINES.items():
            patch.setitem(COLUMN_TYPES, name, kind)
        yield
