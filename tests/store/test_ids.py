"""The ids of rows that a saved fit keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.store.ids import ids_out, read_ids


@pytest.mark.parametrize("slices", [slice(0, 4), slice(1, 3), slice(0, 0)])
def test_ids_come_back_as_they_were(slices: slice) -> None:
    texts, days = ["007", None, "é", ""], [3, None, 5, 7]
    names, dates = pa.array(texts, pa.large_string()), pa.array(days, pa.date32())
    ids = pa.table({"name": names, "number": days, "day": dates})
    ids = ids.slice(slices.start, slices.stop - slices.start)
    found = read_ids(ids_out(ids), tuple(ids.column_names), ids.num_rows)
    assert found is not None
    assert found.to_pydict() == ids.to_pydict()
    assert found.schema.types[1:] == ids.schema.types[1:]


def test_a_folder_of_an_older_version_has_none() -> None:
    assert read_ids({}, ("name",), 3) is None


@pytest.mark.parametrize(
    ("part", "wrong", "error"),
    [
        ("ends", np.array([2, 1]), "do not end where they should"),
        ("ends", np.array([1, 9]), "do not end where they should"),
        ("text", np.array([200, 200], np.uint8), "is no text"),
        ("known", np.zeros(5, np.uint8), "known"),
    ],
)
def test_ids_that_are_broken_are_refused(part: str, wrong: np.ndarray, error: str) -> None:
    arrays = ids_out(pa.table({"a": ["x", "y"]}))
    with pytest.raises(ValueError, match=error):
        read_ids(arrays | {f"ids.0.{part}": wrong}, ("a",), 2)
