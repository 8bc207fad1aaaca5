"""What may stand below the rows of a sheet: totals and means of them, and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence

FOOTNOTES_KEY = b"glfm.footnotes"  # of the schema: the rows below the table in a workbook
SAMPLE = 50  # rows above notes that are looked at
MOST = 20  # lines under a table that may be notes
MIN_COLUMNS = 3  # a row of fewer cannot be told from a note

# Words for the sum or the mean of all rows, in several languages (in lower case).
_SUMMARY = re.compile(
    r"(grand )?totals?|sum|(gesamt)?summe|(ins)?gesamt|totale|somme|total g[eé]n[eé]ral|suma|soma|"
    r"total geral|totaal|summa|razem|итого|"
    r"mean|average|avg|mittel(wert)?|durchschnitt|moyenne|m[eé]dia|promedio|gemiddelde|medelv[äa]rde|"
    r"średnia|среднее"
)
# Words that say so beside one of those alone: a Max may be a person, an n a level.
_BESIDE = re.compile(
    r"n|count|anzahl|min(imum)?|max(imum)?|median(e|a|o)?|s\.?d\.?|std\.?|std\.? ?dev(iation)?|"
    r"standard deviation|standardabweichung|stabw|[eé]cart[- ]type|mediana|m[eé]diane|cv|rsd"
)


def count_summaries(cells: Sequence[str]) -> int:
    """Return how many of the last cells of a column name sums or means of the rows above.

    Each of them is unlike all other cells.
    """
    words = [_word(cell) for cell in cells]
    n = 0
    while n < len(words) and words.count(words[-1 - n]) == 1 and _is_summary(words[-1 - n]):
        n += 1
    return n if any(_SUMMARY.fullmatch(word) for word in words[len(words) - n :]) else 0


def _word(cell: str) -> str:
    return cell.strip().casefold().rstrip(":. ")


def _is_summary(word: str) -> bool:
    return bool(_SUMMARY.fullmatch(word) or _BESIDE.fullmatch(word))


def count_footnotes(firsts: Sequence[str], filled: Sequence[int]) -> int:
    """Return how many of the last lines of a sheet are notes under its table, blank ones included.

    They stand below a blank line, or a total, and are words in the first column alone, of a shape
    that no cell above has: a row of an id alone is a row.

    firsts : the first cell of the last lines;  filled : how many of their cells are filled
    """
    start = len(filled)
    while start and filled[start - 1] <= bool(firsts[start - 1]):
        start -= 1
    above = firsts[max(0, start - SAMPLE) : start]
    if not (above and _is_summary(_word(above[-1]))):
        start = next((i for i in range(start, len(filled)) if not filled[i]), len(filled))
        above = firsts[max(0, start - SAMPLE) : start]
    notes, shapes = list(filter(None, firsts[start:])), set(map(_shape, above))
    if not notes or len(firsts) - start > MOST or start == 0:
        return 0
    words = all(any(map(str.isalpha, note)) and _shape(note) not in shapes for note in notes)
    return len(firsts) - start if words else 0


def _shape(text: str) -> str:
    return re.sub(r"\d+", "0", text)
