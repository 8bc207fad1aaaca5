"""The types file: what it may say, what each wrong thing is answered with, and its round trip."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli.errors import SchemaError
from glfm_cli.schema import (
    COLUMN_TYPES,
    Column,
    ColumnType,
    MissingCode,
    Role,
    Schema,
    Transform,
    read_schema,
)

FULL = """\
glfm: 1
missing: ["", NA, "?"]
rest: ignore
columns:
  patient: id
  "item_*": {type: ordinal, levels: ["1", "2", "3"]}
  item_9: count
  temperature: real
  income:   {type: positive, transform: log, unit: EUR, label: Annual income}
  white:    {type: positive, transform: log, reflect: 101}
  visits:   {type: count, missing: ["-1", {value: "-9", impute: false}]}
  city:     {type: categorical, levels: [no, 0123, 12:30, ~]}
  age:      {type: count, bounds: [0, 120]}
  warmth:   {type: real, bounds: [null, 3.5e1]}
  hits:     {type: binomial, trials: at_bats}
  weight:   predictor
  relapse:  {type: categorical, role: target}
  notes:    {role: ignore}
"""
NAMES = [
    "patient",
    "item_1",
    "item_2",
    "item_9",
    "temperature",
    "income",
    "white",
    "visits",
    "city",
    "age",
    "warmth",
    "hits",
    "at_bats",
    "weight",
    "relapse",
    "notes",
]
TABLE_CODES = (MissingCode(""), MissingCode("NA"), MissingCode("?"))


@pytest.fixture
def columns() -> dict[str, Column]:
    return {column.name: column for column in Schema.from_yaml(FULL).resolve(NAMES)}


def test_short_form_is_a_type_or_a_role(columns: dict[str, Column]) -> None:
    assert columns["temperature"] == Column(
        "temperature", type=ColumnType.REAL, missing=TABLE_CODES
    )
    assert columns["patient"] == Column("patient", role=Role.ID, missing=TABLE_CODES)
    assert columns["notes"].role is Role.IGNORE


def test_long_form_keeps_every_key(columns: dict[str, Column]) -> None:
    income, white = columns["income"], columns["white"]
    assert (income.transform, income.unit, income.label) == (Transform.LOG, "EUR", "Annual income")
    assert (white.transform, white.reflect) == (Transform.LOG, 101.0)
    assert columns["age"].bounds == (0.0, 120.0)
    assert columns["warmth"].bounds == (None, 35.0)
    assert (columns["hits"].type, columns["hits"].trials) == (ColumnType.BINOMIAL, "at_bats")


def test_exact_name_wins_over_pattern_and_pattern_over_rest(columns: dict[str, Column]) -> None:
    assert columns["item_1"].levels == ("1", "2", "3")
    assert columns["item_9"].type == ColumnType.COUNT
    assert columns["at_bats"].role is Role.IGNORE


def test_resolve_follows_the_order_of_the_table() -> None:
    shuffled = NAMES[::-1]
    assert [column.name for column in Schema.from_yaml(FULL).resolve(shuffled)] == shuffled


def test_first_matching_pattern_wins() -> None:
    schema = Schema.from_dict({"columns": {"a*": "real", "*b": "count"}})
    assert [c.type for c in schema.resolve(["ab", "xb"])] == [ColumnType.REAL, ColumnType.COUNT]


def test_a_name_with_brackets_is_a_name_when_the_table_has_it() -> None:
    schema = Schema.from_dict({"columns": {"x[12]": "real", "x1": "count"}})
    assert [c.type for c in schema.resolve(["x[12]", "x1"])] == [ColumnType.REAL, ColumnType.COUNT]
    with pytest.raises(SchemaError, match="'x2': the types file has no entry"):
        schema.resolve(["x[12]", "x1", "x2"])


def test_patterns_distinguish_capitals() -> None:
    with pytest.raises(SchemaError, match=r"pattern 'a\*' matches no column"):
        Schema.from_dict({"columns": {"a*": "real"}, "rest": "real"}).resolve(["AB"])


def test_scalars_stay_what_was_written(columns: dict[str, Column]) -> None:
    assert columns["city"].levels == ("no", "0123", "12:30", "~")


def test_own_missing_list_replaces_the_table_s(columns: dict[str, Column]) -> None:
    assert columns["visits"].missing == (MissingCode("-1"), MissingCode("-9", impute=False))
    assert columns["age"].missing == TABLE_CODES


def test_an_empty_missing_list_removes_the_table_s() -> None:
    schema = Schema.from_yaml("missing: [NA]\ncolumns: {a: {type: categorical, missing: []}}")
    assert schema.resolve(["a"])[0].missing == ()
    assert Schema.from_yaml(schema.to_yaml()) == schema


def test_predictor_in_short_form_is_modelled_but_not_completed(columns: dict[str, Column]) -> None:
    weight = columns["weight"]
    assert (weight.role, weight.type) == (Role.PREDICTOR, None)
    assert weight.modelled
    assert not weight.completed


def test_target_is_modelled_and_completed(columns: dict[str, Column]) -> None:
    assert columns["relapse"].modelled
    assert columns["relapse"].completed


def test_ordinal_without_levels_is_left_to_the_table() -> None:
    assert Schema.from_dict({"columns": {"a": "ordinal"}}).columns[0].levels is None


def test_rest_alone_covers_a_table() -> None:
    found = Schema.from_dict({"rest": {"type": "count", "bounds": [0, None]}}).resolve(["a", "b"])
    assert [(c.name, c.bounds) for c in found] == [("a", (0.0, None)), ("b", (0.0, None))]


def test_triplets_have_row_column_and_value() -> None:
    schema = Schema.from_yaml("columns: {doc: row, term: column, n: {type: count, role: value}}")
    assert [c.role for c in schema.resolve(["doc", "term", "n"])] == [
        Role.ROW,
        Role.COLUMN,
        Role.VALUE,
    ]


def test_python_values_stand_for_their_text() -> None:
    schema = Schema.from_dict(
        {
            "glfm": 1,
            "missing": [-9, "NA", None],
            "columns": {
                "a": {"type": ColumnType.CATEGORICAL, "levels": (1, 2.0, 0.5, True)},
                "b": {"type": "real", "bounds": (np.float64(0.5), np.int64(7))},
            },
        }
    )
    assert schema.missing == (MissingCode("-9"), MissingCode("NA"), MissingCode("null"))
    assert schema.columns[0].levels == ("1", "2", "0.5", "true")
    assert schema.columns[1].bounds == (0.5, 7.0)


def test_anchors_share_a_list() -> None:
    text = "columns:\n  a: {type: ordinal, levels: &x [lo, hi]}\n  b: {type: ordinal, levels: *x}\n"
    a, b = Schema.from_yaml(text).columns
    assert a.levels == b.levels == ("lo", "hi")


# What is wrong, and what is said of it -------------------------------------------------------

WRONG = {
    "": "the file is empty",
    "# only a comment\n": "the file is empty",
    "hello": "is not a types file, found 'hello', expected a mapping",
    "- a\n- b": "is not a types file, found a list of 2",
    "a: b: c": "is not valid YAML: line 1",
    "columns: [": "is not valid YAML",
    "columns:\n\ta: real": "is not valid YAML: line 2",
    "columns:\n  *_x: real": "line 2",
    "columns: {a: *b}": "nothing is called &b",
    "columns: &c {a: *c}": "nothing is called &c",
    "columns: {? [a] : real}": "line 1: a name must be text",
    "[" * 100: "nested too deeply",
    "columns: {a: real}\n---\ncolumns: {a: real}": "more than one YAML document",
    "columns: {a: real}\ncolumns: {b: real}": "line 2: 'columns' is written twice",
    "columns:\n  a: real\n  b: id\n  a: count": "line 4: 'a' is written twice (first in line 2)",
    "columns: {a: {type: real, type: count}}": "'type' is written twice",
    "glfm: 2\ncolumns: {a: real}": "found glfm: 2, expected glfm: 1",
    "glfm: [1]\ncolumns: {a: real}": "this version of the format is not known",
    "glfm: 1": "`columns` is missing",
    "columns:": "`columns`, found nothing",
    "columns: {}": "`columns`, found a mapping",
    "columns: [a, b]": "`columns`, found a list of 2",
    "colums: {a: real}": "unknown key, found 'colums'",
    "age: real": "unknown key, found 'age'",
    "columns: {a: reel}": "column 'a': found 'reel', expected a type",
    "columns:\n  a:": "column 'a': found nothing, expected a type",
    "columns: {a: [real]}": "column 'a': found a list of 1",
    "rest: rael": "column 'rest': found 'rael'",
    "columns: {a: {typ: real}}": "unknown key, found 'typ', expected type, role",
    "columns: {a: {type: integer}}": "unknown type, found 'integer'",
    "columns: {a: {type: id}}": "unknown type, found 'id'",
    "columns: {a: {type: [real]}}": "unknown type, found a list of 1",
    "columns: {a: {role: helper, type: real}}": "unknown role, found 'helper'",
    "columns: {a: {role: count}}": "unknown role, found 'count'",
    "columns: {a: {role: target}}": "a target column needs a type",
    "columns: {a: feature}": "a feature column needs a type",
    "columns: {a: {label: x}}": "a feature column needs a type",
    "columns: {a: {type: real, transform: ln}}": "unknown transform, found 'ln'",
    "columns: {a: {type: ordinal, transform: log}}": "`transform` does not go with type ordinal",
    "columns: {a: {type: real, transform: logit, bounds: [5, null]}}": "or one between 0 and 1",
    "columns: {a: {type: real, transform: sqrt, bounds: [-4, 4]}}": "limits from 0 up",
    "columns: {a: {type: count, bounds: [-1, 5]}}": "`bounds` do not fit type count",
    "columns: {a: {type: positive, bounds: [null, 0]}}": "`bounds` do not fit type positive",
    "columns: {a: {type: positive, transform: log, reflect: 9, bounds: [1, 10]}}": "`reflect: 9`",
    "columns: {a: {type: real, bounds: [9, 1]}}": "found [9, 1], expected the lower limit first",
    "columns: {a: {type: real, bounds: [1, 1]}}": "expected the lower limit first",
    "columns: {a: {type: real, bounds: [x, 1]}}": "`bounds`, found 'x', expected a number",
    "columns: {a: {type: real, bounds: [0, .inf]}}": "found '.inf', expected a number",
    "columns: {a: {type: real, bounds: [0, 1e400]}}": "found 1e400, expected a number below",
    "columns: {a: {type: real, bounds: [0, 1_000]}}": "found '1_000', expected a number",
    "columns: {a: {type: real, bounds: [1]}}": "`bounds`, found a list of 1",
    "columns: {a: {type: real, bounds: 5}}": "`bounds`, found '5'",
    "columns: {a: {type: real, bounds: [null, null]}}": "`bounds` has no limit",
    "columns: {a: {type: categorical, bounds: [0, 1]}}": "`bounds` does not go with",
    "columns: {a: {type: positive, transform: log, reflect: big}}": "`reflect`, found 'big'",
    "columns: {a: {type: positive, reflect: 5}}": "`reflect` needs a transform",
    "columns: {a: {type: categorical, levels: [x, y, x]}}": "the level 'x' is listed twice",
    "columns: {a: {type: categorical, levels: []}}": "`levels`, found a list of 0",
    "columns: {a: {type: categorical, levels: x}}": "`levels`, found 'x'",
    "columns: {a: {type: ordinal, levels: [lo, [hi]]}}": "expected text for every level",
    "columns: {a: {type: ordinal, levels: [lo, '']}}": "`levels`, found nothing",
    "columns: {a: {type: count, levels: [1, 2]}}": "`levels` does not go with type count",
    "missing: [NA]\ncolumns: {a: {type: categorical, levels: [NA, EU]}}": "both a level and a",
    "missing: NA\ncolumns: {a: real}": "`missing`, found 'NA', expected a list",
    "missing: [NA, NA]\ncolumns: {a: real}": "the missing code 'NA' is listed twice",
    "columns: {a: {type: real, missing: [{valu: x}]}}": "`missing`, found a mapping",
    "columns: {a: {type: real, missing: [{value: x, imput: no}]}}": "unknown key in `missing`",
    "columns: {a: {type: real, missing: [{value: x, impute: maybe}]}}": "found 'maybe'",
    "columns: {a: {type: real, missing: [{value: [x]}]}}": "expected text for `value`",
    "columns: {a: {type: real, unit: [m]}}": "`unit`, found a list of 1, expected text",
    "columns: {a: {type: real, label: ''}}": "`label`, found nothing, expected text",
    "columns: {a: {type: binomial}}": "a binomial column needs `trials`",
    "columns: {a: {type: binomial, trials: a}}": "`trials` names the column itself",
    "columns: {a: {type: count, trials: n}}": "`trials` does not go with type count",
    "columns: {a: {role: id, levels: [x]}}": "`levels` does not go with a column without a type",
    "columns: {a: id, b: ignore}": "no column of the types file is modelled: all are id or ignore",
    "columns: {a: {type: real, role: target}, b: {type: real, role: target}}": "found 'a' and 'b'",
    "columns: {r: row, v: {type: count, role: value}}": "none has role column",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_wrong_types_file_is_one_error_that_says_what(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml(text, file="types.yaml")
    message = caught.value.message()
    assert WRONG[text] in message
    assert message.startswith("types.yaml")
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("columns: {a: reel}", "Did you mean 'real'?"),
        ("columns: {a: Count}", "Did you mean 'count'?"),
        ("columns: {a: numeric}", "Did you mean 'real'?"),
        ("columns: {a: {type: nominal}}", "Did you mean 'categorical'?"),
        ("columns: {a: {type: Factor}}", "Did you mean 'categorical'?"),
        ("columns: {a: {type: scale}}", "Did you mean 'real'?"),
        ("columns: {a: {type: integer}}", "Did you mean 'count'?"),
        ("columns: {a: string}", "Did you mean 'categorical'?"),
        ("columns: {a: {type: id}}", "'id' is a role: write `role: id`."),
        ("columns: {a: {role: real}}", "'real' is a type: write `type: real`."),
        ("columns: {a: {type: real, bound: [0, 1]}}", "Did you mean 'bounds'?"),
        ("columns: {a: {type: real, bounds: [9, 1]}}", "Write `bounds: [1, 9]`."),
        ("missing_: [x]\ncolumns: {a: real}", "Did you mean 'missing'?"),
    ],
)
def test_hint_offers_what_was_probably_meant(text: str, hint: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("content", "names", "message"),
    [
        ({"columns": {"a": "real"}}, ["a", "b"], "'b': the types file has no entry"),
        ({"columns": {"a": "real", "incme": "real"}}, ["a", "income"], "no such column"),
        ({"columns": {"a": "real", "x_*": "real"}}, ["a"], "'x_*' matches no column"),
        ({"columns": {"a": "real"}}, ["a", "a"], "two columns of the table have this name"),
        ({"columns": {"a": "id"}, "rest": "ignore"}, ["a"], "no column"),
        ({"columns": {"a": "id"}, "rest": "real"}, ["a"], "no column of the table is modelled"),
        ({"columns": {"*": {"type": "real", "role": "target"}}}, ["a", "b"], "two columns have"),
        ({"columns": {"a": {"type": "binomial", "trials": "n"}}}, ["a"], "`trials` names 'n'"),
    ],
)
def test_types_file_that_does_not_fit_the_table(
    content: dict[str, object], names: list[str], message: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(content).resolve(names)
    assert message in caught.value.message()


def test_a_misspelt_name_gets_the_close_one_as_hint() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict({"columns": {"incme": "real"}}).resolve(["id", "income"])
    assert caught.value.hint == "Did you mean 'income'?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"columns": {1: "real", "1": "count"}}, "two names are the same"),
        ({"columns": {"a": object()}}, "found a object"),
    ],
)
def test_python_values_that_no_file_could_hold(content: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(content)


# Files ---------------------------------------------------------------------------------------


def test_read_schema_names_the_file_in_later_errors(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text(FULL, encoding="utf-8-sig")
    schema = read_schema(path)
    assert schema == Schema.from_yaml(FULL)
    with pytest.raises(SchemaError, match=r"types\.yaml"):
        schema.resolve(["other"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"columns: {a: real}\nx: caf\xe9", "line 2 is not UTF-8 text, found byte 0xe9"),
        (b"PAR1\x00\x01\x02", "is not a types file"),
        ("columns: {a: real}".encode("utf-16"), "is not a types file"),
        (b"columns: {a: \x07}", "is not valid YAML"),
        (b"id,age\n1,2\n", "is not a types file"),
    ],
)
def test_read_schema_rejects_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "types.yaml"
    path.write_bytes(content)
    with pytest.raises(SchemaError) as caught:
        read_schema(path)
    assert message in caught.value.message()


def test_read_schema_says_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read: No such file"):
        read_schema(tmp_path / "none.yaml")
    with pytest.raises(SchemaError, match="cannot be read: Is a directory"):
        read_schema(tmp_path)


# Round trip ----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
NUMBERS = st.floats(-1e300, 1e300, allow_nan=False)
CODES = st.lists(
    st.builds(MissingCode, TEXTS | st.just(""), st.booleans()),
    max_size=3,
    unique_by=lambda c: c.text,
)


@st.composite
def descriptions(draw: st.DrawFn) -> dict[str, object]:
    """Draw what a types file may say of one modelled column."""
    kind = draw(st.sampled_from([k for k in COLUMN_TYPES.values() if k.values != "successes"]))
    said: dict[str, object] = {"type": str(kind)}
    if draw(st.booleans()):
        said["role"] = draw(st.sampled_from(["feature", "predictor"]))
    if kind.values == "levels" and draw(st.booleans()):
        said["levels"] = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
        said["missing"] = []
    elif draw(st.booleans()):
        said["missing"] = [{"value": c.text, "impute": c.impute} for c in draw(CODES)]
    if kind is ColumnType.REAL and draw(st.booleans()):
        lower, upper = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
        said["bounds"] = draw(st.sampled_from([[lower, upper], [lower, None], [None, upper]]))
    if kind.values == "numbers" and "bounds" not in said and draw(st.booleans()):
        said["transform"] = draw(st.sampled_from(["log", "log1p", "sqrt", "logit"]))
        said["reflect"] = draw(NUMBERS)
    for key in ("unit", "label"):
        if draw(st.booleans()):
            said[key] = draw(TEXTS)
    return said


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(TEXTS | st.just(""), min_size=1, max_size=4, unique=True))
    content: dict[str, object] = {
        "missing": [code.text for code in draw(CODES)],
        "columns": {name: draw(descriptions()) for name in names},
    }
    if draw(st.booleans()):
        content["rest"] = draw(st.sampled_from(["ignore", "id"]) | descriptions())
    return Schema.from_dict(content)


@given(schemas())
def test_what_was_written_reads_back_the_same(schema: Schema) -> None:
    again = Schema.from_yaml(schema.to_yaml())
    names = [column.name for column in schema.columns]
    assert again == schema
    assert again.resolve(names) == schema.resolve(names)


def test_a_very_long_name_reads_back() -> None:
    schema = Schema.from_dict({"columns": {"long " * 400 + "name": "real"}})
    assert Schema.from_yaml(schema.to_yaml()) == schema


@given(st.text(max_size=60))
def test_no_text_gives_anything_but_a_schema_or_an_error(text: str) -> None:
    for content in (text, f"columns: {{a: {text}}}", f"columns:\n  {text}: real"):
        with suppress(SchemaError):
            assert Schema.from_yaml(content).columns


# The documentation ---------------------------------------------------------------------------


def test_every_example_in_the_documentation_loads(repository: Path) -> None:
    guides = repository / "docs" / "guides"
    names = ("types.md", "cells.md", "relations.md")
    text = "".join((guides / name).read_text(encoding="utf-8") for name in names)
    examples = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) >= 5
    assert all(Schema.from_yaml(example).columns for example in examples)


@pytest.mark.parametrize("words", [COLUMN_TYPES, Role, Transform])
def test_every_word_of_the_format_is_documented(repository: Path, words: Iterable[str]) -> None:
    text = (repository / "docs" / "guides" / "types.md").read_text(encoding="utf-8")
    assert [word for word in words if f"`{word}`" not in text] == []


@pytest.mark.parametrize(
    ("kind", "traits"),
    [
        ("real", {"numeric"}),
        ("positive", {"numeric", "positive"}),
        ("count", {"numeric", "integral"}),
        ("categorical", {"levelled", "nominal"}),
        ("ordinal", {"levelled", "ordinal"}),
        ("binomial", {"binomial"}),
        (None, set()),
    ],
)
def test_a_column_says_what_values_its_type_has(kind: str | None, traits: set[str]) -> None:
    column = Column("c", type=None if kind is None else COLUMN_TYPES[kind])
    every = ("numeric", "positive", "integral", "levelled", "nominal", "ordinal", "binomial")
    assert {name for name in every if getattr(column, name)} == traits


def test_columns_are_found_by_few_looks_at_all_names() -> None:
    looks = 0

    class Names(list[str]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    names = Names(f"c{i}" for i in range(60))
    schema = Schema.from_dict({"columns": dict.fromkeys(list(names), "real")})
    assert len(schema.resolve(names)) == 60
    assert looks < 10
