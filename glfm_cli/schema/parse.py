"""From what a types file says of one column to a checked `Column`."""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

from glfm_cli.errors import SchemaError
from glfm_cli.schema.calendar import DAYS, PARTS
from glfm_cli.schema.checks import check_column
from glfm_cli.schema.columns import Column, MissingCode, Role, Transform
from glfm_cli.schema.formula import parse_formula
from glfm_cli.schema.moments import DIRECTIVES, EXCEL, ISO, MOMENTS, UNIX, Moments
from glfm_cli.schema.phrases import did_you_mean, is_number, listed
from glfm_cli.schema.text import describe
from glfm_cli.schema.types import COLUMN_TYPES, ColumnType

_Choice = TypeVar("_Choice")

_KEYS = (
    *("type", "role", "levels", "aliases", "transform", "reflect", "bounds", "censored_below"),
    *("censored_above", "impute", "missingness", "formula", "only_if", "otherwise", "less_than"),
    *("parts_of", "atom", "missing", "trials", "absent", "decimal", "thousands", "percent"),
    *("unit", "format", "as", "label"),
)
_DAYS_HINT = "A date is completed by its number of days: write `as: [days, month]`."
_NO_LIMIT = frozenset({"", "~", "null", "none"})
_DECIMALS = (".", ",")
_THOUSANDS = (".", ",", " ", "'")
_ABSENT = {"zero": "zero", "missing": None}
_MISSINGNESS: dict[str, Any] = {"random": None, "probit": "probit"}
_IMPUTE = {"censored": True, "missing": False}
_SWITCH = {"true": True, "yes": True, "false": False, "no": False}
_NEEDS_TYPE = frozenset({Role.FEATURE, Role.TARGET, Role.VALUE})
# Words that say type and how it is written; types that are registered later are among them.
_WRITTEN: dict[str, ColumnType] = {kind: COLUMN_TYPES[name] for kind, name in MOMENTS.items()}
_TYPES = ChainMap(_WRITTEN, COLUMN_TYPES)
# What other programs call a type.
_OTHER_WORDS = {
    **dict.fromkeys(("numeric", "number", "float", "double", "continuous", "scale"), "real"),
    **dict.fromkeys(("integer", "int"), "count"),
    **dict.fromkeys(("nominal", "factor", "string", "text", "bool", "boolean"), "categorical"),
    **dict.fromkeys(("ordered", "likert"), "ordinal"),
    **dict.fromkeys(("datetime", "timestamp"), "date"),
}
_ROLES = {str(role): role for role in Role}
_TRANSFORMS = {str(transform): transform for transform in Transform}


class ColumnParser:
    """Reads one entry of `columns:` (or `rest:`); its errors name file and column.

    name : the column's name or pattern
    missing : the table's list, for a column without its own
    shown : what messages call the column
    """

    def __init__(
        self, name: str, file: str | None, missing: tuple[MissingCode, ...], shown: str | None
    ) -> None:
        self.name, self.missing = name, missing
        self.error = partial(SchemaError, file=file, column=shown)

    def wrong(self, key: str, value: Any, expected: str, hint: str | None = None) -> SchemaError:
        """Return the error of a key whose value is another than it should be."""
        return self.error(f"`{key}`", value=describe(value), expected=expected, hint=hint)

    def parse(self, entry: Any) -> Column:
        """Return the column that `entry`, a word or a mapping, describes."""
        if isinstance(entry, str):
            entry = self.long_form(entry)
        if not isinstance(entry, Mapping):
            raise self.error(
                value=describe(entry),
                expected="a type, a role, or a mapping such as {type: count, bounds: [0, 120]}",
            )
        for key in entry:
            if key not in _KEYS:
                raise self.error(
                    "unknown key",
                    value=f"'{key}'",
                    expected=listed(_KEYS),
                    hint=did_you_mean(key, _KEYS),
                )
        column = Column(
            name=self.name,
            role=self.column_role(entry),
            type=self.column_type(entry),
            levels=self.levels(entry),
            aliases=self.aliases(entry),
            transform=self.choice(entry, "transform", _TRANSFORMS),
            reflect=self.number_if("reflect", entry),
            bounds=self.bounds(entry),
            missing=self.codes(entry["missing"]) if "missing" in entry else self.missing,
            censored_below=self.number_if("censored_below", entry),
            censored_above=self.number_if("censored_above", entry),
            impute_censored=self.choice(entry, "impute", _IMPUTE) or False,
            missingness=self.choice(entry, "missingness", _MISSINGNESS),
            formula=self.expression(entry, "formula", condition=False),
            only_if=self.expression(entry, "only_if", condition=True),
            otherwise=self.text(entry, "otherwise"),
            less_than=self.text(entry, "less_than"),
            parts_of=self.text(entry, "parts_of"),
            atom=self.atom(entry),
            trials=self.text(entry, "trials"),
            absent=self.choice(entry, "absent", _ABSENT),
            decimal=self.separator(entry, "decimal", _DECIMALS),
            thousands=self.separator(entry, "thousands", _THOUSANDS),
            percent=self.switch(entry, "percent"),
            unit=self.text(entry, "unit"),
            moment=next((kind for kind in MOMENTS if kind == entry.get("type")), None),
            format=self.date_format(entry),
            seen_as=self.parts_of_date(entry),
            label=self.text(entry, "label"),
        )
        check_column(column, self.error)
        return column

    def atom(self, entry: Mapping[str, Any]) -> float | Literal["none"] | None:
        value = entry.get("atom")
        if value is None or value == "none":
            return None if value is None else "none"
        return self.number("atom", value)

    def long_form(self, word: str) -> dict[str, str]:
        if word in _TYPES:
            return {"type": word}
        if word in _ROLES:
            return {"role": word}
        known = [*_TYPES, *_ROLES]
        raise self.error(
            value=describe(word),
            expected=f"a type ({', '.join(_TYPES)}) or a role ({', '.join(_ROLES)})",
            hint=_did_you_mean(word, known),
        )

    def choice(
        self, entry: Mapping[str, Any], key: str, known: Mapping[str, _Choice]
    ) -> _Choice | None:
        word = entry.get(key)
        if word is None:
            return None
        if not isinstance(word, str) or word not in known:
            hint = _did_you_mean(word, known) if isinstance(word, str) else None
            raise self.error(
                f"unknown {key}", value=describe(word), expected=listed(known), hint=hint
            )
        return known[word]

    def column_role(self, entry: Mapping[str, Any]) -> Role:
        if entry.get("role") in tuple(_TYPES) and "type" not in entry:
            raise self.error(
                "unknown role",
                value=f"'{entry['role']}'",
                expected=listed(Role),
                hint=f"'{entry['role']}' is a type: write `type: {entry['role']}`.",
            )
        return self.choice(entry, "role", _ROLES) or Role.FEATURE

    def column_type(self, entry: Mapping[str, Any]) -> ColumnType | None:
        if entry.get("type") in tuple(_ROLES) and "role" not in entry:
            raise self.error(
                "unknown type",
                value=f"'{entry['type']}'",
                expected=listed(_TYPES),
                hint=f"'{entry['type']}' is a role: write `role: {entry['type']}`.",
            )
        found = self.choice(entry, "type", _TYPES)
        role = self.column_role(entry)
        if found is None and role in _NEEDS_TYPE:
            raise self.error(
                f"a {role} column needs a type",
                expected=listed(_TYPES),
                hint="For example {type: real}; `glfm types DATA` proposes one for every column.",
            )
        return found

    def text(self, entry: Mapping[str, Any], key: str) -> str | None:
        value = entry.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.wrong(key, value, "text")

    def expression(self, entry: Mapping[str, Any], key: str, *, condition: bool) -> str | None:
        text = self.text(entry, key)
        if text is None:
            return None
        example = 'sex == "f"' if condition else "weight / (height / 100) ** 2"
        try:
            formula = parse_formula(text)
        except ValueError as error:
            why = f"`{key}` cannot be read: {error}"
            raise self.error(why, value=f"'{text}'", hint=f"For example {example}.") from None
        if formula.is_condition != condition:
            expected = f"a condition such as {example}" if condition else "a number, no condition"
            raise self.error(f"`{key}`", value=f"'{text}'", expected=expected)
        return text

    def separator(self, entry: Mapping[str, Any], key: str, known: tuple[str, ...]) -> str | None:
        value = entry.get(key)
        if value is None or value in known:
            return value
        raise self.wrong(
            key,
            value,
            listed(f'"{one}"' for one in known),
            f'Write the character between quotes, for example `{key}: "{known[1]}"`.',
        )

    def switch(self, entry: Mapping[str, Any], key: str) -> bool:
        value = entry.get(key, "false")
        if isinstance(value, str) and value.lower() in _SWITCH:
            return _SWITCH[value.lower()]
        raise self.wrong(key, value, "true or false")

    def date_format(self, entry: Mapping[str, Any]) -> str | None:
        form = self.text(entry, "format")
        if form in (None, ISO, EXCEL, UNIX) or entry.get("type") == "duration":  # which is refused
            return form
        used = set(re.findall(r"%(.?)", form))
        by_week = {"G", "V"} <= used and not used & set("yYmbBdj")  # of ISO 8601: 2024-W05
        by_quarter = used - {"q"} in ({"Y"}, {"y"}) and form.count("%q") == 1
        dated = by_week or by_quarter or (used & {"Y", "y"} and not used & set("GVuq"))
        if not dated or not used <= DIRECTIVES:
            raise self.error(
                "`format`",
                value=f"'{form}'",
                expected="iso, excel, unix, or a format with %Y or %y, %m, %d and their like",
                hint='For example {type: date, format: "%d.%m.%Y"}.',
            )
        return form

    def parts_of_date(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        value = entry.get("as")
        if value is None:
            return ()
        parts = tuple(value) if isinstance(value, list) else (value,)
        for part in parts:
            if part not in PARTS:
                hint = did_you_mean(part, PARTS) if isinstance(part, str) else None
                raise self.wrong("as", part, f"a list of {listed(PARTS)}", hint)
        if DAYS not in parts or len(set(parts)) < len(parts):
            raise self.wrong("as", value, "days and other parts, each once", _DAYS_HINT)
        return parts

    def limit(self, entry: Mapping[str, Any], value: Any) -> float:
        """Return a limit of `bounds`, which is written as the column's cells are."""
        if entry.get("type") not in MOMENTS:
            return self.number("bounds", value)
        moments = Moments(entry["type"], self.date_format(entry))
        number = moments.number(value) if isinstance(value, str) else None
        if number is None:
            raise self.wrong("bounds", value, moments.in_words)
        return number

    def number_if(self, key: str, entry: Mapping[str, Any]) -> float | None:
        return self.number(key, entry[key]) if key in entry else None

    def number(self, key: str, value: Any) -> float:
        if not isinstance(value, str) or not is_number(value):
            raise self.wrong(key, value, "a number")
        number = float(value)
        if not math.isfinite(number):
            raise self.error(f"`{key}`", value=value, expected="a number below 1.8e308")
        return number

    def bounds(self, entry: Mapping[str, Any]) -> tuple[float | None, float | None]:
        limits = entry.get("bounds")
        if limits is None:
            return (None, None)
        if not isinstance(limits, list) or len(limits) != 2:
            raise self.wrong(
                "bounds", limits, "a lower and an upper limit, such as [0, 120]; null is no limit"
            )
        lower, upper = (
            None
            if isinstance(limit, str) and limit.lower() in _NO_LIMIT
            else self.limit(entry, limit)
            for limit in limits
        )
        if lower is None and upper is None:
            raise self.error(
                "`bounds` has no limit", expected="a number for at least one of the two"
            )
        if lower is not None and upper is not None and lower >= upper:
            raise self.error(
                "`bounds`",
                value=f"[{limits[0]}, {limits[1]}]",
                expected="the lower limit first, below the upper one",
                hint=f"Write `bounds: [{limits[1]}, {limits[0]}]`." if lower > upper else None,
            )
        if entry.get("transform") == Transform.LOGIT and not (
            (0.0 if lower is None else lower) < (1.0 if upper is None else upper)
        ):
            # logit stretches the part between its bounds, which are 0 and 1 unless given.
            raise self.error(
                "`bounds` do not fit `transform: logit`",
                value=f"[{limits[0]}, {limits[1]}]",
                expected="both limits, or one between 0 and 1",
            )
        return lower, upper

    def levels(self, entry: Mapping[str, Any]) -> tuple[str, ...] | None:
        levels = entry.get("levels")
        if levels is None:
            return None
        if not isinstance(levels, list) or not levels:
            raise self.wrong("levels", levels, "a list with at least one level")
        seen = set()
        for level in levels:
            if not isinstance(level, str) or not level:
                raise self.wrong("levels", level, "text for every level")
            if level in seen:
                raise self.error(f"the level '{level}' is listed twice")
            seen.add(level)
        return tuple(levels)

    def aliases(self, entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        given = entry.get("aliases")
        if given is None:
            return ()
        expected = "other writings of each level, such as {yes: [Yes, Y], no: [No, N]}"
        if not isinstance(given, Mapping) or not given:
            raise self.wrong("aliases", given, expected)
        found: dict[str, str] = {}
        for level, texts in given.items():
            if not isinstance(texts, list) or not all(isinstance(t, str) and t for t in texts):
                raise self.wrong("aliases", texts, expected)
            for text in texts:
                if text in found or text in given:
                    raise self.error(f"`aliases` has '{text}' twice", expected="one level for it")
                found[text] = level
        return tuple(found.items())

    def codes(self, entry: Any) -> tuple[MissingCode, ...]:
        """Return the codes of a `missing:` list."""
        if not isinstance(entry, list):
            raise self.wrong("missing", entry, 'a list of codes, such as ["", NA, "-9"]')
        codes: dict[str, MissingCode] = {}
        for item in entry:
            code = self.code(item)
            if code.text in codes:
                raise self.error(f"the missing code '{code.text}' is listed twice")
            codes[code.text] = code
        return tuple(codes.values())

    def code(self, item: Any) -> MissingCode:
        if isinstance(item, str):
            return MissingCode(item)
        if not isinstance(item, Mapping) or "value" not in item:
            raise self.wrong(
                "missing", item, 'text, or a mapping such as {value: "-9", impute: false}'
            )
        for key in item:
            if key not in ("value", "impute"):
                raise self.error(
                    "unknown key in `missing`", value=f"'{key}'", expected="value or impute"
                )
        text, impute = item["value"], item.get("impute", "true")
        if not isinstance(text, str):
            raise self.wrong("missing", text, "text for `value`")
        if not isinstance(impute, str) or impute.lower() not in _SWITCH:
            raise self.error(
                f"`impute` of the missing code '{text}'",
                value=describe(impute),
                expected="true or false",
            )
        return MissingCode(text, _SWITCH[impute.lower()])


def _did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the hint that offers the closest known word, or ours for that of another program."""
    known = list(known)
    ours = _OTHER_WORDS.get(word.casefold())
    return f"Did you mean '{ours}'?" if ours in known else did_you_mean(word, known)
