"""Names of columns as SPSS and Stata allow them.

A name that is legal stays. Of any other, each run of characters that are not allowed becomes `_`;
it gets a letter in front where it needs one, and a number behind where the name is taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

STACKED = (".imp", ".id")  # the number of a completed version, and of its row


@dataclass(frozen=True)
class Naming:
    """The rules of one program.

    pattern, replaced : a legal name; what is not allowed inside one
    reserved : names that it takes for its own
    most, size : how long a name may be, by which measure
    key : what must be different of two names
    stacked : its own names for those of `STACKED`
    """

    program: str
    pattern: re.Pattern[str]
    replaced: re.Pattern[str]
    reserved: re.Pattern[str]
    most: int
    size: Callable[[str], int]
    key: Callable[[str], str]
    stacked: tuple[str, ...]

    def is_legal(self, name: str) -> bool:
        """Return whether the program takes a name as it is."""
        fits = self.size(name) <= self.most and self._is_spelled(name)
        return fits and not self.reserved.fullmatch(name)

    def _is_spelled(self, name: str) -> bool:
        # The signs of `\w` that are no digits are letters, but for such as ½ and ².
        return bool(self.pattern.fullmatch(name)) and (name[0] == "_" or name[0].isalpha())

    def legal(self, name: str) -> Iterator[str]:
        """Yield legal names made from another, the best first."""
        stem = self.replaced.sub("_", unicodedata.normalize("NFC", name)).strip("_.") or "v"
        if not self._is_spelled(stem):
            stem = f"v{stem}"
        if self.reserved.fullmatch(stem):
            stem = f"{stem}_"
        for number in count(1):
            behind = "" if number == 1 else f"_{number}"
            while self.size(stem + behind) > self.most:
                stem = stem[:-1]
            yield stem + behind


def _bytes(name: str) -> int:
    return len(name.encode())


NAMING = {
    "sav": Naming(
        program="SPSS",
        pattern=re.compile(r"[^\W\d_](?:[\w.@#$]*[\w@#$])?"),
        replaced=re.compile(r"[^\w.@#$]+"),
        reserved=re.compile("all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with", re.IGNORECASE),
        most=64,
        size=_bytes,
        key=str.lower,
        stacked=("Imputation_", "id"),
    ),
    "dta": Naming(
        program="Stata",
        pattern=re.compile(r"[^\W\d]\w*"),
        replaced=re.compile(r"\W+"),
        reserved=re.compile(
            r"_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_N|_pi|_pred|_rc|_skip|strL|"
            r"str\d+|using|with"
        ),
        most=32,
        size=len,
        key=str,
        stacked=("_mi_m", "_mi_id"),
    ),
}


def variable_names(names: Sequence[str], layout: str) -> list[str]:
    """Return what the columns of a table are called in a file of SPSS (`sav`) or Stata (`dta`)."""
    naming = NAMING[layout]
    own = tuple(names[:2]) == STACKED
    found: list[str | None] = [
        *(naming.stacked if own else ()),
        *(name if naming.is_legal(name) else None for name in names[2 if own else 0 :]),
    ]
    taken: set[str] = set()
    for i, name in enumerate(found):  # the first of two names that differ in their case alone
        if name is not None and naming.key(name) in taken:
            found[i] = None
        elif name is not None:
            taken.add(naming.key(name))
    made = []
    for name, legal in zip(names, found, strict=True):
        if legal is None:
            legal = next(one for one in naming.legal(name) if naming.key(one) not in taken)
            taken.add(naming.key(legal))
        made.append(legal)
    return made


def renamed_note(names: Sequence[str], layout: str) -> str | None:
    """Return the line that says which columns have other names in a file; None if all keep theirs.
    """
    pairs = zip(names, variable_names(names, layout), strict=True)
    changed = [f"'{old}' is {new}" for old, new in pairs if old != new and old not in STACKED]
    if not changed:
        return None
    columns = "1 column has a name" if len(changed) == 1 else f"{len(changed)} columns have names"
    shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
    return f"{columns} that {NAMING[layout].program} does not allow: {shown} in the file"
