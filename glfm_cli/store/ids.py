"""The ids of a saved fit's rows, as the table had them: texts, and the type of their column."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from glfm_cli.arrays import Array
from glfm_cli.encoding import text_of
from glfm_cli.latent.model import take


def ids_out(ids: pa.Table) -> dict[str, Array]:
    """Return the columns of ids as named arrays."""
    found: dict[str, Array] = {}
    for i, column in enumerate(ids.columns):
        values = column.combine_chunks()
        texts = text_of(values).cast(pa.large_string())
        n, (_, ends, content) = len(texts), texts.buffers()
        ends = np.frombuffer(ends or b"", np.int64)[texts.offset : texts.offset + n + 1]
        text = np.frombuffer(content or b"", np.uint8)
        found[f"ids.{i}.text"] = text[ends[0] : ends[-1]] if n else text[:0]
        found[f"ids.{i}.ends"] = ends[1:] - ends[:1]
        found[f"ids.{i}.known"] = np.packbits(values.is_valid().to_numpy(zero_copy_only=False))
        found[f"ids.{i}.kind"] = np.frombuffer(str(values.type).encode(), np.uint8)
    return found


def read_ids(arrays: Mapping[str, Array], names: tuple[str, ...], n: int) -> pa.Table | None:
    """Return the columns of ids that `ids_out` was given, of n rows; None where there are none.

    Raises ValueError: they are not of this kind.
    """
    if not names or "ids.0.text" not in arrays:  # kept by an older version
        return None
    return pa.table({name: _column(arrays, f"ids.{i}", n) for i, name in enumerate(names)})


def _column(arrays: Mapping[str, Array], name: str, n: int) -> pa.Array:
    content = take(arrays, f"{name}.text", np.uint8, (None,))
    ends = take(arrays, f"{name}.ends", np.int64, (n,))
    known = np.unpackbits(take(arrays, f"{name}.known", np.uint8, (-(-n // 8),)), count=n) == 1
    kind = take(arrays, f"{name}.kind", np.uint8, (None,)).tobytes().decode()
    starts = np.concatenate([[0], ends])
    if np.any(np.diff(starts) < 0) or starts[-1] != content.size:
        raise ValueError(f"the texts '{name}' do not end where they should")
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(content)]
    texts = pa.Array.from_buffers(pa.large_string(), n, buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowException:
        raise ValueError(f"'{name}' is no text") from None
    texts = compute.if_else(pa.array(known), texts, pa.scalar(None, texts.type))
    with suppress(pa.ArrowException, ValueError):  # of a kind without alias, text will do
        texts = texts.cast(pa.type_for_alias(kind))
    return texts
