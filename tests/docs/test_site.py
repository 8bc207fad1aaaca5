"""The site is whole: its navigation names every page, its links lead somewhere, it builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import REPOSITORY, SITE, reference, text_of

GENERATED = reference.pages()
PAGES = {
    **{
        path.relative_to(SITE).as_posix(): path.read_text(encoding="utf-8")
        for path in SITE.rglob("*.md")
    },
    **GENERATED,
}
WORDS = 1200  # of a page that is read, examples not counted
LISTS = {"bibliography.md", "reference/tables.md", *GENERATED}  # looked up, not read
FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def site() -> dict[str, Any]:
    """Return what `mkdocs.yml` says."""
    return yaml.safe_load(text_of("mkdocs.yml"))


def named(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inside in nav.values():
            yield from named(inside)
    else:
        for inside in nav:
            yield from named(inside)


def anchors(page: str) -> set[str]:
    """Return what headings of a page are called in links, as MkDocs calls them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page), flags=re.MULTILINE):
        name = re.sub(r"[^\w\s-]", "", heading).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", name))
    return found


def links(page: str) -> list[str]:
    """Return the targets of the links and images of a page that stay within the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", FENCED.sub("", page)))
    return [target for target in targets if "://" not in target]


def test_the_navigation_names_every_page_once() -> None:
    assert sorted(named(site()["nav"])) == sorted(PAGES)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_link_of_a_page_leads_to_a_page_an_image_or_a_heading(name: str) -> None:
    for target in links(PAGES[name]):
        path, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if there not in PAGES:
            assert (SITE / there).is_file(), target
            assert there.startswith("images/"), target
        elif anchor:
            assert anchor in anchors(PAGES[there]), target


@pytest.mark.parametrize("name", sorted(set(PAGES) - LISTS))
def test_a_page_is_short(name: str) -> None:
    prose = [line for line in FENCED.sub("", PAGES[name]).splitlines() if line[:1] != "|"]
    assert len(" ".join(prose).split()) <= WORDS


def test_the_readme_fits_two_screens() -> None:
    assert len(text_of("README.md").splitlines()) <= 155


def test_every_image_is_shown() -> None:
    shown = "\n".join([*PAGES.values(), text_of("README.md")])
    there = {path.name for path in (SITE / "images").iterdir()}
    assert sorted(name for name in there if f"images/{name})" not in shown) == []


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{name}" for name in sorted(PAGES))])
def test_benchmarks_that_are_named_take_the_options_that_are_given(name: str) -> None:
    text = text_of(name) if name == "README.md" else PAGES[name.removeprefix("docs/")]
    for script, options in re.findall(r"python (benchmarks/\w+\.py)([^`\n]*)", text):
        source = text_of(script)
        unknown = [each for each in re.findall(r"--[\w-]+", options) if f'"{each}"' not in source]
        assert unknown == [], script


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="MkDocs is not installed")
def test_the_site_builds_without_a_warning_and_needs_no_other_host(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]* src="([^"]+)|<link[^>]* href="([^"]+)',
            page.read_text(encoding="utf-8"),
        )
        assert not [each for each in loaded if re.match("(https?:)?//", "".join(each))], page
