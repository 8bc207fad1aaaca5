"""What `glfm types` sees in questionnaires: questions that were not asked, codes of all kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.guess import guess_schema
from glfm_cli.io import read_table
from glfm_cli.io.declared import declare
from glfm_cli.schema import ColumnType, MissingCode, Role
from tests.cli.conftest import run_here

N = 240
_RNG = np.random.default_rng(8)
WORKS = _RNG.choice(["yes", "no", "never"], N, p=[0.5, 0.3, 0.2])
KIDS = _RNG.poisson(1.0, N)
DAYS = (np.datetime64("2024-03-01") + _RNG.integers(0, 60, N).astype("timedelta64[D]")).astype(str)


RARELY, OFTEN = (np.random.default_rng(2).random(N) < share for share in (0.05, 0.2))


def skips(columns: dict[str, list[str | None]]) -> dict[str, str]:
    return dict(guess_schema(pa.table(columns)).skips)


def asked(rows: np.ndarray, not_asked: str | None) -> list[str | None]:
    """Return numbers of those who were asked, a tenth of them refused."""
    rng = np.random.default_rng(1)
    hours = rng.poisson(37, N)
    refused = rng.random(N) < 0.1
    answers = ["-9" if r else str(h) for r, h in zip(refused, hours, strict=True)]
    return [a if yes else not_asked for a, yes in zip(answers, rows, strict=True)]


@pytest.mark.parametrize("not_asked", [None, "-1"])
def test_who_was_not_asked_is_told_by_another_column(not_asked: str | None) -> None:
    columns = {
        "works": [None if r else str(w) for r, w in zip(RARELY, WORKS, strict=True)],
        "hours": asked(WORKS == "yes", not_asked),
        "pension": asked(WORKS != "never", not_asked),
        "kids": [str(k) for k in KIDS],
        "youngest": asked(KIDS > 0, not_asked),
        "age": asked(~RARELY, None),
    }
    found = skips(columns)
    assert sorted(found) == ["hours", "pension", "youngest"]
    assert found["hours"].endswith('only_if: works == "yes"')
    assert found["pension"].endswith('only_if: works != "never"')
    assert found["youngest"].endswith('only_if: "kids > 0"')
    n = sum(one == "never" for one in columns["works"])
    assert found["pension"].startswith(f"no value in all {n} rows where works is never; ")


def test_what_is_known_in_one_row_of_each_patient_is_told() -> None:
    rng = np.random.default_rng(4)
    visit = np.tile([1, 2, 3], N // 3)

    def until(last: int, values: np.ndarray) -> list[str | None]:
        return [str(x) if v <= last else None for x, v in zip(values, visit, strict=True)]

    columns = {
        "record_id": [f"P{i // 3}" for i in range(N)],
        "visit": [f"month_{v}" for v in visit],
        "height": until(1, rng.integers(150, 190, N)),
        "sex": until(1, rng.choice(["f", "m"], N)),
        "twice": until(2, rng.choice(["f", "m"], N)),
        "score": [str(s) for s in rng.integers(0, 70, N)],
    }
    found = skips(columns)
    once = "known in one row of each record_id; what holds for its others write into them"
    for name in ("height", "sex"):
        assert found[name].startswith(f"{once}; no value in all 160 rows where visit is month_2 or")
    assert found["twice"].startswith("no value in all 80 rows where visit is month_3")
    del columns["visit"]
    assert skips(columns) == {"height": once, "sex": once}


def test_what_is_the_same_in_all_rows_of_an_id_is_told_where_some_are_missing(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(4)
    of = np.repeat(np.arange(60), 4)
    age = [str(x) for x in rng.integers(18, 80, 60)[of]]
    lines = ["subject,age,rt,height"]
    for i, one in enumerate(age):
        shown = "" if i % 9 == 4 else one
        lines.append(f"S{of[i]},{shown},{rng.normal(500, 50):.0f},{150 + of[i] % 37}")
    (tmp_path / "trials.csv").write_text("\n".join(lines) + "\n")
    told = (
        "the same in all rows of each subject where it is known, but not in completed cells, "
        "unless subject has `role: group`"
    )
    assert guess_schema(read_table(tmp_path / "trials.csv")).skips == {"age": told}
    short = ("--chains", "1", "--warmup", "2", "--draws", "2", "--threads", "1", "-q")
    done = run_here("impute", tmp_path / "trials.csv", "--types", "auto", *short)
    assert done.lines("Warning") == [f"Warning: column 'age': {told}"]


@pytest.mark.parametrize("towns", [["Rome", "Oslo", "Köln", "Paris"], ["Rome", "Oslo"] * 3])
def test_merged_cells_are_told(towns: list[str]) -> None:
    starts = np.arange(N) % (N // len(towns)) == 0
    cells = [towns[i // (N // len(towns))] if one else None for i, one in enumerate(starts)]
    columns = {"town": cells, "x": [str(h) for h in KIDS], "y": [str(w) for w in WORKS]}
    said = guess_schema(pa.table(columns))
    assert said.skips["town"].startswith("each value stands above empty cells; if these are merged")
    if len(towns) == 4:
        assert said.reasons["town"] == "ignored: text that is different in each of its 4 cells"
    later = [None, *cells[:-1]]
    beside = [*cells[:1], "Rome", *cells[2:]]
    numbers = [None if cell is None else str(len(cell)) for cell in cells]
    for other in (later, beside, numbers, [*cells[:-1], "Rome"], cells[:1] + [None] * (N - 1)):
        assert "town" not in skips({**columns, "town": other})


LIKERT = ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"]


def test_words_typed_wrong_are_steps_of_the_scale() -> None:
    rng = np.random.default_rng(3)
    cells = rng.choice(LIKERT, N).tolist()
    cells[3:6] = ["Strongly agre", "strongly agree", "Neither agre nor disagre"]
    cells[6:9] = ["disageree", "AGREE", "strongly agre"]
    guess = guess_schema(pa.table({"q": cells}))
    (column,) = guess.schema.columns
    assert (str(column.type), column.levels) == ("ordinal", tuple(LIKERT))
    assert dict(column.aliases) == {
        "Strongly agre": "Strongly agree",
        "strongly agree": "Strongly agree",
        "Neither agre nor disagre": "Neither agree nor disagree",
        "disageree": "Disagree",
        "AGREE": "Agree",
        "strongly agre": "Strongly agree",
    }
    assert "written in several ways" in guess.reasons["q"]


@pytest.mark.parametrize(
    ("words", "n"),
    [
        (["Strongly agre", "Blue"], 1),  # a word of another kind
        (["Strongly dagree"], 1),  # as near to two steps
        (["Strongly agre"], 12),  # as often as others
        (["Strongly agre", "Disagreee", "Strongly disagre"], 5),  # too many
    ],
)
def test_words_that_may_be_levels_of_their_own_stay_so(words: list[str], n: int) -> None:
    cells = np.random.default_rng(3).choice(LIKERT, N).tolist()
    for i, word in enumerate(words * n):
        cells[i] = word
    (column,) = guess_schema(pa.table({"q": cells})).schema.columns
    assert str(column.type) == "categorical"
    assert set(words) <= set(column.levels or ())


def test_a_rare_step_is_no_typing_error() -> None:
    cells = ["Strongly disagree"] * 100 + ["Disagree"] * 60 + ["Agree"] * 40 + ["Strongly agree"]
    (column,) = guess_schema(pa.table({"q": cells})).schema.columns
    assert column.levels == ("Strongly disagree", "Disagree", "Agree", "Strongly agree")


@pytest.mark.parametrize("mark", [";", ", ", " | "])
@pytest.mark.parametrize("n", [4, 9])
def test_cells_that_list_several_answers_are_told(mark: str, n: int) -> None:
    ticked = np.random.default_rng(6).random((N, n)) < 0.4
    cells = [mark.join(f"place {j}" for j in range(n) if row[j]) or None for row in ticked]
    (said,) = guess_schema(pa.table({"x": cells, "y": [str(k) for k in KIDS]})).hints["x"]
    assert said.startswith("cells list several answers (place")
    assert said.endswith(f"a column of yes and no for each of the {n} would say more")
    others = ["Oslo, Norway", "Rome, Italy", "Bari, Italy", "Bergen, Norway", "Rome"]
    events = [f"{event}, {grade}" for event in ("rash", "pain", "flu") for grade in "abc"]
    for words in (others, events, ["a", "b;c", "d;e;f"], ["yes, a lot", "yes", "no"]):
        column = [words[k % len(words)] for k in range(N)]
        hints = guess_schema(pa.table({"x": column})).hints.get("x", [])
        assert not [one for one in hints if "several answers" in one]


def test_codes_that_were_left_are_missing_where_the_question_was_asked() -> None:
    columns = {"works": [str(one) for one in WORKS], "kids": [str(k) for k in KIDS]}
    columns["hours"] = asked(WORKS == "yes", "not applicable")
    assert skips(columns)["hours"].endswith(
        'only_if: works == "yes", missing: ["not applicable", "-9"]'
    )


def test_cells_missing_by_chance_or_in_part_of_a_level_are_no_question() -> None:
    few = [str(one) for one in WORKS]
    seldom = RARELY & (WORKS != "never")  # which may be chance
    rare = [str(k) if r else None for r, k in zip(seldom, KIDS, strict=True)]
    once = asked(WORKS == "yes", None)
    once[int(np.argmax(WORKS == "no"))] = "12"
    never = int((WORKS == "never").sum())
    assert skips({"works": few, "rare": rare}) == {}
    assert f"all {never} rows" in skips({"works": few, "once": once})["once"]


def test_of_many_levels_of_few_rows_some_have_no_value_by_chance() -> None:
    rng = np.random.default_rng(5)
    wells = [f"{row}{c:02d}" for row in "ABCDEFGH" for c in range(1, 13)] * 4
    kinds = ["standard" if int(well[1:]) < 3 else "sample" for well in wells]
    columns: dict[str, list[str | None]] = {"well": [*wells], "kind": [*kinds]}
    columns["flag"] = ["edge" if u < 0.1 else "clot" if u < 0.2 else None for u in rng.random(384)]
    columns["nominal"] = [str(i % 8) if k == "standard" else None for i, k in enumerate(kinds)]
    found = skips(columns)
    assert sorted(found) == ["nominal"]
    assert found["nominal"].endswith('only_if: kind == "standard"')  # rather than 16 wells


@pytest.mark.parametrize("code", ["-7", "-9", "97", "99", "-99", "999"])
@pytest.mark.parametrize("kind", ["words", "dates", "german dates"])
def test_a_code_among_words_or_dates_is_no_level(code: str, kind: str) -> None:
    cells = DAYS if kind == "dates" else [str(one) for one in WORKS]
    if kind == "german dates":
        cells = [".".join(day.split("-")[::-1]) for day in DAYS]
    cells = [code if o else cell for o, cell in zip(OFTEN, cells, strict=True)]
    column = guess_schema(pa.table({"q": cells, "x": [str(k) for k in KIDS]})).schema.columns[0]
    assert column.missing == (MissingCode(code),)
    assert column.moment == ("date" if "dates" in kind else None)
    assert "dates" in kind or set(column.levels or ()) == {"yes", "no", "never"}


@pytest.mark.parametrize(
    "text", ["unknown", "0000-00-00", "9999-99-99", "9999-12-31", "refused", "99.99.9999"]
)
def test_what_is_no_day_among_dates_is_missing(text: str) -> None:
    cells = [text if o else day for o, day in zip(OFTEN, DAYS, strict=True)]
    column = guess_schema(pa.table({"seen": cells, "x": [str(k) for k in KIDS]})).schema.columns[0]
    assert (column.moment, column.missing) == ("date", (MissingCode(text),))


@pytest.mark.parametrize("declared", [True, False])
def test_a_labelled_code_says_that_the_question_was_not_asked(
    declared: bool, tmp_path: Path
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    codes = np.where(WORKS == "yes", 1.0 + KIDS % 3, -1.0)
    codes[:6] = -9
    frame = pandas.DataFrame({"hours": np.where(codes > 0, codes * 10, codes), "kind": codes})
    gone = {-9: "Refused", -1: "Inapplicable"}
    pyreadstat.write_sav(
        frame,
        tmp_path / "in.sav",
        variable_value_labels={"hours": gone, "kind": gone | {1: "a", 2: "b", 3: "c"}},
        missing_ranges={n: [{"lo": -9, "hi": -1}] for n in frame} if declared else {},
    )
    hours, kind = guess_schema(read_table(tmp_path / "in.sav")).schema.columns
    assert set(hours.missing) == {MissingCode("-9"), MissingCode("-1", impute=False)}
    assert set(kind.missing) == {MissingCode("Refused"), MissingCode("Inapplicable", impute=False)}
    assert kind.levels == ("a", "b", "c")


@pytest.mark.parametrize(
    "scale",
    [
        "Not at all satisfied/Slightly satisfied/Moderately satisfied/Very satisfied"
        "/Extremely satisfied",
        "Not very often/Fairly often/Often/Very often",
        "Much worse/Somewhat worse/About the same/Somewhat better/Much better",
        "Never/Less than once a month/Monthly/2-3 times a week/Daily",
        "Definitely not/Probably not/Might or might not/Probably yes/Definitely yes",
    ],
)
def test_scales_of_online_questionnaires_are_known(scale: str) -> None:
    levels = tuple(scale.split("/"))
    cells = [levels[(7 * k) % len(levels)] for k in range(N)]
    column = guess_schema(pa.table({"q": cells, "x": [str(k) for k in KIDS]})).schema.columns[0]
    assert (column.ordinal, column.levels) == (True, levels)


def test_a_box_that_was_ticked_or_not_is_told_apart_from_a_constant() -> None:
    ticked = ["1" if o else None for o in OFTEN]
    columns = {"tv": ticked, "same": ["1"] * N, "x": [str(k) for k in KIDS]}
    reasons = guess_schema(pa.table(columns)).reasons
    assert reasons["tv"] == (
        'ignored: always "1", or nothing; if that means no, as in boxes that were ticked, '
        "fill in a 0"
    )
    assert reasons["same"] == 'ignored: always "1"'


def test_words_that_end_alike_are_no_scale() -> None:
    cells = [f"{('red', 'very dark', 'pale')[k % 3]} wine" for k in range(N)]
    column = guess_schema(pa.table({"q": cells, "x": [str(k) for k in KIDS]})).schema.columns[0]
    assert not column.ordinal


def test_a_run_with_guessed_types_names_columns_that_some_rows_were_not_asked_for() -> None:
    works = [str(one) for one in WORKS]
    columns = {"works": works, "hours": asked(WORKS == "yes", None), "kids": [str(k) for k in KIDS]}
    table = pa.table(columns)
    short = {"model": "bsvd", "chains": 1, "warmup": 3, "draws": 2}
    said = [note for note in impute(table, "auto", **short).warnings if "not asked" in note]
    n = int((WORKS != "yes").sum())
    rows = f"no value in all {n} rows where works is never or \"no\""
    hint = f"{rows}; if these were not asked: only_if: works == \"yes\""
    assert said == [f"column 'hours': {hint}"]
    guess = guess_schema(table)
    assert f"  # {hint}\n  # whole numbers" in guess.to_yaml()
    assert not [note for note in impute(table, guess.schema, **short).warnings if "asked" in note]


def test_a_number_that_is_0_where_another_is_gets_a_condition() -> None:
    rng = np.random.default_rng(12)
    staff = np.where(rng.random(200) < 0.2, 0, rng.integers(1, 60, 200))
    columns = {
        "employees": staff,
        "wages": staff * rng.integers(20_000, 30_000, 200),
        "machines": np.where(staff == 0, 1, rng.integers(0, 9, 200)),  # 1 is nothing special
        "cars": rng.integers(0, 3, 200),
        "noise": np.where(staff > 0, 7, rng.integers(10, 60, 200)),  # one where it is above 0
    }
    hints = guess_schema(pa.table(columns)).hints
    told = {k: [one for one in v if "hardly elsewhere" in one] for k, v in hints.items()}
    n = int(np.sum(staff == 0))
    assert told.pop("wages") == [
        f'0 in all {n} rows where employees is "0" and hardly elsewhere; if that must be so: '
        'only_if: "employees > 0", otherwise: "0"'
    ]
    assert not any(told.values())


def test_a_number_of_every_level_is_no_sign_that_it_was_not_asked() -> None:
    town = np.repeat(np.arange(12), 40)
    population = 9_491 + 3_307 * town
    columns = {"town": np.array(list("ABCDEFGHIJKL"))[town], "population": population}
    cases = np.random.default_rng(13).poisson(population / 1e3)
    guess = guess_schema(pa.table(columns | {"cases": cases}))
    assert not any("only_if" in hint for hints in guess.hints.values() for hint in hints)


def test_a_run_with_guessed_types_names_values_that_it_takes_for_missing() -> None:
    rng = np.random.default_rng(3)
    age = [str(one) for one in rng.integers(20, 70, 60)]
    age[5], age[9], age[20] = "-999", "-999", "NA"
    agree = [("low", "middle", "high")[k % 3] for k in range(60)]
    agree[7] = "don't know"
    table = pa.table({"age": age, "agree": agree})
    short = {"model": "bsvd", "chains": 1, "warmup": 3, "draws": 2}
    done = impute(table, "auto", **short)
    assert done.n_completed == 4
    said = [note for note in done.warnings if "guessed" in note]
    assert [note.split(", guessed")[0] for note in said] == [
        "column 'age': 2 cells are -999",
        "column 'agree': 1 cell is \"don't know\"",
    ]
    schema = guess_schema(table).schema
    assert not [note for note in impute(table, schema, **short).warnings if "guessed" in note]


def test_values_missing_by_the_word_of_the_file_or_left_as_they_are_are_not_guessed() -> None:
    age = [str(one) for one in np.random.default_rng(3).integers(20, 70, 60)]
    age[5], age[9], age[20], age[30] = "-999", "-98", "n. appl.", "ND"
    field = pa.field("age", pa.string(), metadata=declare(None, ["-98"]))
    guess = guess_schema(pa.table([age, age[::-1]], schema=pa.schema([field, ("b", pa.string())])))
    assert {"-98", "-999", "ND"} <= {code.text for code in guess.schema.columns[0].missing}
    assert guess.codes["age"] == (["-999"], 1)


def test_items_with_codes_below_zero_are_answers_to_questions() -> None:
    rng = np.random.default_rng(12)
    answers = np.clip(np.round(2.5 + rng.normal(size=(N, 4))), 1, 4).astype(int)
    answers[rng.random((N, 4)) < 0.1] = -99
    guess = guess_schema(pa.table({f"mot_{i}": answers[:, i] for i in range(4)}))
    assert {column.type for column in guess.schema.columns} == {ColumnType.ORDINAL}
    assert {column.levels for column in guess.schema.columns} == {("1", "2", "3", "4")}


def test_codes_below_zero_among_occupations_and_grades_of_schools_are_missing() -> None:
    rng = np.random.default_rng(13)
    grades = ("1+", "1", "1-", "2+", "2", "2-", "3+", "3", "3-", "4+", "4", "4-", "5", "6")
    table = pa.table(
        {
            "isco": rng.choice(["0110", "2341", "5223", "-99"], N),
            "grade": rng.choice([*grades, "-99", "-97"], N),
            "ocena": rng.choice(["2", "2+", "3-", "3", "3+", "4-", "4"], N),
            "dose": rng.choice(["1", "3", "-1", "high", "low"], N),
        }
    )
    isco, grade, ocena, dose = guess_schema(table).schema.columns
    assert isco.levels == ("0110", "2341", "5223")
    assert [code.text for code in isco.missing] == ["-99"]
    assert (grade.type, grade.levels) == (ColumnType.ORDINAL, grades)
    assert sorted(code.text for code in grade.missing) == ["-97", "-99"]
    assert ocena.levels == ("2", "2+", "3-", "3", "3+", "4-", "4")
    assert (set(dose.levels or ()), dose.missing) == ({"-1", "1", "3", "high", "low"}, ())


@pytest.mark.parametrize(
    ("between", "n", "times", "panel"),
    [(1.0, 80, 3, True), (0.4, 80, 3, False), (1.0, 120, 2, False), (1.0, 3400, 3, False)],
)
def test_visits_of_people_who_differ_are_groups_in_time(
    between: float, n: int, times: int, panel: bool
) -> None:
    """Not where they hardly differ, where two visits tell little, or where there are too many."""
    rng = np.random.default_rng(15)
    person, wave = np.repeat(np.arange(n), times), np.tile(np.arange(1, times + 1), n)
    level = between * rng.normal(size=(2, n))[:, person]
    age = 20 + 3 * (person % 17) + wave
    columns = {"pupil_id": [f"{7 * p:07d}" for p in person], "age": age}
    columns |= {f"y{k}": (one + rng.normal(size=one.size)).round(2) for k, one in enumerate(level)}
    schema = guess_schema(pa.table(columns)).schema
    roles = [column.role for column in schema.columns[:2]]
    assert (roles == [Role.GROUP, Role.TIME]) == panel
    assert (roles[0] is Role.ID and roles[1] is not Role.TIME) != panel


@pytest.mark.parametrize("left", [False, True])
def test_what_orders_the_rows_of_a_person_may_have_role_time(left: bool) -> None:
    rng = np.random.default_rng(14)
    person, wave = np.repeat(np.arange(80), 3), np.tile(np.arange(1, 4), 80)
    kept = wave <= rng.integers(1, 4, 80)[person] if left else wave > 0
    columns = {
        "pupil_id": [f"{7 * p:07d}" for p in person],
        "sex": np.where(person % 2, "f", "m"),
        "wave": wave,
        "day": [f"{10 + w}.09.{2018 + w}" for w in wave],
        "score": (50 + 5 * wave + rng.normal(size=240)).round(1),
    }
    table = pa.table(columns).filter(kept)
    said = "differs in all rows of each pupil_id: `role: time`, where pupil_id has `role: group`"
    hints = guess_schema(table).hints
    assert hints["day"] == [said]
    assert said not in [*hints["wave"], *hints["score"]]
    undated = table.drop_columns("day")
    assert guess_schema(undated).hints["wave"] == [said]
    named = undated.rename_columns({"wave": "semester"})
    assert guess_schema(named).schema.columns[2].type is ColumnType.ORDINAL
    (hint,) = guess_schema(named).hints["semester"]
    assert "`{type: real, role: time}`" in hint
    again = pa.concat_tables([table, table.slice(0, 1)])  # two rows of one day
    assert said not in [hint for own in guess_schema(again).hints.values() for hint in own]


def test_a_question_inside_another_is_asked_by_the_inner_one() -> None:
    rng = np.random.default_rng(4)
    victim, told = rng.random(4 * N) < 0.4, rng.random(4 * N) < 0.5
    reported = np.where(victim, np.where(told, "yes", "no"), "-2")
    reasons = rng.choice(["fear", "police", "trifle"], 4 * N)
    reported[::17], reasons[5::19] = "-8", "-9"
    table = {
        "victim": np.where(victim, "yes", "no"),
        "reported": reported,
        "why not": np.where(victim & ~told, reasons, "-2"),
        "age": rng.integers(16, 80, 4 * N).astype(str),
    }
    found = skips({name: cells.tolist() for name, cells in table.items()})
    assert found["reported"].endswith('only_if: victim == "yes"')
    assert found["why not"].endswith('only_if: reported == "no"')


def test_dashes_of_any_length_among_numbers_are_missing() -> None:
    cells = ["-----" if k % 9 == 0 else f"{k % 31}.5" for k in range(N)]
    (column,) = guess_schema(pa.table({"x": cells})).schema.columns
    assert column.missing == (MissingCode("-----"),)
