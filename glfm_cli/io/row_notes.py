"""Notes on rows of a table, which join to one when the table is read in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

SHOWN = 5  # rows that a note keeps


class RowsNote(str):
    """A note that counts cells or rows; a text like others, that knows what it was made of.

    words : a function of a module, of the arguments below to the text
    subject : what tells the note from others of the same words
    n : how many they are
    rows : the first of them, counted from 1, at most `SHOWN`
    only_last : whether the note is on the last row of its table: more rows below take it back
    """

    words: Callable[[Any, int, tuple[int, ...]], str]
    subject: Any
    n: int
    rows: tuple[int, ...]
    only_last: bool

    def __new__(
        cls,
        words: Callable[[Any, int, tuple[int, ...]], str],
        subject: Any,
        count: int,
        rows: Iterable[int] = (),
        *,
        only_last: bool = False,
    ) -> RowsNote:
        """Word the note."""
        kept = tuple(int(row) for row in rows)[:SHOWN]
        note = super().__new__(cls, words(subject, count, kept))
        note.words, note.subject, note.only_last = words, subject, only_last
        note.n, note.rows = count, kept
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what a copy is made from."""
        made_of = self.words, self.subject, self.n, self.rows
        return made_of, {"only_last": self.only_last}

    def after(self, n_rows: int) -> RowsNote:
        """Return the note on a table in which `n_rows` rows come before."""
        rows = [row + n_rows for row in self.rows]
        return RowsNote(self.words, self.subject, self.n, rows, only_last=self.only_last)

    def joined(self, below: RowsNote) -> RowsNote:
        """Return the note on the rows of two, of which the other's stand below."""
        count, rows = self.n + below.n, (*self.rows, *below.rows)
        return RowsNote(self.words, self.subject, count, rows)


class JoinedNotes:
    """The notes on a table that is read in parts, in the order in which they came."""

    def __init__(self) -> None:
        self._notes: dict[Any, str] = {}

    def add(self, notes: Iterable[str], n_rows: int) -> None:
        """Take in the notes on a part, above which stand `n_rows` rows."""
        last = [k for k, one in self._notes.items() if isinstance(one, RowsNote) and one.only_last]
        for key in last:
            del self._notes[key]
        for note in notes:
            if not isinstance(note, RowsNote):
                self._notes.setdefault(note, note)
                continue
            key, moved = (note.words, note.subject), note.after(n_rows)
            known = self._notes.get(key)
            self._notes[key] = known.joined(moved) if isinstance(known, RowsNote) else moved

    def told(self) -> tuple[str, ...]:
        """Return the notes on what was read so far."""
        return tuple(self._notes.values())
