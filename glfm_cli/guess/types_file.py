"""A types file that was guessed, with the reason of each entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glfm_cli.schema import Schema
from glfm_cli.schema.text import entry, flow

LONGEST_LINE = 100  # a reason that does not fit beside its entry stands above it
COMMENT_COLUMN = 40

_HEADER = """\
# Guessed from {source}: {n_rows} rows, {n_columns} columns. Check each line against what you know.
# Types: real, positive, count, categorical, ordinal. Roles: id, ignore, predictor, target.
"""


@dataclass(frozen=True, repr=False)
class Guess:
    """A types file guessed from a table.

    schema : names every column of the table; all observed cells are valid under it
    reasons : column name to why it was guessed so
    hints : column name to entries that it may need besides, for a person to judge
    notes : what is to be seen to in the table itself
    skips : column name to what is to be added if some rows were not asked for it
    codes : column name to values that are guessed to stand for missing cells: which, and how many
        cells have them; neither words that always do, nor what the file itself says to be missing
    """

    schema: Schema
    reasons: Mapping[str, str]
    n_rows: int
    hints: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    skips: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, tuple[Sequence[str], int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the types file, so that a notebook shows it."""
        return self.to_yaml()

    def to_yaml(self, source: str = "a table") -> str:
        """Return the types file, each entry with its reason as a comment.

        source : what the comment at the top calls the table
        """
        columns = self.schema.columns
        lines = [
            _HEADER.format(source=_one_line(source), n_rows=self.n_rows, n_columns=len(columns)),
            *(f"# {_one_line(note)}\n" for note in self.notes),
            "glfm: 1\n",
        ]
        if self.schema.missing:
            texts = [code.text for code in self.schema.missing]
            lines.append(f"missing: {flow(texts)}  # besides the empty cell\n")
        lines.append("columns:\n")
        for column in columns:
            skip = self.skips.get(column.name)
            hints = (*self.hints.get(column.name, ()), *([skip] if skip else []))
            lines += [f"  # {_one_line(hint)}\n" for hint in hints]
            line = entry(column.name, self.schema.entry(column), "  ")
            reason = f"# {_one_line(self.reasons[column.name])}"
            beside = f"{line:<{COMMENT_COLUMN}}  {reason}"
            if len(beside) <= LONGEST_LINE and "\n" not in line:
                lines.append(f"{beside}\n")
            else:
                lines.append(f"  {reason}\n{line}\n")
        return "".join(lines)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
