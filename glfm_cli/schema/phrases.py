"""Phrases of messages: lists of names, and the name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(text: str) -> bool:
    """Return whether a text of the types file is a number."""
    return _NUMBER.fullmatch(text.strip()) is not None


def listed(names: Iterable[str]) -> str:
    """Return names as `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that `name` was probably meant to be."""
    folded = {item.casefold(): item for item in known}
    found = get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def each_named(texts: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names in texts; a comma parts names, unless a known name has one itself."""
    found: list[str] = []
    for text in texts:
        found += [text] if text in known else [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(name for name in found if name))


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the hint that offers the closest known name, if one is close."""
    near = closest(name, known)
    return None if near is None else f"Did you mean '{near}'?"
