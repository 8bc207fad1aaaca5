"""Named arrays to bytes and back, and bytes that are not what was written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glfm_cli.store.arrays import Malformed, read_batches, read_one, to_batch, to_stream

KINDS = st.sampled_from([np.uint8, np.uint64, np.int32, np.int64, np.float64])
ARRAYS = st.dictionaries(
    st.text("abc.", min_size=1, max_size=5),
    KINDS.flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    ),
    min_size=1,
    max_size=4,
)
PLAIN = {"a": np.arange(6.0).reshape(2, 3), "n": np.array(7, dtype=np.int64)}


@given(ARRAYS)
def test_arrays_come_back_as_they_went_in(arrays: dict[str, np.ndarray]) -> None:
    back = read_one(pa.py_buffer(to_stream(arrays)))
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        found = np.asarray(back[name])
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(found, array)


def test_a_stream_grows_by_batches_whose_lengths_differ_and_any_reader_opens_it() -> None:
    batches = [to_batch({"a": np.ones((n, 2)), "t": np.array(float(n))}) for n in range(4)]
    parts = [batches[0].schema.serialize(), *(batch.serialize() for batch in batches)]
    content = b"".join(part.to_pybytes() for part in parts)
    found = list(read_batches(pa.py_buffer(content)))
    assert [one["a"].shape for one in found] == [(n, 2) for n in range(4)]
    table = pa.ipc.open_stream(content).read_all()
    assert table["t"].to_pylist() == [0.0, 1.0, 2.0, 3.0]
    assert table["a.shape"].to_pylist() == [[n, 2] for n in range(4)]


def test_reading_shares_memory() -> None:
    buffer = pa.py_buffer(to_stream(PLAIN))
    array = read_one(buffer)["a"]
    start = array.__array_interface__["data"][0]
    assert buffer.address <= start < buffer.address + buffer.size
    assert not array.flags.writeable


@given(st.data())
def test_a_stream_cut_anywhere_is_malformed(data: st.DataObject) -> None:
    whole = to_stream(PLAIN)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Malformed):
        read_one(pa.py_buffer(whole[:length]))


@given(st.data())
def test_flipped_bits_are_refused_or_change_numbers_only(data: st.DataObject) -> None:
    content = bytearray(to_stream(PLAIN))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read_one(pa.py_buffer(bytes(content)))
    except Malformed:
        return
    assert all(np.asarray(array).size <= 6 for array in found.values())


def stream_of(table: pa.Table, **options: object) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


LISTS = pa.array([[0.0] * 1000], pa.large_list(pa.field("item", pa.float64(), nullable=False)))
TWISTED = pa.table({"a": LISTS, "a.shape": pa.array([[7, 9]], pa.large_list(pa.int64()))})


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        (pa.table({"a": LISTS}), {"compression": "zstd"}, "it is compressed"),
        (pa.table({"a": LISTS}), {"compression": "lz4"}, "it is compressed"),
        (pa.table({"a": ["text"]}), {}, "its field 'a' is of type string"),
        (pa.table({"a": pa.array([[[1]]])}), {}, "its field 'a' is of type list"),
        (pa.table({"a": pa.array([None], pa.float64())}), {}, "its field 'a' has a null"),
        (pa.table({"a": pa.array([[1, None]], pa.large_list(pa.int64()))}), {}, "has a null"),
        (pa.table({"a": [1.0, 2.0]}), {}, "has 2 rows"),
        (TWISTED, {}, "another length than its shape"),
        (pa.table({"a": pa.array(["x"]).dictionary_encode()}), {}, "of type dictionary"),
        (pa.table([[1], [2]], names=["a", "a"]), {}, "one name"),
    ],
)
def test_what_glfm_never_writes_is_refused(
    table: pa.Table, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(Malformed, match=reason):
        read_one(stream_of(table, **options))
