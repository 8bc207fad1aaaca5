"""Settings as text: converted to a field's type, checked, and put where the field is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli.errors import GlfmError, UsageError
from glfm_cli.latent import MODELS
from glfm_cli.links import LinkConfig
from glfm_cli.settings import apply_settings, parse_assignments, require


@dataclass(frozen=True)
class Oven:
    """One field of each type that a configuration may have."""

    minutes: int = 30
    degrees: float = 180.0
    fan: bool = True
    shelf: Literal["top", "middle"] = "middle"
    shelves: Literal[1, 2] = 1
    steam: float | None = None

    def __post_init__(self) -> None:
        require(self.minutes > 0, "minutes", self.minutes, "a whole number above 0")


@dataclass(frozen=True)
class Dough:
    """Another configuration of the same run."""

    salt: float = 0.02


def oven(**settings: Any) -> Oven:
    found = apply_settings({"oven": Oven(), "dough": Dough()}, settings)["oven"]
    assert isinstance(found, Oven)
    return found


# Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given_as", "value"),
    [
        ("minutes", "45", 45),
        ("minutes", 45, 45),
        ("degrees", "2e2", 200.0),
        ("degrees", 200, 200.0),
        ("degrees", " 200 ", 200.0),
        ("fan", "false", False),
        ("fan", "No", False),
        ("fan", "on", True),
        ("fan", 1, True),
        ("fan", False, False),
        ("shelf", "top", "top"),
        ("shelves", "2", 2),
        ("shelves", 2, 2),
        ("steam", "0.5", 0.5),
        ("steam", "none", None),
        ("steam", "Auto", None),
        ("steam", "", None),
        ("steam", None, None),
    ],
)
def test_a_value_takes_the_type_of_its_field(name: str, given_as: object, value: object) -> None:
    found = getattr(oven(**{name: given_as}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "given_as", "message"),
    [
        ("minutes", "soon", "--set minutes, found soon, expected a whole number"),
        ("minutes", "1.5", "--set minutes, found 1.5, expected a whole number"),
        ("minutes", None, "--set minutes, found None, expected a whole number"),
        ("minutes", "-3", "--set minutes, found -3, expected a whole number above 0"),
        ("degrees", "hot", "--set degrees, found hot, expected a number"),
        ("degrees", "inf", "--set degrees, found inf, expected a finite number"),
        ("degrees", "nan", "--set degrees, found nan, expected a finite number"),
        ("degrees", "none", "--set degrees, found none, expected a number"),
        ("fan", "maybe", "--set fan, found maybe, expected true or false"),
        ("shelf", "bottom", "--set shelf, found bottom, expected top or middle"),
        ("shelves", "3", "--set shelves, found 3, expected 1 or 2"),
        ("steam", "some", "--set steam, found some, expected a number"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, given_as: object, message: str) -> None:
    with pytest.raises(UsageError) as error:
        oven(**{name: given_as})
    assert error.value.message() == message


def test_what_is_not_set_keeps_its_value() -> None:
    before = Oven(minutes=7, steam=1.0)
    after = apply_settings({"oven": before}, {"fan": "off"})["oven"]
    assert after == dataclasses.replace(before, fan=False)
    assert before.fan


# Names ---------------------------------------------------------------------------------------


def test_each_setting_reaches_the_configuration_that_has_the_field() -> None:
    found = apply_settings({"oven": Oven(), "dough": Dough()}, {"salt": "0.03", "minutes": "9"})
    assert found == {"oven": Oven(minutes=9), "dough": Dough(salt=0.03)}


def test_an_unknown_name_gets_a_suggestion_and_the_names_there_are() -> None:
    with pytest.raises(UsageError) as error:
        oven(degree="9")
    assert error.value.message() == "--set degree: no such setting"
    assert error.value.hint == (
        "Did you mean 'degrees'? Settings: degrees, fan, minutes, salt, shelf, shelves, steam."
    )
    with pytest.raises(UsageError) as error:
        oven(xyz="9")
    assert str(error.value.hint).startswith("Settings: degrees, ")


def test_assignments_are_split_at_the_first_equals_sign_and_the_last_wins() -> None:
    assert parse_assignments(["a=1", " b = x=y ", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}
    assert parse_assignments([]) == {}


@pytest.mark.parametrize("text", ["minutes", "=3", " =3", ""])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected name=value"):
        parse_assignments([text])


# The product's own configurations ------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_no_setting_has_two_owners(model: str) -> None:
    names = [
        f.name for config in (MODELS[model].Config, LinkConfig) for f in dataclasses.fields(config)
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("model", MODELS)
def test_every_field_is_named_in_its_configurations_text(model: str) -> None:
    for config in (MODELS[model].Config, LinkConfig):
        for field in dataclasses.fields(config):
            assert field.name in (config.__doc__ or ""), field.name


@pytest.mark.parametrize("model", MODELS)
def test_every_default_can_be_set_as_text(model: str) -> None:
    configs = {"model": MODELS[model].Config(), "links": LinkConfig()}
    settings = {
        field.name: str(getattr(config, field.name))
        for config in configs.values()
        for field in dataclasses.fields(config)
    }
    assert apply_settings(configs, settings) == configs


@given(st.data())
def test_any_text_for_any_setting_is_a_configuration_or_a_clear_error(data: st.DataObject) -> None:
    configs = {"model": MODELS["glfm"].Config(), "links": LinkConfig()}
    names = [field.name for config in configs.values() for field in dataclasses.fields(config)]
    name = data.draw(st.sampled_from(names))
    text = data.draw(
        st.text(max_size=6) | st.floats().map(str) | st.integers().map(str) | st.just("true")
    )
    failure = None
    try:
        apply_settings(configs, {name: text})
    except GlfmError as error:
        failure = error
    if failure is not None:
        assert failure.exit_status == 2
        assert failure.message().startswith(f"--set {name}")
