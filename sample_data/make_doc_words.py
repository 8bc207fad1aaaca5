"""Write doc_words.csv: how often words occur in the sections of this project's documentation.

    cd sample_data && python make_doc_words.py

A section is what stands below a heading of a Markdown file in docs/, without examples and
tables' rules; words are of three letters or more, in lower case, and occur in five sections or
more. The table is that of the documentation when it was last run.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

LEAST_SECTIONS = 5  # that a word occurs in
LEAST_WORDS = 15  # that a section has
COMMON = """
the and that for are with not has have from its which each they their them than this these those
what where when how who whom there then were was been being but can may must will would all any
both one two three other others more most least less own such same only also into out over under
between about below above after before does did done had his her you your our
"""


def sections(path: Path) -> dict[str, str]:
    """Return the text of each section by the file's name and its heading."""
    text = re.sub(r"```.*?```", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    found, name = {}, path.stem
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE):
        heading, _, body = part.partition("\n")
        found[f"{name}: {heading.strip()}"] = f"{heading} {body}"
    return found


def words(text: str) -> Counter[str]:
    """Return how often each word occurs; names of files and options are no words."""
    prose = re.sub(r"\]\([^)]*\)|`[^`]*`|<!--.*?-->", " ", text)
    found = re.findall(r"[a-z]{3,}", prose.lower())
    return Counter(word for word in found if word not in COMMON.split())


def main() -> None:
    docs = Path(__file__).resolve().parent.parent / "docs"
    counted = {}
    for path in sorted(docs.rglob("*.md")):
        counted |= {name: words(text) for name, text in sections(path).items()}
    counted = {name: found for name, found in counted.items() if found.total() >= LEAST_WORDS}
    within = Counter(word for found in counted.values() for word in found)
    with Path("doc_words.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["section", "word", "count"])
        for name, found in counted.items():
            kept = sorted(word for word in found if within[word] >= LEAST_SECTIONS)
            writer.writerows([name, word, found[word]] for word in kept)


if __name__ == "__main__":
    main()
