"""Which values of a column look like a missing cell: words such as NA, numbers such as 999.

A number is called a code only where the rest of the column says so: -1 among counts, 999 far
above everything else, 9 above the answers 1 to 5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.names import is_concentration, is_intensity, words
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.scales import order
from glfm_cli.guess.stray import HIGH_CODES, LOW_CODES

# Never a value of their own (compared in lower case).
GAP_WORDS = words(
    """na n/a n.a. n.a #n/a <na> nan null (null) #null! #value! #div/0! \\n ? ?? ??? . .. - -- ---
    ---- ----- – — ./. .|.
    missing (missing) <missing> k.a. fehlt fehlend s/d"""
) | {
    *("not available", "no data", "k. a.", "keine angabe", "keine angaben", "ohne angabe"),
    *("nicht verfügbar", "non renseigné", "non disponible", "sin dato", "sin datos"),
    *("non disponibile", "geen gegevens", "sem dados"),
}

# Errors of formulas, as spreadsheets write them in several languages.
GAP_WORDS |= words(
    """#nv #n/v #n/d #n/b #i/t #ref! #name? #num! #calc! #spill! #wert! #bezug! #zahl! #valeur!
    #nom? #nombre! #nul! #¡valor! #¡ref! #¿nombre? #¡num! #¡nulo! #¡div/0! #valore! #rif! #nome?
    #valor! #waarde! #verw! #naam? #getal! #saknas!"""
)

# Questions without an answer: among levels, too, these words are none.
REFUSALS = words("refusal verweigert") | {
    *("no answer", "no response", "prefer not to say", "prefer not to answer", "rather not say"),
    *("declined to answer", "refused to answer", "not answered", "not stated", "not ascertained"),
    *("keine antwort", "antwort verweigert", "möchte ich nicht sagen", "nicht beantwortet"),
    *("sans réponse", "pas de réponse", "refus de répondre", "ne souhaite pas répondre"),
    *("préfère ne pas répondre", "no contesta", "no responde", "sin respuesta"),
    *("prefiere no contestar", "prefiere no responder"),
}
# Measured beside sodium, Na; in lower case.
_IONS = words("k cl ca mg hco3 co2 po4")
# A number with a remark: 27.1*, 7 (rechecked), 5,1 H.
_NUMBER = r"[+-]?\d+(?:[.,]\d+)*"
WITH_REMARK = rf"^{_NUMBER}\s*(?:[*†‡#!?]+|\(.*\)|\[.*\]|\s[A-Za-z]{{1,2}})$"
BARE_NUMBER = rf"^{_NUMBER}$"
# A gap among numbers; among words they may well be a level.
DOUBTFUL_WORDS = REFUSALS | {
    *words("none nil unknown unk nk dk refused x xx * ** tbc tbd"),
    *("not known", "not recorded", "not stated", "not measured", "don't know", "dont know"),
    *("not done", "not tested", "not performed", "not assessed", "not determined", "not obtained"),
    *("not examined", "not evaluated", "no sample", "no result", "pending"),
    *("no answer", "no response", "prefer not to say", "n.b.", "weiß nicht", "weiss nicht"),
    *("keine antwort", "nicht bestimmt", "nicht erhoben", "nicht gemessen", "unbekannt", "inconnu"),
    *("nicht durchgeführt", "nicht untersucht", "nicht erfasst", "nicht getestet", "nicht gemacht"),
    *("non fait", "non mesuré", "non réalisé", "no realizado", "no medido", "não realizado"),
    *("non eseguito", "non misurato", "niet gemeten", "niet gedaan"),
    *("ne sait pas", "no sabe", "no contesta", "ns/nc", "desconocido", "sconosciuto", "onbekend"),
}

# What control systems and their archives write in place of a value: among numbers, a gap as well.
DOUBTFUL_WORDS |= {
    *words("bad calib calibration timeout offline off-line fault failure error err invalid stale"),
    *("bad input", "bad output", "bad value", "bad data", "bad quality", "no value", "no signal"),
    *("i/o timeout", "i/o error", "comm fail", "comm failure", "comm error", "no comm"),
    *("communication failure", "communication error", "device failure", "sensor failure"),
    *("sensor fault", "sensor error", "scan off", "scan timeout", "scan failed", "pt created"),
    *("shutdown", "intf shut", "not connect", "not connected", "configure", "config error"),
    *("configuration error", "calc failed", "calc off", "calc timeout", "arc off-line"),
    *("arc offline", "out of service", "maintenance", "questionable"),
    *words("störung gestört ausfall ungültig fehler kalibrierung wartung défaut erreur étalonnage"),
    *words("fallo ungeldig storing"),
    "filtered",  # of programs of mass spectrometry
    *("hors service", "fuera de servicio", "kein signal", "keine daten", "keine verbindung"),
}

# Where a word beside them tells that they are no levels: a scale, a code beyond it, a refusal.
UNANSWERED = REFUSALS | {
    *words("unknown unk dk refused refus nsp ns/nc unbekannt inconnu desconocido n/a na tbc tbd"),
    *("don't know", "dont know", "do not know", "not known", "can't say", "can't choose"),
    *("weiß nicht", "weiss nicht", "weiß ich nicht", "kann ich nicht sagen", "keine angabe"),
    *("ne sait pas", "je ne sais pas", "no sabe", "no sé"),
    *("(not set)", "(not provided)"),  # of web analytics
}

# The question was not asked: nothing is there to be completed.
NO_QUESTION_WORDS = words("inapplicable inap inap. iap entfällt") | {
    *("not applicable", "does not apply", "item not applicable", "not asked", "question not asked"),
    *("nr", "not rated", "unrated", "not yet rated", "too new to rate"),
    *("legitimate skip", "valid skip", "logical skip", "not in universe"),
    *("not eligible", "trifft nicht zu", "nicht zutreffend"),
    *("nicht gefragt", "sans objet", "non applicable", "non concerné", "no aplica", "no procede"),
    *("não se aplica", "non applicabile", "niet van toepassing"),
}

# A value that is there and was not measured, below a limit that the word does not say.
BELOW_WORDS = words("nd n.d. bdl blq bloq bql bll lloq lod loq") | {
    *words("<lloq <loq <lod <mdl <rl <dl undetected undetermined undetectable"),
    *words("tr tr. trace traces spur spuren sp. traza trazas tracce"),
    *("< lloq", "< loq", "< lod", "< mdl", "< rl", "< dl", "b.d.l.", "b.d.", "below dl"),
    *("not detected", "below lod", "below loq", "below detection limit", "nicht nachweisbar"),
    *("non détecté", "no detectado", "n.n."),
}

# What is no level of a table that writes it among the numbers of several columns.
AMONG_NUMBERS = BELOW_WORDS | NO_QUESTION_WORDS | UNANSWERED | words("*")
AMONG_NUMBERS |= {one for one in DOUBTFUL_WORDS if " " in one}  # not done, not tested

# Two alleles, and what programs of genetics write where there was no call: beside calls alone.
_CALL, _NO_CALL = "^[ACGT][/|: ]?[ACGT]$", "^(?:0[/|: ]?0|N[/|: ]?N)$"
_NONE = "None"  # what Python writes for a missing cell
LEAST_INTENSITY = 2.0  # beside which 0 is none; of pixels it is one
MOST_LIMITS = 4  # of detection, in a column
PILED_CODES = {999.0, 9999.0, 99999.0}  # that may be codes though some numbers are near
PILED = 10  # times as many cells as numbers in the upper half of the range
LEAST_BESIDE_PILE = 30  # different numbers
LEAST_BESIDE = 5  # different numbers that are no such limits
MOST_ABOVE = 3.0  # the largest of them, the least other number
_FEWEST_NUMBERS = 3  # different ones, beside which it is none
_LARGEST_SMALL_SCALE = 6
_MANY_NEGATIVES = 4
LEAST_BELOW = -7.0  # from which on a number below zero is a code among levels
LEAST_CODES, MANY_CODES = 4, 10  # of two letters, among which NA may be one, and is
NOWHERE = 1e20  # from which numbers fill the empty cells of grids: 1e30, 1.70141e38
LEAST_REPEATED = 3  # rows with the one number below zero, far from all others, that is a code
# No day: 0000-00-00, 99/99/9999, 9999-12-31.
_NO_DAY = r"^[0 :/.T-]{6,}$|^[9/.-]{8,}$|^9999-12-31|^(?:31[./-]12|12/31)[./-]9999"

# A date of which the day, or the month too, is not known: 2020-03, 2020, UNMAR2020, UN/UNK/2020.
_GONE = r"(?:un|unk|xx|xxx|\?\?|--?|00)"
_NAMED_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_PART_OF_DATE = (
    rf"(?i)^\s*(?:\d{{4}}(?:-(?:\d\d|{_GONE}))?(?:-{_GONE})?"
    rf"|(?:{_GONE}[-/. ]?)?(?:{_GONE}|{_NAMED_MONTH})[-/. ]?\d{{4}}"
    rf"|{_GONE}[-/.]\d\d[-/.]\d{{4}}|(?:0?[1-9]|1[0-2])[-/]\d{{4}})\s*$"
)
MOST_IN_PART = 1 / 3  # of the dates of a column


def word_codes(column: Profile, among: frozenset[str]) -> NDArray[np.bool_]:
    """Return which distinct texts of a column are `among` some words, in any case."""
    plain = pc.replace_substring(pc.utf8_lower(column.texts), "\u2019", "'")
    found = pc.is_in(plain, value_set=pa.array(sorted(among)))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def is_unanswered(label: str) -> bool:
    """Return whether a label, or each of several that it names, says that there is no answer."""
    bare = label.casefold().replace("\u2019", "'")
    parts = re.split(r"[/,;]|\bor\b|\boder\b|\bou\b", bare)
    known = {word.casefold() for word in UNANSWERED}
    return bare.strip() in known or all(part.strip() in known for part in parts)


def not_asked(column: Profile) -> NDArray[np.bool_]:
    """Return which distinct texts of a column say, themselves or by their label, so: not asked."""
    said = word_codes(column, NO_QUESTION_WORDS)
    labels = dict(column.declared.meanings)
    known = {word.replace("\u2019", "'") for word in NO_QUESTION_WORDS}
    named = [labels.get(text, "").strip().casefold() in known for text in column.words()]
    return said | np.array(named, dtype=bool)


def no_dates(column: Profile, dates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which distinct texts of a column of dates mean that there is none.

    Nothing where something else stands among them.
    """
    gone = column.matches(_NO_DAY) | word_codes(column, DOUBTFUL_WORDS | UNANSWERED)
    real = dates & ~gone
    return gone if real.sum() >= _FEWEST_NUMBERS and np.all(real | gone) else gone & False


def parts_of_dates(column: Profile, dates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which distinct texts of a column of dates are dates without a day, or a month.

    Nothing where these are many, or something else stands among them.
    """
    partial = column.matches(_PART_OF_DATE) & ~column.matches(_NO_DAY)
    whole = dates & ~partial & ~column.is_number
    few = column.counts[partial].sum() <= MOST_IN_PART * column.n_observed
    if not few or whole.sum() < _FEWEST_NUMBERS:
        return partial & False
    known = np.all(whole | partial | no_dates(column, whole | partial))
    return partial if known else partial & False


def declared(column: Profile) -> NDArray[np.bool_]:
    """Return which distinct texts of a column are missing values by the word of its file."""
    found = pc.is_in(column.texts, value_set=pa.array(column.declared.missing, pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def perhaps_namibia(column: Profile) -> bool:
    """Return whether NA stands among two-letter codes alone, which may be those of countries."""
    two_letters = column.matches("^[A-Z]{2}$")
    return "NA" in column.words() and two_letters.sum() >= LEAST_CODES and bool(two_letters.all())


def gap_words(column: Profile) -> NDArray[np.bool_]:
    """Return which distinct texts stand for a missing cell in any column."""
    if column.kind is not Kind.TEXT:
        return np.zeros(column.n_distinct, dtype=bool)
    gaps = word_codes(column, GAP_WORDS)
    two_letters = column.matches("^[A-Z]{2}$")
    # Among two-letter country or state codes, NA is Namibia.
    if two_letters.sum() >= MANY_CODES and bool(np.all(two_letters | (gaps & ~two_letters))):
        gaps &= ~two_letters
    if (sodium := word_codes(column, frozenset({"na"}))).any():
        # Written Na, beside one other ion; as NA, which is a gap in most tables, beside two.
        n_ions = word_codes(column, _IONS).sum()
        gaps &= ~(sodium & ((n_ions >= 2) | ((n_ions == 1) & column.matches("^Na$"))))
    calls, no_calls = column.matches(_CALL), column.matches(_NO_CALL)
    if calls.sum() >= 2 and bool(np.all(calls | no_calls | gaps)):
        gaps |= no_calls
    if column.matches(r"^\++$").any():  # beside which - is a negative result
        dash = column.matches("^-$")
        gaps &= ~(dash & (order(column.keep(~gaps | dash).words()) is not None))
    if column.none_is_gap and not _is_first_step(column.keep(~gaps)):
        gaps |= column.matches(f"^{_NONE}$")
    return gaps


def writes_none(columns: Sequence[Profile]) -> bool:
    """Return whether a table writes `None`, as Python does, in missing cells.

    So it does where nothing else but words for a gap stands among the numbers of a column.
    """
    return any(
        column.kind is Kind.TEXT
        and _NONE in column.words()
        and column.is_number.sum() >= _FEWEST_NUMBERS
        and bool(np.all(column.is_number | word_codes(column, GAP_WORDS | {_NONE.lower()})))
        for column in columns
        if column.is_number.any()
    )


def _is_first_step(column: Profile) -> bool:
    """Return whether `None` is a step of a scale, such as None, Mild, Severe: alike written."""
    words = column.words()
    return all(word[:1].isupper() for word in words) and order(words) is not None


def number_codes(column: Profile) -> NDArray[np.bool_]:
    """Return which distinct values of a column of numbers are codes for a missing cell."""
    low = _low_codes(column)
    rest = ~low
    high = np.zeros_like(low)
    high[rest] = _high_codes(column.numbers[rest])
    return low | high | _piled(column) | _undetected(column)


def below_codes(column: Profile) -> NDArray[np.bool_]:
    """Return numbers such as -9 or -99 of a column that holds other texts: none else is below 0."""
    below = column.numbers < 0.0
    coded = np.isin(column.numbers, LOW_CODES) & (column.numbers <= LEAST_BELOW)
    few = below.sum() <= _MANY_NEGATIVES and np.array_equal(below, coded)
    return below if few else below & False


def below_limits(column: Profile) -> NDArray[np.bool_]:
    """Return which distinct numbers -L mean: less than L, as laboratories write.

    They are the only ones below zero. The largest L is at most all other numbers, and near the
    least of them. Whole numbers such as -1 are limits only if the name says concentration, and
    -7, -8, -9 never: these are codes.
    """
    x = column.numbers
    low = (x < 0) & ~_far(-x, _is_far_code(-x))
    others = x[x >= 0]
    if not 0 < low.sum() <= MOST_LIMITS or len(others) < LEAST_BESIDE:
        return low & False
    limit = -x[low].min()
    near = limit <= others.min() <= MOST_ABOVE * limit
    plain = np.isin(x[low], LOW_CODES)
    if not near or np.any(plain & (x[low] <= -7)):
        return low & False
    doubtful = plain.any() or column.all_whole or column.counts[low].min() < LEAST_REPEATED
    return low & (is_concentration(column.name) or not doubtful)


def _undetected(column: Profile) -> NDArray[np.bool_]:
    """Return zeros of a column of intensities, far below all others: nothing was detected."""
    zeros, x = column.numbers == 0.0, column.numbers
    none = zeros & False
    if not zeros.any() or x.min() < 0.0 or not is_intensity(column.name):
        return none
    return zeros if len(x) > 3 and x[~zeros].min() >= LEAST_INTENSITY else none


def _low_codes(column: Profile) -> NDArray[np.bool_]:
    x = column.numbers
    none = np.zeros(len(x), dtype=bool)
    negative = x < 0
    coded = np.isin(x, LOW_CODES)
    if not negative.any():
        return none
    if np.all(coded[negative]) and negative.sum() <= _MANY_NEGATIVES:
        others = x[~negative]
        if len(others) < 2 or _is_symmetric(x):
            return none
        if column.all_whole or _stand_apart(column, negative):
            return negative
    # Values below zero are normal here: only what lies far below them all can be a code.
    alone = negative.sum() == 1 and column.counts[negative][0] >= LEAST_REPEATED
    return _far(-x, (negative & np.isfinite(x) & alone) | _is_far_code(-x))


def _is_far_code(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers are codes where they lie far from all others."""
    return np.isin(x, HIGH_CODES[HIGH_CODES >= 66]) | ((x >= NOWHERE) & np.isfinite(x))


def _is_symmetric(x: NDArray[np.float64]) -> bool:
    """Return whether the values are a scale around zero, such as -2 to 2."""
    top = x.max()
    return bool(top == -x.min() and top <= 5 and np.all(x == np.floor(x)))


def _stand_apart(column: Profile, codes: NDArray[np.bool_]) -> bool:
    """Return whether whole codes differ from the other, fractional values by more than sign."""
    others = column.numbers[~codes]
    if -column.numbers[codes].max() > np.ptp(others):  # which are not negative
        return True
    counts = column.counts
    if counts[codes].min() >= 3 and counts[codes].min() >= 3 * np.median(counts[~codes]):
        return True
    pointed = column.matches(r"\.")
    mostly_pointed = pointed[~codes].mean() > 0.7
    return column.kind is Kind.TEXT and bool(mostly_pointed and not pointed[codes].any())


def _high_codes(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    answers = _answer_codes(x)
    if answers.any():
        return answers
    return _far(x, _is_far_code(x))


def _piled(column: Profile) -> NDArray[np.bool_]:
    """Return 999 or 9999, the largest of all, where it stands for more cells than what is near it.

    Near is the upper half of the range, where a ceiling that so many cells share has others below.
    """
    x, counts = column.numbers, column.counts
    top = x == x.max()
    near = int(counts[(x > x.max() / 2) & ~top].sum())
    coded = x.max() in PILED_CODES and x.min() >= 0.0 and len(x) >= LEAST_BESIDE_PILE
    return top if coded and counts[top][0] >= PILED * max(near, 1) else top & False


def _answer_codes(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return 9, and 7 and 8 with it, above answers numbered 0 or 1 to at most 6."""
    codes = np.isin(x, (7.0, 8.0, 9.0))
    answers = np.sort(x[~codes])
    if not (x == 9).any() or len(answers) < 2:
        return np.zeros(len(x), dtype=bool)
    numbered = np.array_equal(answers, np.arange(answers[0], answers[0] + len(answers)))
    small = answers[0] in (0, 1) and answers[-1] <= _LARGEST_SMALL_SCALE
    if not (numbered and small and x[codes].min() - answers[-1] >= 3):
        return np.zeros(len(x), dtype=bool)
    return codes


def _far(x: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the candidates farther above all other values than those lie from each other."""
    codes = candidates.copy()
    while codes.any():
        others = x[~codes]
        # Halved, since the difference of two doubles may be none.
        if len(others) >= 3 and x[codes].min() / 2 - others.max() / 2 > np.ptp(others / 2):
            return codes
        # The lowest candidate may be an ordinary value under a higher code.
        codes &= x > x[codes].min()
    return codes
