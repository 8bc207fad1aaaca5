"""Names that SPSS and Stata allow, made from those of columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli.io.variable_names import NAMING, variable_names


@pytest.mark.parametrize("layout", ["sav", "dta"])
@given(names=st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=8, unique=True))
def test_names_are_legal_and_different_and_legal_ones_stay(names: list[str], layout: str) -> None:
    naming, made = NAMING[layout], variable_names(names, layout)
    assert all(map(naming.is_legal, made))
    assert len({naming.key(name) for name in made}) == len(names)
    kept = {naming.key(name) for name in names if naming.is_legal(name)}
    assert {naming.key(name) for name in names if name in made} >= kept
    assert variable_names(made, layout) == made


@pytest.mark.parametrize(
    ("layout", "name", "legal"),
    [
        ("sav", "Resp ID", "Resp_ID"),
        ("sav", "Größe (cm)", "Größe_cm"),
        ("sav", "€", "v"),
        ("sav", "1. Halbjahr", "v1._Halbjahr"),
        ("sav", "ALL", "ALL_"),
        ("sav", "ä" * 40, "ä" * 32),
        ("sav", "² m", "v²_m"),
        ("dta", "a.b", "a_b"),
        ("dta", "str12", "str12_"),
        ("dta", "x" * 40, "x" * 32),
        ("dta", "2020", "v2020"),
    ],
)
def test_a_name_stays_as_near_as_it_may(layout: str, name: str, legal: str) -> None:
    assert variable_names([name], layout) == [legal]


def test_names_that_become_the_same_are_numbered() -> None:
    assert variable_names(["a b", "a-b", "a_b", "A B"], "sav") == ["a_b_2", "a_b_3", "a_b", "A_B_4"]
    assert variable_names(["a", "A"], "sav") == ["a", "A_2"]
    assert variable_names(["a", "A"], "dta") == ["a", "A"]
