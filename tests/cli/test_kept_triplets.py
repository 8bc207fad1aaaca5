"""Fits of triplets that are kept: gone on with, and applied to new rows and columns."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from glfm_cli import load_fit

TYPES = "columns:\n  user: row\n  item: column\n  rating: {type: ordinal, role: value}\n"
CELLS = [(i, j, 1 + (i + 2 * j) % 3) for i in range(8) for j in range(6) if (i + j) % 3]
HEAD = "user,item,rating\n"
RATINGS = HEAD + "".join(f"u{i},{j},{r}\n" for i, j, r in CELLS)
USERS = "user,age\n" + "".join(f"u{i},{20 + i * i}\n" for i in range(8))
PLAN = ("--chains", "2", "--warmup", "6", "--threads", "1")
FEATURES = ("--row-features", "users.csv", "--row-types", "users.yaml")


@pytest.fixture(scope="module")
def kept(here: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ratings, users, a fit of both, and what that predicts in out.csv."""
    folder = tmp_path_factory.mktemp("kept")
    for name, text in (("table.csv", RATINGS), ("types.yaml", TYPES), ("users.csv", USERS)):
        (folder / name).write_text(text)
    (folder / "users.yaml").write_text("columns: {user: id, age: real}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said = here("impute", "table.csv", "--types", "types.yaml", *FEATURES, *PLAN,
                    "--draws", "5", "--save", "fit.glfm", "-o", "out.csv")  # fmt: skip
    assert said.status == 0, said.stderr
    return folder


@pytest.fixture
def fitted(kept: Path, desk: Any) -> Any:
    """A desk with a copy of it."""
    shutil.copytree(kept, desk.folder, dirs_exist_ok=True)
    return desk


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_run_that_goes_on_gives_what_one_run_gives(fitted: Any, here: Any) -> None:
    long = (*PLAN, "--draws", "9")
    said = here("impute", "table.csv", "--types", "types.yaml", *FEATURES, *long, "-o", "one.csv")
    assert said.status == 0, said.stderr
    more = ("--row-features", "users.csv", "--draws", "9", "--threads", "1")
    said = here("impute", "table.csv", "--resume", "fit.glfm", *more, "-o", "two.csv")
    assert said.status == 0, said.stderr
    one, two = (Path(name).read_bytes() for name in ("one.csv", "two.csv"))
    assert one == two
    assert not list(Path().glob("*.partial"))


def test_the_own_table_is_predicted_from_the_draws_as_they_are(fitted: Any, here: Any) -> None:
    said = here("impute", "table.csv", "--fit", "fit.glfm")
    assert said.status == 0, said.stderr
    assert said.output == Path("out.csv").read_bytes()
    fit = load_fit("fit.glfm")
    assert fit.matrix is not None
    assert (len(fit.matrix.rows), len(fit.matrix.columns)) == (8, 6)
    assert fit.posterior.n_draws == 10


def test_new_rows_and_columns_are_predicted(fitted: Any, here: Any) -> None:
    fitted.put("new.csv", HEAD + "n1,0,3\nn1,9,1\nu2,9,2\n")
    fitted.put("more.csv", "user,age\nn1,30\nn2,50\nn3,70\n")
    given = ("--fit", "fit.glfm", "--row-features", "more.csv")
    first, again = (here("impute", "new.csv", *given, "--threads", n) for n in ("1", "2"))
    assert first.status == 0, first.stderr
    assert first.output == again.output
    rows = rows_of(first.stdout)
    found = {(row["user"], row["item"]) for row in rows}
    users, items = [f"u{i}" for i in range(8)], [str(j) for j in range(6)]
    expected = {(u, "9") for u in users if u != "u2"}
    expected |= {(n, i) for n in ("n1", "n2", "n3") for i in (*items, "9")}
    expected -= {("n1", "0"), ("n1", "9")}
    assert found == expected
    for row in rows:
        assert abs(sum(float(row[f"p_{r}"]) for r in (1, 2, 3)) - 1.0) < 1e-9


@pytest.mark.parametrize("more", ["", "n1,0,3\n"])
def test_a_fit_answers_the_pairs_that_its_table_lists_without_a_value(
    fitted: Any, here: Any, more: str
) -> None:
    fitted.put("new.csv", HEAD + f"u3,5,\n{more}n2,1,\nu0,2,\nu0,1,2\nu3,0,\n")
    fitted.put("more.csv", "user,age\nn1,30\nn2,50\n")
    said = here("impute", "new.csv", "--fit", "fit.glfm", "--row-features", "more.csv")
    assert said.status == 0, said.stderr
    rows = [(row["user"], row["item"]) for row in rows_of(said.stdout)]
    assert rows == [("u3", "5"), ("n2", "1"), ("u0", "2"), ("u3", "0")]


def test_listed_pairs_are_predicted_with_a_fit(fitted: Any, here: Any) -> None:
    fitted.put("pairs.csv", "item,user\n5,u3\n0,u1\n")
    said = here("impute", "table.csv", "--fit", "fit.glfm", "--pairs", "pairs.csv", "--json",
                "-o", "few.csv")  # fmt: skip
    assert said.status == 0, said.stderr
    assert [row["user"] for row in rows_of(Path("few.csv").read_text())] == ["u3", "u1"]
    assert json.loads(said.stdout)["draws"] == 10


def test_binomial_fits_are_kept_without_their_cells(desk: Any, here: Any) -> None:
    desk.put("t.yaml", "columns: {a: row, b: column, n: ignore, "
             "h: {type: binomial, role: value, trials: n}}\n")  # fmt: skip
    cells = "".join(
        f"{i},x{j},{i + 4},{(i + j) % 4}\n" for i in range(6) for j in range(4) if i - j
    )
    desk.put("t.csv", "a,b,n,h\n" + cells)
    said = here("impute", "t.csv", "--types", "t.yaml", *PLAN, "--draws", "4", "--save", "b.glfm",
                "--no-data", "-o", "o.csv")  # fmt: skip
    assert said.status == 0, said.stderr
    fit = load_fit("b.glfm")
    assert fit.matrix is not None
    assert fit.matrix.cells is None
    desk.put("new.csv", "a,b,n,h\n77,x0,1000,900\n77,x1,1000,880\n")
    said = here("impute", "new.csv", "--fit", "b.glfm")
    assert said.status == 0, said.stderr
    rows = rows_of(said.stdout)
    assert [(row["a"], row["b"]) for row in rows] == [("77", "x2"), ("77", "x3")]
    assert float(rows[0]["estimate"]) > 0.5


@pytest.mark.parametrize(
    ("table", "options", "error"),
    [
        ("u1,1,9\n", ("--fit", "fit.glfm"), "column 'rating', row 1: found '9', expected a level"),
        ("new,1,2\n", ("--fit", "fit.glfm"), "--row-features FILE is missing: user 'new' is new"),
        ("u1,1,2\n", ("--fit", "fit.glfm", "--types", "types.yaml"), "--types and --fit cannot"),
        ("u1,1,2\n", ("--fit", "fit.glfm", "--flags"), "--flags is for tables, but the fit is"),
        ("u1,1,2\n", ("--resume", "fit.glfm"), "--row-features FILE is missing"),
        (
            "u1,1,2\n",
            ("--resume", "fit.glfm", "--row-features", "users.csv"),
            "was made with other cells or features than those given now",
        ),
        (
            "new,1,2\n",
            ("--fit", "fit.glfm", "--row-features", "users.csv"),
            "the features have no row for user 'new', which is new",
        ),
        (
            "u1,1,2\n",
            ("--fit", "fit.glfm", "--column-features", "users.csv"),
            "--column-features, expected none: fit.glfm was made without features of columns",
        ),
    ],
)
def test_what_does_not_fit_the_fit_is_refused(
    fitted: Any, here: Any, table: str, options: tuple[str, ...], error: str
) -> None:
    fitted.put("new.csv", HEAD + table)
    said = here("impute", "new.csv", *options)
    assert said.status == 2, said.stdout
    (line,) = said.lines("Error")
    assert error in line


def test_new_ids_and_levels_are_refused_with_a_mend_that_works(desk: Any, here: Any) -> None:
    desk.put("t.csv", RATINGS)
    desk.put("t.yaml", TYPES)
    kinds = "user,kind\n" + "".join(f"u{i},{'fm'[i % 2]}\n" for i in range(8))
    desk.put("kinds.csv", kinds)
    desk.put("kinds.yaml", "columns: {user: id, kind: categorical}\n")
    features = ("--row-features", "kinds.csv", "--row-types", "kinds.yaml")
    for name, more in (("plain.glfm", ()), ("kinds.glfm", features)):
        said = here("impute", "t.csv", "--types", "t.yaml", *PLAN, "--draws", "4", *more,
                    "--save", name, "-o", "o.csv")  # fmt: skip
        assert said.status == 0, said.stderr
    desk.put("pairs.csv", "user,item\nnew,1\n")
    asked = ("--fit", "plain.glfm", "--pairs", "pairs.csv")
    refused = here("impute", "t.csv", *asked)
    assert "List a new id in that table, too, with its values or without.\n" in refused.stderr
    desk.put("more.csv", RATINGS + "new,1,\n")
    assert here("impute", "more.csv", *asked).status == 0
    asked = ("--fit", "kinds.glfm", "--pairs", "pairs.csv")
    assert "or without, or in --row-features." in here("impute", "t.csv", *asked).stderr
    desk.put("new.csv", "user,kind\nnew,x\n")
    asked += ("--row-features", "new.csv", "--unseen", "missing")
    refused = here("impute", "t.csv", *asked)
    assert "row 1: found 'x', expected a level that the fit has seen: f, m" in refused.stderr
    assert "Fit again with this level, or leave the row out." in refused.stderr
    desk.put("new.csv", "user,kind\nnew,f\n")
    assert here("impute", "t.csv", *asked).status == 0


@pytest.mark.parametrize("name", ["matrix.arrow", "data.arrow", "links.arrow"])
def test_a_broken_file_is_named(fitted: Any, here: Any, name: str) -> None:
    path = Path("fit.glfm") / name
    content = bytearray(path.read_bytes())
    for k in range(len(content) // 4, len(content), 5):  # some bytes between arrays do not count
        content[k] ^= 0xFF
    path.write_bytes(content)
    said = here("impute", "table.csv", "--fit", "fit.glfm")
    assert said.status == 2, said.stdout
    (line,) = said.lines("Error")
    assert name in line


def test_a_kept_fit_can_be_explored_asked_and_diagnosed(fitted: Any, here: Any) -> None:
    assert here("explore", "fit.glfm").status == 0
    chosen = here("suggest", "fit.glfm", "--count", "3")
    assert chosen.status == 0, chosen.stderr
    assert len(rows_of(chosen.stdout)) == 3
    said = here("diagnose", "fit.glfm")
    assert said.status == 0, said.stderr
    assert "was saved without its table" not in said.stdout + said.stderr


def test_fits_with_slopes_and_noise_of_rows_go_on_and_take_new_ids(
    kept: Path, desk: Any, here: Any
) -> None:
    shutil.copytree(kept, desk.folder, dirs_exist_ok=True)
    desk.put("types.yaml", TYPES.replace("ordinal", "real"))
    more = ("--set", "slopes=true", "--set", "row_noise=true")
    start = ("--types", "types.yaml", *PLAN, *more)
    said = here("impute", "table.csv", *start, "--draws", "5", "--save", "s.glfm", "-o", "s.csv")
    assert said.status == 0, said.stderr
    said = here("impute", "table.csv", *start, "--draws", "9", "-o", "one.csv")
    assert said.status == 0, said.stderr
    more = ("--resume", "s.glfm", "--draws", "9", "--threads", "1", "-o", "two.csv")
    said = here("impute", "table.csv", *more)
    assert said.status == 0, said.stderr
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    desk.put("new.csv", HEAD + "n1,0,3\nn1,9,1\nu2,9,2\n")
    said = here("impute", "new.csv", "--fit", "s.glfm")
    assert said.status == 0, said.stderr
    assert {row["user"] for row in rows_of(said.stdout)} >= {"n1", "u0"}
    said = here("explore", "s.glfm")
    assert said.status == 0, said.stderr
    assert "slopes of rows" in said.stdout
    said = here("diagnose", "s.glfm")
    assert said.status == 0, said.stderr
    assert "how much the rows' noise precisions vary" in said.stdout
