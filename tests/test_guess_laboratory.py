"""What `glfm types` sees in tables of laboratories: genotypes, and words among measured numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import encode_triplets
from glfm_cli.errors import TableError
from glfm_cli.guess import guess_schema
from glfm_cli.schema import ColumnType, MissingCode, Role, Schema
from glfm_cli.schema.text import scalar

N = 200
_RNG = np.random.default_rng(5)
CALLS = _RNG.integers(0, 3, N)
GONE = _RNG.random(N) < 0.1


@pytest.mark.parametrize(
    ("calls", "no_call"),
    [
        (("A/A", "A/G", "G/G"), "0/0"),
        (("CC", "CT", "TT"), "NN"),
        (("C C", "C T", "T T"), "0 0"),
        (("0/0", "0/1", "1/1"), "./."),
    ],
)
def test_no_call_is_no_genotype(calls: tuple[str, ...], no_call: str) -> None:
    cells = [no_call if gone else calls[k] for k, gone in zip(CALLS, GONE, strict=True)]
    (column,) = guess_schema(pa.table({"rs1": cells})).schema.columns
    assert column.levels == calls
    assert column.missing == (MissingCode(no_call),)


@pytest.mark.parametrize("levels", [("0/0", "0/1", "1/1"), ("NN", "DE", "FR"), ("0/0", "A/G")])
def test_what_may_be_a_value_stays_one(levels: tuple[str, ...]) -> None:
    cells = [levels[k % len(levels)] for k in CALLS]
    (column,) = guess_schema(pa.table({"x": cells})).schema.columns
    assert set(column.levels or ()) == set(levels)
    assert not column.missing


@pytest.mark.parametrize(
    ("tests", "is_sodium"),
    [
        (("Na", "K", "Hb", "WBC"), True),
        (("NA", "K", "CL", "CREA"), True),
        (("na", "k", "ca"), True),
        (("Na", "Hb", "WBC"), False),
        (("NA", "K", "1", "2"), False),  # kindergarten
    ],
)
def test_sodium_is_no_missing_cell(tests: tuple[str, ...], is_sodium: bool) -> None:
    cells = [tests[k % len(tests)] for k in range(N)]
    (column,) = guess_schema(pa.table({"test": cells})).schema.columns
    assert (tests[0] in (column.levels or ())) == is_sodium
    assert bool(column.missing) != is_sodium


def test_a_word_in_half_of_the_cells_among_numbers_is_said_with_what_to_do() -> None:
    x = _RNG.exponential(size=N)
    cells = ["<LOD" if v < 0.6 else f"{v:.3f}" for v in x]
    guess = guess_schema(pa.table({"lead": cells, "zinc": [f"{v:.2f}" for v in x]}))
    share = np.mean([cell == "<LOD" for cell in cells])
    reason = guess.reasons["lead"]
    assert reason.startswith(f'ignored: numbers, beside "<LOD" in {100 * share:.0f} % of the')
    assert "write the limit, <0.05" in reason


FLAGGED = [f"{v:.1f}" for v in np.random.default_rng(9).normal(50.0, 9.0, N)]


@pytest.mark.parametrize("remark", ["*", " (rechecked)", " [1]", " H", "*)"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_with_a_remark_are_told(remark: str, decimal: str) -> None:
    cells = [one.replace(".", decimal) for one in FLAGGED]
    few = [cell + remark * (i in (3, 70, 150)) for i, cell in enumerate(cells)]
    many = [cell + remark * (i % 6 == 0) for i, cell in enumerate(cells)]
    guess = guess_schema(pa.table({"few": few, "many": many, "x": cells}))
    column = guess.schema.columns[0]
    assert str(column.type) == "positive"
    assert column.decimal == ("," if decimal == "," else None)
    assert {code.text for code in column.missing} == {few[i] for i in (3, 70, 150)}
    if remark != "*)":
        assert "left as it is; the number alone would be used" in guess.reasons["few"]
        said = f"ignored: numbers, some with a remark, such as {scalar(many[0])}; write the number"
        assert guess.reasons["many"].startswith(said)


def test_levels_with_letters_are_no_numbers_with_remarks() -> None:
    houses = [f"{k % 9 + 1}{' a' if k % 4 == 0 else ''}" for k in range(N)]
    (column,) = guess_schema(pa.table({"house": houses})).schema.columns
    assert str(column.type) == "categorical"


def test_a_limit_written_in_another_way_is_shown_as_it_stands() -> None:
    cells = [*FLAGGED[:190], *["<0,05"] * 10]
    guess = guess_schema(pa.table({"lead": cells, "zinc": FLAGGED}))
    said = f"ignored: numbers written in several ways, such as {FLAGGED[0]} and <0,05; "
    assert guess.reasons["lead"].startswith(said)


def test_an_id_beside_the_word_for_a_total_stands_once() -> None:
    cells = [*(str(k) for k in range(1, N)), "Total"]
    reason = guess_schema(pa.table({"Nr": cells, "zinc": FLAGGED})).reasons["Nr"]
    assert reason.startswith(f"the name is an id's; {N - 1} different values")
    assert "several rows" not in reason


INTENSITIES = [f"{x:.5g}" for x in np.exp2(np.random.default_rng(6).normal(25.0, 3.0, N))]


@pytest.mark.parametrize("gap", ["0", "Filtered"])
def test_intensities_are_seen_by_logarithms_and_what_was_not_detected_is_missing(gap: str) -> None:
    cells = [gap if gone else x for x, gone in zip(INTENSITIES, GONE, strict=True)]
    (column,) = guess_schema(pa.table({"LFQ intensity S_01": cells})).schema.columns
    assert (str(column.type), str(column.transform)) == ("positive", "log")
    assert column.missing == (MissingCode(gap),)


def test_zeros_among_other_amounts_stay_values() -> None:
    whole = (str(round(float(x))) for x in INTENSITIES)
    cells = ["0" if gone else x for x, gone in zip(whole, GONE, strict=True)]
    (column,) = guess_schema(pa.table({"capital": cells})).schema.columns
    assert not column.missing


def test_intensities_in_millions_are_intensities() -> None:
    cells = [f"{float(x) / 1e6:.4f}".replace(".", ",") for x in INTENSITIES]
    (column,) = guess_schema(pa.table({"iBAQ 3": cells})).schema.columns
    assert (str(column.type), str(column.transform), column.decimal) == ("positive", "log", ",")


def test_logarithms_of_intensities_are_not_taken_again() -> None:
    cells = [f"{np.log2(float(x)):.3f}" for x in INTENSITIES]
    (column,) = guess_schema(pa.table({"Intensity a": cells})).schema.columns
    assert (str(column.type), column.transform) == ("positive", None)


MEASURED = [f"{x:.2f}" for x in np.random.default_rng(7).normal(50.0, 10.0, N)]
SIGNED = [f"{float(x) - 50:.2f}" for x in MEASURED]


@pytest.mark.parametrize(
    ("code", "cells"),
    [
        ("-999.25", MEASURED),
        ("-999.25", SIGNED),
        ("-9999.25", SIGNED),
        ("-32768", SIGNED),
        ("-99900", MEASURED),
        ("-6999", MEASURED),
        ("1.70141E+38", SIGNED),
        ("-3.4028235e+38", SIGNED),
        ("1e30", MEASURED),
    ],
)
def test_what_fills_the_gaps_of_logs_and_grids_is_missing(code: str, cells: list[str]) -> None:
    filled = [code if gone else x for x, gone in zip(cells, GONE, strict=True)]
    (column,) = guess_schema(pa.table({"GR": filled})).schema.columns
    assert column.missing == (MissingCode(code),)
    assert (column.atom, column.bounds) == (None, (None, None))


def test_one_number_far_below_zero_is_no_code() -> None:
    (column,) = guess_schema(pa.table({"x": ["-6999", *MEASURED]})).schema.columns
    assert not column.missing


LEVELS = np.exp(np.random.default_rng(8).normal(2.0, 0.8, N))


@pytest.mark.parametrize(
    ("name", "limits", "digits", "kind"),
    [
        ("As_ppm", ("-4",), 1, "positive"),
        ("Zn", ("-4",), 0, "count"),
        ("Mo_XRF", ("-2", "-4"), 1, "positive"),
        ("b", ("-4.5",), 1, "positive"),  # no code: with any name
    ],
)
def test_a_number_below_zero_is_a_limit_of_detection(
    name: str, limits: tuple[str, ...], digits: int, kind: str
) -> None:
    limit = max(-float(one) for one in limits)
    cells = [
        limits[i % len(limits)] if x < limit else f"{max(x, limit):.{digits}f}"
        for i, x in enumerate(LEVELS)
    ]
    guess = guess_schema(pa.table({name: cells}))
    (column,) = guess.schema.columns
    assert (column.type, column.censored_below, column.missing) == (kind, limit, ())
    assert f"taken for less than {limit:g}, a limit of detection" in guess.reasons[name]
    assert Schema.from_yaml(guess.to_yaml()) == guess.schema


@pytest.mark.parametrize("cell", ["<0.5", "-0.5"])
def test_values_of_pairs_are_no_intervals(cell: str) -> None:
    """The table is refused for such cells until they are listed under `missing`."""
    rng = np.random.default_rng(3)
    code = rng.choice(200, 80, replace=False)
    value = [cell] * 6 + [f"{x:.2f}" for x in 0.6 + rng.exponential(size=74)]
    table = pa.table(
        {"u": [f"r{c // 10}" for c in code], "i": [f"c{c % 10}" for c in code], "v": value}
    )
    guess = guess_schema(table)
    assert [column.role for column in guess.schema.columns] == [Role.ROW, Role.COLUMN, Role.VALUE]
    assert Schema.from_yaml(guess.to_yaml()) == guess.schema
    assert "can be no intervals: list such cells under `missing`" in guess.reasons["v"]
    assert "impute: censored" not in guess.reasons["v"]
    with pytest.raises(TableError, match=f"row 1: found '?{cell}'?, expected a"):
        encode_triplets(table, guess.schema)


@pytest.mark.parametrize(
    ("name", "code", "least"),
    [("V1", "-1", 1.0), ("visits", "-4", 4.0), ("As_ppm", "-9", 10.0), ("As_ppm", "-1", 40.0)],
)
def test_a_code_for_missing_is_no_limit_of_detection(name: str, code: str, least: float) -> None:
    cells = [code if gone else f"{least + x:.1f}" for x, gone in zip(LEVELS, GONE, strict=True)]
    (column,) = guess_schema(pa.table({name: cells})).schema.columns
    assert column.censored_below is None
    assert column.missing == (MissingCode(code),)


def test_a_number_above_others_is_no_limit_of_detection() -> None:
    cells = ["-4.5" if gone else f"{x:.2f}" for x, gone in zip(LEVELS, GONE, strict=True)]
    (column,) = guess_schema(pa.table({"As_ppm": cells})).schema.columns
    assert column.censored_below is None


def test_rounded_small_numbers_are_no_scale() -> None:
    cells = [f"{0.01 * (1 + k % 10):.2f}" for k in range(N)]
    (column,) = guess_schema(pa.table({"SO3": cells})).schema.columns
    assert column.type == "positive"


@pytest.mark.parametrize(
    ("name", "top", "named"),
    [("wind_dir", 359, True), ("Aspect", 360, True), ("strike", 90, False), ("dose", 359, False)],
)
def test_directions_are_said_to_lie_on_a_circle(name: str, top: int, *, named: bool) -> None:
    cells = ["-999" if gone else str(int(x) % (top + 1)) for x, gone in zip(DEGREES, GONE)]  # noqa: B905
    hints = guess_schema(pa.table({name: [*cells, str(top)]})).hints.get(name, [])
    assert any("359 is next to 0" in hint for hint in hints) is named


DEGREES = np.random.default_rng(9).uniform(0, 1e6, N)


@pytest.mark.parametrize("name", ["landcover_2019", "Land_Use", "CLC 2018", "Facies"])
def test_codes_of_land_and_rock_are_categories(name: str) -> None:
    cells = [("11", "21", "31", "41")[k] for k in np.resize(CALLS + GONE, N)]
    (column,) = guess_schema(pa.table({name: cells})).schema.columns
    assert column.type == "categorical"


@pytest.mark.parametrize("word", ["< LOD", "b.d.l.", "<DL"])
def test_words_for_below_a_limit_ask_for_it(word: str) -> None:
    cells = [word if x < 4 else f"{x:.2f}" for x in LEVELS]
    assert "write the limit, <0.05" in guess_schema(pa.table({"lead": cells})).reasons["lead"]


LEVEL = {"K": (4.2, "mmol/L"), "Na": (140.0, "mmol/L"), "WBC": (7.0, "10^9/L")}


@pytest.mark.parametrize("one_test", [False, True])
def test_numbers_in_several_units_are_told(one_test: bool) -> None:
    rng = np.random.default_rng(14)
    tests = rng.choice(list(LEVEL), N)
    means = np.array([LEVEL["K" if one_test else test][0] for test in tests])
    columns = {
        "test": list(tests),
        "result": [f"{x:.1f}" for x in means * rng.lognormal(0, 0.05, N)],
        "age": rng.poisson(60, N),
        "unit": [LEVEL[test][1] for test in tests],
    }
    told = guess_schema(pa.table(columns)).skips
    text = (
        "in several units (mmol/L, 10^9/L), which models take for one; convert them to one, or "
        "write a column for each test"
    )
    assert told == ({} if one_test else {"result": text})


def test_few_numbers_beside_a_word_are_no_categories() -> None:
    cells = ["n.n." if i % 3 else f"{i % 40 / 10 + 0.1:.1f}" for i in range(N)]
    guess = guess_schema(pa.table({"CaCO3": cells, "zinc": _RNG.exponential(size=N)}))
    assert guess.schema.columns[0].role is Role.IGNORE
    assert guess.reasons["CaCO3"].startswith("ignored: numbers, beside n.n. in 66 % of the cells")
    codes = [f"{i % 24}" if i % 2 else "aisle" for i in range(N)]  # of seats, whole
    assert guess_schema(pa.table({"ward": codes, "zinc": cells})).schema.columns[0].levels


def test_tenths_beyond_one_are_measured_and_halves_are_answers() -> None:
    steps = np.tile(np.arange(10), N // 10)
    table = {
        "pH": [f"{7.4 + 0.1 * k:.1f}" for k in steps],
        "acuity": [f"{0.1 + 0.1 * k:.1f}" for k in steps],
        "stars": [f"{0.5 + 0.5 * k:.1f}" for k in steps],
    }
    columns = guess_schema(pa.table(table)).schema.columns
    types = {column.name: str(column.type) for column in columns}
    assert types == {"pH": "positive", "acuity": "ordinal", "stars": "ordinal"}


@pytest.mark.parametrize(
    "levels",
    [
        ("-", "+", "++", "+++"),
        ("neg", "(+)", "+", "++"),
        ("Negative", "Trace", "1+", "2+", "3+"),
    ],
)
def test_results_by_pluses_are_a_scale(levels: tuple[str, ...]) -> None:
    cells = [levels[k % len(levels)] for k in range(N)]
    (column,) = guess_schema(pa.table({"protein": cells})).schema.columns
    assert (str(column.type), column.levels, column.missing) == ("ordinal", levels, ())


def test_a_dash_beside_a_negative_result_is_a_missing_cell() -> None:
    cells = [("neg", "+", "++", "-")[k % 4] for k in range(N)]
    (column,) = guess_schema(pa.table({"protein": cells})).schema.columns
    assert (column.levels, column.missing) == (("neg", "+", "++"), (MissingCode("-"),))


def test_negative_results_are_not_completed(glfm: Callable[..., Any], tmp_path: Path) -> None:
    rows = [f"{('-', '-', '+', '++', '')[k % 5]},{k % 7}.5" for k in range(N)]
    (tmp_path / "urine.csv").write_text("\n".join(["protein,x", *rows, ""]))
    done = glfm("impute", "urine.csv", "--types", "auto", "--effort", "quick", cwd=tmp_path)
    pairs = list(zip(rows, done.stdout.split()[1:], strict=True))
    assert {before for before, after in pairs if before != after} == {
        one for one in rows if one[0] == ","
    }


def test_numbers_with_a_flag_are_told_beside_a_word_for_no_result() -> None:
    cells = [f"{3.5 + k % 20 / 10:.1f}" + " H" * (k % 20 > 16) for k in range(N)]
    cells[::15] = ["haem."] * len(cells[::15])
    reason = guess_schema(pa.table({"K": cells, "x": FLAGGED})).reasons["K"]
    assert reason == (
        'ignored: numbers, some with a remark, such as "5.2 H"; write the number alone'
    )


def test_bar_codes_are_no_numbers() -> None:
    codes = [f"40{(7919 * k) % 99991:05d}{k:06d}" for k in range(N)]
    guess = guess_schema(pa.table({"EAN": codes, "again": codes[: N // 2] * 2, "x": FLAGGED}))
    ean, again, _ = guess.schema.columns
    assert (ean.role, again.role) == (Role.ID, Role.IGNORE)
    assert guess.reasons["again"].endswith("numbers of 13 digits each, which are mostly codes")


@pytest.mark.parametrize("unit", [1000, 1_000_000])
def test_clocks_of_computers_are_numbers(unit: int) -> None:
    seconds = [1_609_459_200 + 60 * k for k in range(N)]
    table = pa.table({"at": [f"{second * unit}" for second in seconds], "x": FLAGGED})
    assert guess_schema(table).schema.columns[0].type is ColumnType.COUNT


def test_years_and_months_are_durations() -> None:
    terms = [f"{k // 12}y {k % 12}m" if k % 12 else f"{k // 12} years" for k in range(12, 72)]
    x = [f"{k % 17}.5" for k in range(61 * 4)]
    guess = guess_schema(pa.table({"sentence": [*terms, "6 m"] * 4, "x": x}))
    assert guess.reasons["sentence"].endswith("such as 1y 1m; write them in months")
