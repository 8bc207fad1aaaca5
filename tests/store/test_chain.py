"""The random state of a saved chain is checked; what chains promise else is in tests/contract."""

from __future__ import annotations

import json

import pytest

from glfm_cli.store.log import Names
from glfm_cli.streams import Streams


def test_a_random_state_out_of_range_is_refused() -> None:
    words = Streams(0, 0)
    words.get(1).random(3)
    for column, value in ((2, 2), (3, 2**32)):
        saved = words.save()
        saved["streams"][0, column] = value
        with pytest.raises(ValueError, match="out of range"):
            Streams.load(saved)


def test_names_that_are_no_texts_are_refused() -> None:
    for params, trace in (([[0, [1], 3]], ["bound"]), ([], [["bound"]])):
        with pytest.raises(ValueError, match="does not name parameters"):
            Names.from_text(json.dumps({"params": params, "trace": trace}), 2)
