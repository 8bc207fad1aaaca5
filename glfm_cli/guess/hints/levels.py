"""Levels that may be one, that may stand for a missing cell, or list several answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import numpy as np

from glfm_cli.guess.codes import is_unanswered
from glfm_cli.guess.names import words
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.verdict import FEW_LEVELS, Verdict
from glfm_cli.schema.text import flow, scalar

LONG_WORD = 4  # letters from which a word may be what a shorter one stands for
MOST_SHOWN = 3
MOST_LISTED = 1000  # different cells that are looked at for lists of answers
ANSWER_MARKS = (";", "|", ",")
_JOINED = re.compile(r"^\s*(?:x|×|/|\+|&|-|and|und|et|y)\s*")
_NEGATIONS = words("not no never nicht kein keine nie ne pas non jamais nunca niet geen não mai")


def several_answers(column: Profile) -> list[str]:
    """Return the note on cells that list one, two, three answers, which recur in other cells."""
    words = column.keep(np.arange(column.n_distinct) < MOST_LISTED).words()
    for mark in ANSWER_MARKS:
        lists = [[part.strip() for part in word.split(mark)] for word in words]
        answers = list(dict.fromkeys(part for one in lists for part in one))
        if {1, 2, 3} <= set(map(len, lists)) and len(answers) < len(lists):
            shown = ", ".join(map(scalar, answers[:MOST_SHOWN]))
            return [
                f"cells list several answers ({shown}, ...): a column of yes and no for each of "
                f"the {len(answers)} would say more"
            ]
    return []


def no_answers(verdict: Verdict) -> list[str]:
    """Return the `missing` of levels that may stand for a missing cell: unknown, don't know."""
    levels = verdict.column.levels or ()
    gone = [level for level in levels if is_unanswered(level)]
    kept = [level for level in levels if level not in gone]
    if not gone or len(kept) < 2:
        return []
    texts = [*(code.text for code in verdict.column.missing), *gone]
    shown = ", ".join(map(scalar, gone))
    return [
        f"{shown} may stand for a missing cell; if so: levels: {flow(kept)}, missing: {flow(texts)}"
    ]


def same_levels(verdict: Verdict, column: Profile) -> list[str]:
    """Return the `aliases` of levels that may be one: f and F, male and M."""
    levels = verdict.column.levels or ()
    if len(levels) > FEW_LEVELS or column.kind is not Kind.TEXT:
        return []
    counts = Counter(dict(zip(column.words(), column.counts.tolist(), strict=True)))
    key = {level: " ".join(level.casefold().split()) for level in levels}
    for word in list(key.values()):
        longer = {w for w in key.values() if w != word and w.startswith(word)}
        longer = {w for w in longer if _NEGATIONS.isdisjoint(w.split())}
        longer = {w for w in longer if not re.search(r"\d", w)}  # PG and PG-13 are two
        # A cross of two others, such as HFxFV, is neither.
        longer = {w for w in longer if _JOINED.sub("", w[len(word) :]) not in key.values()}
        # I, II and III, or A and AB, are no short forms.
        if len(longer) == 1 and word.isalpha() and min(map(len, longer)) >= LONG_WORD:
            (whole,) = longer
            key = {one: whole if was == word else was for one, was in key.items()}
    groups: dict[str, list[str]] = defaultdict(list)
    for level in sorted(levels, key=lambda one: -counts[one]):
        groups[key[level]].append(level)
    alike = {first: others for first, *others in groups.values() if others}
    if not alike:
        return []
    aliases: dict[str, list[str]] = defaultdict(list)
    for text, level in verdict.column.aliases:
        aliases[level].append(text)
    for level, others in alike.items():
        aliases[level] += [text for one in others for text in (one, *aliases.pop(one, ()))]
    matches = ", ".join(f"{o} and {level}" for level, others in alike.items() for o in others)
    kept = [level for level in levels if level in {first for first, *_ in groups.values()}]
    return [
        f"{matches} may be one level; if so: levels: {flow(kept)}, aliases: {flow(dict(aliases))}"
    ]
