"""`--set name=value`: text settings laid over the frozen configurations that own the names."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from glfm_cli.errors import UsageError


def apply_settings(configs: Mapping[str, Any], settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the configurations with every setting put into the one that has its field.

    configs : the configurations a run has, by any label; no field name occurs twice
    settings : field names to values; text is converted to the field's type

    Raises UsageError: an unknown name, or a value that is not of the field's type or outside its
        range.
    """
    owners = {
        field.name: label
        for label, config in configs.items()
        for field in dataclasses.fields(config)
    }
    changes: dict[str, dict[str, Any]] = {label: {} for label in configs}
    for name, value in settings.items():
        if name not in owners:
            close = difflib.get_close_matches(name, owners, n=1)
            raise UsageError(
                f"--set {name}: no such setting",
                hint=(f"Did you mean '{close[0]}'? " if close else "")
                + "Settings: "
                + ", ".join(sorted(owners))
                + ".",
            )
        config = configs[owners[name]]
        hint = get_type_hints(type(config))[name]
        changes[owners[name]][name] = _convert(name, value, hint)
    return {
        label: dataclasses.replace(config, **changes[label]) for label, config in configs.items()
    }


def parse_assignments(items: list[str]) -> dict[str, str]:
    """Split `name=value` texts of the command line into a mapping; the last of a name wins."""
    settings = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"--set {item}: expected name=value", hint="For example: --set max_features=20."
            )
        settings[name.strip()] = value.strip()
    return settings


def _convert(name: str, value: object, hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        if value is None or (isinstance(value, str) and value.lower() in ("none", "auto", "")):
            return None
        hint = next(part for part in get_args(hint) if part is not type(None))
    text = str(value).strip()
    if get_origin(hint) is Literal:
        return _choice(name, text, get_args(hint))
    if hint is bool:
        words = {"true": True, "yes": True, "on": True, "1": True}
        words |= {"false": False, "no": False, "off": False, "0": False}
        if text.lower() not in words:
            raise UsageError(f"--set {name}", value=text, expected="true or false")
        return words[text.lower()]
    try:
        number = hint(text)
    except ValueError:
        kind = "a whole number" if hint is int else "a number"
        raise UsageError(f"--set {name}", value=text, expected=kind) from None
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError(f"--set {name}", value=text, expected="a finite number")
    return number


def _choice(name: str, text: str, options: tuple[Any, ...]) -> Any:
    for option in options:
        if text == str(option):
            return option
    raise UsageError(f"--set {name}", value=text, expected=" or ".join(str(o) for o in options))


def require(ok: bool, name: str, value: object, expected: str) -> None:
    """Raise the error of a configuration field whose value is outside its range."""
    if not ok:
        raise UsageError(f"--set {name}", value=value, expected=expected)


def require_each(config: Any, names: str, fits: Callable[[Any], bool], expected: str) -> None:
    """Raise the same where one of the named fields does not fit; blanks are between names."""
    for name in names.split():
        require(fits(getattr(config, name)), name, getattr(config, name), expected)


def require_whole(config: Any, **ranges: tuple[int, int | None]) -> None:
    """Raise the same where a field is not from the least to the most that it may be.

    A field whose default is None may be None, too; where the most is None there is no such.
    """
    for name, (least, most) in ranges.items():
        value, expected = getattr(config, name), f"a whole number from {least}"
        expected += "" if most is None else f" to {most}"
        if value is not None or getattr(type(config), name) is not None:
            fits = value >= least if most is None else least <= value <= most
            require(fits, name, value, expected)
