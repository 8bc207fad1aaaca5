"""Columns that follow from others in every row are named by `glfm types`, with their formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glfm_cli.completion.impute import impute
from glfm_cli.guess import guess_schema
from glfm_cli.guess.derived import LEAST_ROWS, closed_run, derived
from glfm_cli.io import read_table
from glfm_cli.schema import Schema
from tests.cli.conftest import run_here

N = 60
RNG = np.random.default_rng(3)
BASE = RNG.normal(20, 4, N).round(1)
AVAL = (0.7 * BASE + RNG.normal(4, 3, N)).round(1)
CHG = (AVAL - BASE).round(1)
PCHG = (100 * CHG / BASE).round(2)
ITEMS = RNG.integers(0, 4, (N, 4)).astype(float)


def formulas(**columns: np.ndarray) -> dict[str, str]:
    """Return the formulas that are found, by column."""
    names = list(columns)
    found = derived(names, np.column_stack(list(columns.values())))
    return {names[c]: one.formula for c, one in found.items()}


def test_changes_from_a_baseline_are_found_in_any_order() -> None:
    wanted = {"CHG": "AVAL - BASE", "PCHG": "100 * CHG / BASE"}
    assert formulas(BASE=BASE, AVAL=AVAL, CHG=CHG, PCHG=PCHG) == wanted
    assert formulas(BASE=BASE, PCHG=PCHG, CHG=CHG) == {"PCHG": "100 * CHG / BASE"}
    assert formulas(X=ITEMS[:, 0], AVAL=AVAL, BASE=BASE, CHG=CHG, PCHG=PCHG) == wanted


def test_totals_of_numbers_with_marks_are_found() -> None:
    heat, power = (100 * RNG.integers(50, 4000, N) for _ in range(2))
    columns = {"heat": heat, "power": power, "total": heat + power}
    for mark in (",", "."):
        table = pa.table({k: [f"{v:,}".replace(",", mark) for v in x] for k, x in columns.items()})
        hint = guess_schema(table).hints["total"][0]
        assert hint.endswith("if it must be so in completed ones: formula: heat + power")


def test_an_amount_follows_from_a_price_and_not_the_other_way() -> None:
    price, n = BASE + 0.01 * np.arange(N), ITEMS.sum(axis=1) + 1.0
    assert formulas(price=price, n=n, amount=price * n) == {"amount": "price * n"}
    assert formulas(amount=price * n, n=n, price=price) == {"price": "amount / n"}


def test_a_share_of_which_rounding_is_much_follows_from_nothing() -> None:
    assert formulas(a=10 * AVAL, b=BASE, r=(10 * AVAL / BASE).round()) == {}
    assert formulas(a=10 * AVAL, b=BASE, r=(10 * AVAL / BASE).round(2)) == {"r": "a / b"}


def test_totals_of_columns_that_stand_together_are_found_before_or_behind_them() -> None:
    items = dict(zip("abcd", ITEMS.T, strict=True))
    total = ITEMS.sum(axis=1)
    assert formulas(**items, T=total) == {"T": "a + b + c + d"}
    assert formulas(T=total, **items) == {"T": "a + b + c + d"}
    assert formulas(a=ITEMS[:, 0], T=ITEMS[:, 0] + ITEMS[:, 1], b=ITEMS[:, 1]) == {"T": "a + b"}


@given(st.integers(0, N - 1), st.sampled_from([-1.0, 0.1]))
@settings(max_examples=40, deadline=None)
def test_one_row_in_which_it_is_not_so_is_enough(row: int, by: float) -> None:
    other, total = CHG.copy(), ITEMS.sum(axis=1)
    other[row] += by
    total[row] += by
    assert formulas(BASE=BASE, AVAL=AVAL, CHG=other) == {}
    assert formulas(**dict(zip("abcd", ITEMS.T, strict=True)), T=total) == {}


@pytest.mark.parametrize("known", [LEAST_ROWS - 1, LEAST_ROWS])
def test_it_takes_rows_in_which_all_are_known(known: int) -> None:
    few = CHG.copy()
    few[known:] = np.nan
    assert bool(formulas(BASE=BASE, AVAL=AVAL, CHG=few)) is (known == LEAST_ROWS)


def test_sums_of_small_numbers_are_no_sums_of_others() -> None:
    rng = np.random.default_rng(8)
    a, b, c = np.exp(rng.normal(-32.0, 1.0, (3, N)))  # fluxes
    assert formulas(a=a, b=b, c=c) == {}
    assert formulas(a=a, b=b, c=a + b) == {"c": "a + b"}
    assert formulas(a=a, b=b, c=a * b) == {"c": "a * b"}


def test_one_column_in_two_units_is_found() -> None:
    rng = np.random.default_rng(8)
    kg, celsius = np.exp(rng.normal(6.0, 1.0, N)).round(), rng.normal(12.0, 8.0, N).round(1)
    lb, fahrenheit = (2.20462 * kg).round(1), (1.8 * celsius + 32.0).round(1)
    assert formulas(kg=kg, lb=lb) == {"lb": "kg * 2.20462"}
    assert formulas(lb=lb, kg=kg) == {"kg": "lb / 2.20462"}
    assert formulas(C=celsius, F=fahrenheit) == {"F": "C * 1.8 + 32"}
    assert formulas(F=fahrenheit, C=celsius) == {"C": "(F - 32) / 1.8"}
    assert formulas(C=celsius, K=celsius + 273.15) == {"K": "C + 273.15"}
    net = np.exp(rng.normal(6.0, 1.0, N)).round(2)  # finer than the tax computed from it
    assert formulas(net=net, tax=(0.19 * net).round(2)) == {"tax": "net * 0.19"}
    assert formulas(x=kg, y=-kg) == {"y": "x * -1"}
    born = rng.integers(1940, 2005, N).astype(float)
    assert formulas(born=born, age=2023.0 - born) == {"age": "2023 - born"}  # coarse, but exact
    assert formulas(age=2023.0 - born, born=born) == {"born": "2023 - age"}
    assert formulas(born=born, age=2023.0 - born - (np.arange(N) == 7)) == {}
    nearly = lb.copy()
    nearly[3] += 5.0
    assert formulas(kg=kg, lb=nearly) == {}
    assert formulas(a=ITEMS[:, 0], b=2.0 * ITEMS[:, 0]) == {}  # steps of a scale tell little


def test_the_time_between_two_dates_is_found_and_then_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    eta = np.datetime64("2024-03-01T06:00") + rng.integers(0, 90 * 1440, N)
    late = rng.integers(-30, 200, N)
    gone = np.arange(N) % 6
    rows = [
        f"{a}Z,{'' if g == 0 else f'{b}Z'},{'' if g == 1 else -m}"
        for a, b, m, g in zip(eta, eta + late, late, gone, strict=True)
    ]
    (tmp_path / "t.csv").write_text("ETA,ATA,early_min\n" + "\n".join(rows) + "\n")
    guess = guess_schema(read_table("t.csv"))
    (hint,) = guess.hints["early_min"]
    assert hint.startswith("(ETA - ATA) * 1440 in all 40 rows of a sample where that is known; ")
    entry = {"type": "real", "formula": "(ETA - ATA) * 1440"}
    types = yaml.safe_load(guess.to_yaml())
    types["columns"]["early_min"] = entry
    (tmp_path / "t.yaml").write_text(Schema.from_dict(types).to_yaml())
    short = ("--model", "glfm", "--chains", "1", "--warmup", "2", "--draws", "2")
    done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *short)
    assert done.status == 0, done.stderr
    full = [f"{a}Z,{b}Z,{-m}" for a, b, m in zip(eta, eta + late, late, strict=True)]
    assert (tmp_path / "o.csv").read_text().splitlines()[1:] == full
    dates = {"ETA": eta.astype("M8[s]"), "ATA": (eta + late).astype("M8[s]")}
    typed = pa.table({**dates, "days": late / 1440})
    assert guess_schema(typed).hints["days"][0].startswith("ATA - ETA in all 60 rows")


def test_dates_that_come_before_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    pickup = np.datetime64("2024-03-01T06:00:00") + rng.integers(0, 90 * 86400, N)
    delivery = pickup + rng.integers(3600, 86400, N)
    paid = delivery + rng.integers(86400, 30 * 86400, N)
    later = paid + np.timedelta64(400 * 86400, "s")
    born = np.datetime64("1970-01-01T00:00:00") + rng.integers(0, 90 * 86400, N)
    every = {"born": born, "pickup": pickup, "paid": paid, "delivery": delivery, "next": later}
    hints = guess_schema(pa.table(every)).hints
    found = {name: [one for one in own if "less_than" in one] for name, own in hints.items()}
    assert [name for name, own in found.items() if own] == ["pickup", "delivery"]
    assert found["pickup"][0].endswith("less_than: delivery")
    assert found["delivery"][0].endswith("less_than: paid")
    gone = rng.random(N) < 0.2
    table = pa.table({"pickup": pickup, "delivery": np.where(gone, np.datetime64("NaT"), delivery)})
    types = {"columns": {"pickup": {"type": "date", "less_than": "delivery"}, "delivery": "date"}}
    done = impute(table, types, model="glfm", chains=1, warmup=2, draws=2).table
    assert np.all(done["delivery"].to_numpy() > pickup)


def test_with_auto_columns_that_follow_from_others_are_told() -> None:
    rng = np.random.default_rng(8)
    kg = np.exp(rng.normal(6.0, 1.0, N)).round()
    table = pa.table({"kg": kg, "lb": np.where(np.arange(N) % 9 == 0, np.nan, 2.20462 * kg)})
    found = impute(table, "auto", model="glfm", chains=1, warmup=2, draws=2)
    assert any(one.startswith("column 'lb' follows from others") for one in found.warnings)


def test_columns_of_one_code_share_a_warning() -> None:
    rng = np.random.default_rng(8)
    coded = {f"band{k}": np.where(rng.random(N) < 0.1, -999.0, BASE * (k + 2)) for k in range(5)}
    coded["other"] = np.where(np.arange(N) == 1, -1.0, np.arange(N) % 7.0)
    coded = {name: x + 0.1 * rng.random(N) * (x >= 0) for name, x in coded.items()}
    found = impute(pa.table(coded), "auto", model="glfm", chains=1, warmup=2, draws=2)
    told = [one for one in found.warnings if "guessed to stand for missing" in one]
    n = int(sum((x == -999.0).sum() for x in coded.values()))
    assert told[0].startswith(f"columns 'band0', 'band1', 'band2' and 2 more: {n} cells are -999, ")
    assert len(told) <= 2


def test_columns_that_hardly_vary_follow_from_nothing() -> None:
    flag = np.arange(N) % 2.0
    assert formulas(one=np.ones(N), b=BASE + CHG, a=BASE) == {}
    assert formulas(a=BASE, b=BASE + flag, flag=flag) == {}


def test_the_hint_can_be_pasted_and_then_holds(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gone = np.arange(N) % 5 == 0
    rows = [
        f"{b},{'.,.' if no else f'{a},{c}'},{'' if no else int(q.sum())},"
        + ",".join(str(int(v)) for v in q)
        for a, b, c, q, no in zip(AVAL, BASE, CHG, ITEMS, gone, strict=True)
    ]
    (tmp_path / "t.csv").write_text("BASE,A VAL,CHG,SUM,q1,q2,q3,q4\n" + "\n".join(rows) + "\n")
    said = run_here("types", "t.csv").stdout
    assert (
        "# `A VAL` - BASE in all 48 rows of a sample where that is known; if it must be so in "
        'completed ones: formula: "`A VAL` - BASE"\n' in said
    )
    assert "# q1 + q2 + q3 + q4 in all 48 rows" in said
    assert "completed ones need not be, and both may come out too sure: `role: ignore`" in said
    types = yaml.safe_load(said)
    types["columns"]["CHG"] = {"type": "real", "formula": "`A VAL` - BASE"}
    (tmp_path / "t.yaml").write_text(Schema.from_dict(types).to_yaml())
    short = ("--model", "glfm", "--chains", "1", "--warmup", "2", "--draws", "2")
    done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *short)
    assert done.status == 0, done.stderr
    for line in (tmp_path / "o.csv").read_text().splitlines()[1:]:
        base, value, change = map(float, line.split(",")[:3])
        assert change == pytest.approx(value - base, abs=1e-6)


def test_points_are_found_in_a_league_and_then_hold(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    won, drawn = rng.integers(5, 25, 150), rng.integers(0, 14, 150)
    points, goals = 3 * won + drawn, 2 * won + rng.integers(5, 30, 150)
    lines = ["W,D,L,GF,Pts,PPG"]
    for i, (w, d, g, p) in enumerate(zip(won, drawn, goals, points, strict=True)):
        cells = w, d if i % 7 else "", 38 - w - d, g, p if i % 7 != 3 else "", f"{p / 38:.2f}"
        lines.append(",".join(map(str, cells)))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    said = run_here("types", tmp_path / "t.csv").stdout
    assert "# 3 * W + D in all " in said
    assert 'if it must be so in completed ones: formula: "3 * W + D"\n' in said
    types = yaml.safe_load(said)
    types["columns"]["Pts"] = {"type": "count", "formula": "3 * W + D"}
    short = {"model": "glfm", "chains": 1, "warmup": 2, "draws": 2, "threads": 1}
    done = impute(tmp_path / "t.csv", types, **short).table.to_pydict()
    pairs = zip(done["W"], done["D"], done["Pts"], strict=True)
    assert all(int(p) == 3 * int(w) + int(d) for w, d, p in pairs)


@pytest.mark.parametrize("of", range(12))
def test_sums_of_some_columns_several_times_are_found_and_no_others(of: int) -> None:
    rng = np.random.default_rng(of)
    X = rng.poisson(rng.uniform(1, 9, 7), (200, 7)).astype(float)
    a, b, c = X.T[of % 5 : of % 5 + 3].copy()
    total = (3 * a + b, 2 * a + b + 5 * c)[of % 2]
    X[1:][rng.random((199, 7)) < 0.08] = np.nan
    named = {f"x{i}": x for i, x in enumerate(X.T)}
    x, y, z = (f"x{of % 5 + i}" for i in range(3))
    wanted = (f"3 * {x} + {y}", f"2 * {x} + {y} + 5 * {z}")[of % 2]
    assert formulas(**named, total=total) == {"total": wanted}
    assert formulas(**named, total=total + (np.arange(200) == 0)) == {}
    assert formulas(**named, less=3 * a - b) == formulas(**named, half=2.5 * a + b) == {}
    assert formulas(**named, far=a + 40 * b) == formulas(**named) == {}


def test_codes_for_missing_are_no_numbers_of_a_formula() -> None:
    coded = [str(a) if i % 9 else "-99" for i, a in enumerate(AVAL)]
    change = [str(c) if i % 9 else "-99" for i, c in enumerate(CHG)]
    table = pa.table({"BASE": list(map(str, BASE)), "AVAL": coded, "CHG": change})
    (hint,) = guess_schema(table).hints["CHG"]
    assert hint.startswith("AVAL - BASE in all 53 rows")


SHARES = RNG.dirichlet((5.0, 3.0, 0.5, 1.0), N)
CLOSED = np.round(100 * SHARES, 1)  # that add up to 99.9 to 100.1


def test_parts_that_add_up_to_one_number_are_named_and_completed_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = CLOSED.copy()
    cells[:, 0] = np.round(100.0 - CLOSED[:, 1:].sum(axis=1), 1)
    text = [[f"{x:.1f}" for x in row] for row in cells]
    for row in text[:3]:
        row[1] = row[2] = ""
    lines = [",".join([*row, "100"]) for row in text]
    (tmp_path / "t.csv").write_text("sand,silt,clay,humus,total\n" + "\n".join(lines) + "\n")
    said = run_here("types", "t.csv").stdout
    assert "# sand to humus add up to 100 in all 57 rows of a sample where they are known; " in said
    assert "give each `parts_of: total`\n" in said
    types = "rest: {type: positive, parts_of: total}\ncolumns: {total: positive}\n"
    (tmp_path / "t.yaml").write_text(types)
    short = ("--model", "glfm", "--chains", "1", "--warmup", "2", "--draws", "2")
    done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *short)
    assert done.status == 0, done.stderr
    assert "every observed cell is" not in done.stderr
    for line in (tmp_path / "o.csv").read_text().splitlines()[1:]:
        assert sum(map(float, line.split(",")[:4])) == pytest.approx(100.0, abs=1e-6)


def test_rounded_parts_add_up_and_others_do_not() -> None:
    other = RNG.normal(20.0, 3.0, (N, 1)).round(1)
    found = closed_run(np.hstack([other, CLOSED, other]))
    assert found is not None
    assert (found[0], found[2]) == (range(1, 5), N)
    assert found[1] == pytest.approx(100.0)
    off = CLOSED.copy()
    off[7, 1] += 1.0
    for X in (off, CLOSED[:, :3], CLOSED - 5.0, np.hstack([CLOSED[:, :2], 0 * other])):
        assert closed_run(X) is None


@pytest.mark.parametrize(
    ("low", "high", "named"),
    [("depth_from", "depth_to", True), ("Tmin", "Tmax", True), ("a", "b", False)],
)
def test_lower_ends_are_less_than_upper_ones(low: str, high: str, *, named: bool) -> None:
    table = pa.table({high: (BASE + 5).astype(str), low: BASE.astype(str)})
    hints = [hint for hint in guess_schema(table).hints.get(low, []) if "less_than" in hint]
    assert bool(hints) is named
    if named:
        assert hints[0].endswith(f"if it must be so in completed ones: less_than: {high}")
        (equal,) = [guess_schema(pa.table({high: table[low], low: table[low]})).hints.get(low, [])]
        assert not any("less_than" in hint for hint in equal)


def test_every_upper_end_of_a_column_is_named_in_the_order_of_the_table() -> None:
    ends = {"HIGH_min": BASE + 3, "low_max": BASE + 5, "Low_min": BASE}
    table = pa.table({name: x.astype(str) for name, x in ends.items()})
    hints = [hint for hint in guess_schema(table).hints["Low_min"] if "less_than" in hint]
    assert [hint.rpartition(" ")[2] for hint in hints] == ["HIGH_min", "low_max"]


def items(seed: int = 5) -> dict[str, np.ndarray]:
    """Return answers from 1 to 4 to five questions, of which the fourth is turned round."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(1, 5, (N, 5)).astype(float)
    return {name: answers[:, i] for i, name in enumerate(("m_1", "m_2", "m_3", "m_4r", "m_5"))}


def test_scores_of_items_some_of_them_turned_round_are_found() -> None:
    own = items()
    a, b, c, d, e = own.values()
    total, mean = a + b + c + (5 - d), np.round((a + b + (5 - d) + (5 - e)) / 4, 2)
    assert formulas(**own, age=BASE, total=total) == {"total": "m_1 + m_2 + m_3 - m_4r + 5"}
    assert formulas(mean=mean, **own) == {"mean": "(m_1 + m_2 - m_4r - m_5 + 10) / 4"}
    assert formulas(**own, total=a + c + e) == {"total": "m_1 + m_3 + m_5"}
    turned = {"m_4": d, "m_4r": 5 - d}  # both are there
    found = formulas(m_1=a, m_2=b, m_3=c, **turned, total=total)
    assert found == {"total": "m_1 + m_2 + m_3 - m_4 + 5"}
    total[3] += 1
    assert formulas(**own, total=total, other=a + b - 2 * c) == {}


def test_a_score_is_found_where_no_row_has_all_columns() -> None:
    own = items()
    half = np.arange(N) % 2 == 0
    others = {f"x_{i}": np.where(half, np.nan, RNG.integers(1, 5, N)) for i in range(3)}
    total = own["m_1"] + own["m_2"] + own["m_5"] - own["m_4r"]
    found = formulas(**others, **own, total=np.where(half, total, np.nan))
    assert found == {"total": "m_1 + m_2 + m_5 - m_4r"}


def test_a_score_of_ordinal_items_is_to_be_computed_afterwards(tmp_path: Path) -> None:
    own = {name: [str(int(x)) for x in answers] for name, answers in items().items()}
    a, b, _, d, _ = items().values()
    table = pa.table({**own, "score": (a + b + 5 - d).astype(int)})
    (hint,) = guess_schema(table).hints["score"]
    assert hint.startswith("m_1 + m_2 - m_4r + 5 in all 60 rows of a sample")
    assert hint.endswith("`role: ignore`, and compute it afterwards")
    holed = table.set_column(5, "score", pa.array([None, *table["score"].to_pylist()[1:]]))
    done = impute(holed, "auto", model="bsvd", chains=1, warmup=5, draws=5, threads=1)
    assert any(one.startswith("column 'score' follows from others") for one in done.warnings)


@pytest.mark.parametrize("per", [1_000, 10_000, 100_000, 1_000_000])
def test_rates_per_thousand_and_more_are_found(per: int) -> None:
    rng = np.random.default_rng(7)
    defects, lot = rng.poisson(3.0, N).astype(float), rng.choice([5e3, 1e4, 2e4, 3e4], N)
    rate = np.round(per * defects / lot, 1 if per > 10_000 else 3)
    found = formulas(defects=defects, lot=lot, age=BASE, rate=rate)
    assert found == {"rate": f"{per} * defects / lot"}
    rate[5] *= 1.5
    rate[6] += 7.0
    assert formulas(defects=defects, lot=lot, age=BASE, rate=rate) == {}


def test_a_formula_with_the_few_sizes_of_lots_says_their_type() -> None:
    rng = np.random.default_rng(8)
    defects, lot = rng.poisson(3.0, N), rng.choice([5000, 10000, 20000], N)
    table = pa.table({"defects": defects, "lot size": lot, "rate": 1e6 * defects / lot})
    (hint,) = guess_schema(table).hints["rate"]
    formula = '"1000000 * defects / `lot size`"'
    assert hint.endswith(f"completed ones: formula: {formula}, and for lot size type: count")
