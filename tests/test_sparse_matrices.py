"""Matrix Market and SVMlight files, beside SciPy and scikit-learn, which write them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from glfm_cli.errors import TableError
from glfm_cli.io import read_table


def test_a_matrix_that_scipy_wrote_comes_back_as_its_cells(tmp_path: Path, seed: int) -> None:
    y = np.random.default_rng(seed).poisson(0.4, (9, 7))
    mmwrite(tmp_path / "y.mtx", sparse.coo_array(y), field="integer")
    found = read_table(tmp_path / "y.mtx")
    assert found.column_names == ["row", "column", "value"]
    back = np.zeros(y.shape, dtype=np.int64)
    row, column = found["row"].to_numpy() - 1, found["column"].to_numpy() - 1
    back[row, column] = found["value"].to_numpy()
    np.testing.assert_array_equal(back, y)


def test_rows_of_svmlight_files_are_numbered_and_labels_left_out(tmp_path: Path) -> None:
    (tmp_path / "y.svmlight").write_text("1 3:2 7:1 # one\n\n-1 qid:4 1:5\n")
    found = read_table(tmp_path / "y.svmlight").to_pydict()
    assert found == {"row": [1, 1, 2], "column": [3, 7, 1], "value": [2, 1, 5]}


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.mtx", "1 2 3\n", "is not a sparse Matrix Market file"),
        ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n", "1 cells"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n3 1 1\n", "row 3"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 0\n", "lists no cell"),
        ("a.svmlight", "1 3\n", "line 1 is not a row"),
    ],
)
def test_what_is_no_such_file_is_said_in_one_line(
    tmp_path: Path, name: str, text: str, error: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TableError, match=error):
        read_table(tmp_path / name)


def test_columns_and_rows_have_the_names_of_files_behind_a_question_mark(tmp_path: Path) -> None:
    banner = "%%MatrixMarket matrix coordinate integer general\n"
    (tmp_path / "y.mtx").write_text(f"{banner}2 4 3\n1 4 5\n2 1 7\n2 2 1\n")
    (tmp_path / "genes.tsv").write_text("g1\tone\ng2\ttwo\ng3\tthree\ng4\tfour\n")
    with gzip.open(tmp_path / "rows.txt.gz", "wt") as file:
        file.write("a text\nanother\n")
    where = f"{tmp_path}/y.mtx?columns={tmp_path}/genes.tsv&rows={tmp_path}/rows.txt.gz"
    assert read_table(where).to_pydict() == {
        "row": ["a text", "another", "another"],
        "column": ["g4", "g1", "g2"],
        "value": [5, 7, 1],
    }
    (tmp_path / "zero.svmlight").write_text("1 0:2 3:1\n1 2:5\n")  # counts columns from 0
    found = read_table(f"{tmp_path}/zero.svmlight?columns={tmp_path}/genes.tsv")
    assert found["column"].to_pylist() == ["g1", "g4", "g3"]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("a\nb\na\nd\n", "row 3: found 'a'"),
        ("a\n\nc\nd\n", "row 2: found ''"),
        ("a\nb\nc\n", "has 3 names, expected at least 4, for every column"),
        (None, "there is no such file"),
    ],
)
def test_names_that_do_not_fit_are_said_in_one_line(
    tmp_path: Path, names: str | None, error: str
) -> None:
    (tmp_path / "y.svmlight").write_text("1 1:2 4:1\n")
    if names is not None:
        (tmp_path / "words.txt").write_text(names)
    with pytest.raises(TableError, match=error):
        read_table(f"{tmp_path}/y.svmlight?columns={tmp_path}/words.txt")
