"""What the contract tests share: the toy parts, registered while a test runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.toys import LINES


@pytest.fixture(scope="module")
def toys() -> Iterator[None]:
    """Let commands of this process take the toys."""
    with pytest.MonkeyPatch.context() as patch:
        for table, lines in LINES:
            for name, line in lines.items():
                patch.setitem(table, name, line)
        yield
