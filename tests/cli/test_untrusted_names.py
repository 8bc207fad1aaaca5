"""Names and cells of a table from elsewhere are shown, and never obeyed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from glfm_cli.cli.console import Console

CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAMES = ("\x1b[31mred\x1b[0m", "b\x9b2J", "[red]x[/]", "$\\frac{a$", "\u202ename", ":smile:")
ID = "</script><script>alert(1)</script>"
LEVELS = ("\x1b]0;title\x07", "<b>bold</b>", "[bold]level[/]")
SHORT = ("--model", "glfm", "--chains", "1", "--warmup", "5", "--draws", "5", "--threads", "1")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Write a table whose names and levels are commands to a terminal, a page or a figure."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [[ID, *NAMES, "city"]]
    for i in range(30):
        x = rng.normal(size=len(NAMES)).round(2) + (i % 2) * 5
        cells = ["" if rng.random() < 0.1 else str(one) for one in x]
        rows.append([f"\x1b[{i}m", *cells, LEVELS[i % 3]])
    with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return rows


def test_what_is_shown_commands_nothing(here: Callable, hostile: list[list[str]]) -> None:
    shown = [here("types", "t.csv"), here("types", "t.csv", "-o", "t.yaml")]
    assert shown[0].stdout == Path("t.yaml").read_text("utf-8")
    types = Path("t.yaml").read_text("utf-8").replace(": ignore ", ": id ")
    Path("t.yaml").write_text(types, "utf-8")
    given = ("t.csv", "--types", "t.yaml", *SHORT)
    page = ("--html", "page.html", "--surprising", "3", "--dependence")
    shown.append(here("explore", *given, *page))
    for name in ("[red]x[/]", ":smile:", "\\u202ename", "\\x1b[31m"):
        assert name in shown[-1].stdout
    shown.append(here("impute", *given, "-o", "done.csv", "--save", "f.glfm", "--plot", "p.svg"))
    shown.append(here("diagnose", "f.glfm"))
    shown.append(here("evaluate", *given[:3], *SHORT[2:], "--methods", "glfm", "--repeats", "1"))
    shown.append(here("suggest", *given, "-o", "s.csv"))
    assert [one.status for one in shown] == [0] * len(shown), [one.stderr for one in shown]
    wrong = types.replace('"b\\u009b2J": real', '"b\\u009b2J": {type: real, levels: ["1"]}')
    Path("wrong.yaml").write_text(wrong, "utf-8")
    shown.append(here("impute", "t.csv", "--types", "wrong.yaml", "-o", "none.csv"))
    assert "column 'b\\x9b2J'" in shown[-1].stderr
    for one in shown[1:]:
        assert CONTROL.search(one.stdout + one.stderr) is None
    assert "\x1b" not in shown[0].stdout  # what a terminal would obey
    done = list(csv.reader(Path("done.csv").read_text("utf-8").splitlines()))
    assert done[0] == hostile[0]
    assert [row[0] for row in done] == [row[0] for row in hostile]
    assert "$\\frac{a$" in Path("p.svg").read_text("utf-8")
    scripts: list[str] = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, _: scripts.append(tag)  # type: ignore[method-assign]
    reader.feed(Path("page.html").read_text("utf-8"))
    assert scripts.count("script") == 1
    assert "b" not in scripts


@pytest.mark.parametrize("to_terminal", [False, True])
def test_a_file_is_changed_for_a_terminal_alone(to_terminal: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return to_terminal

    out = Stream()
    Console(stdout=out, stderr=io.StringIO()).file("id\n\x1b[2J\n")
    assert out.getvalue() == ("id\n\\x1b[2J\n" if to_terminal else "id\n\x1b[2J\n")
