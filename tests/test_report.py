"""Pages of results: one file, nothing loaded, usable in a browser at any width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from glfm_cli import evaluate, explore
from glfm_cli.report import page as parts
from glfm_cli.report import write_evaluation, write_exploration

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDS_BROWSER = pytest.mark.skipif(BROWSER is None, reason="needs Debian's chromium")
NAME = "a <b>name</b> & a rather long one, as long as questions of a survey are"

# Run at the end of a page, in a copy of it that allows scripts: what came of sorting and of width.
PROBE = """
<script>
const out = {};
out.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const button = [...document.querySelectorAll("th button")].find((b) => b.textContent === "share");
const cells = () => [...button.closest("table").tBodies[0].rows].map(
  (tr) => Number(tr.cells[button.parentElement.cellIndex].dataset.value));
button.focus();
out.focused = document.activeElement === button;
button.click(); out.up = cells();
button.click(); out.down = cells();
out.aria = button.parentElement.getAttribute("aria-sort");
out.inner = innerWidth;
parent.postMessage(JSON.stringify(out), "*");
</script>
"""


@pytest.fixture(scope="module")
def page(seed: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = pa.table(
        {
            "size": [1.0, 2.0, 9.0, 8.5, None, 1.5, 9.5, 2.2] * 8,
            "kind": ["a", "a", "b", "b", "b", "a", None, "a"] * 8,
            NAME: [float(i % 7) for i in range(64)],
        }
    )
    types = {"columns": {"size": "positive", "kind": "categorical", NAME: "real"}}
    found = explore(
        table, types, chains=3, warmup=15, draws=4, threads=1, seed=seed,
        surprising=3, similar=2, dependence=True, settings={"initial_features": 4},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_exploration(found, path, name=NAME)
    return path


def test_a_page_loads_nothing(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", text) == []
    assert "default-src 'none'" in text
    assert page.stat().st_size < 3_000_000


def test_names_are_text_and_not_markup(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<b>name" not in text
    assert "a &lt;b&gt;name&lt;/b&gt; &amp; a rather" in text


def test_every_section_is_there_and_linked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    keys = ["overview", "features", "patterns", "columns", "rows", "dependence"]
    keys += ["missing", "convergence", "settings"]
    for key in keys:
        assert f'href="#{key}"' in text
        assert f'id="{key}"' in text
    assert "glfm explore" in text
    assert "--set initial_features=4" in text
    assert "<summary>TYPES.yaml</summary><pre><code>glfm: 1" in text


def test_tables_sort_only_where_asked() -> None:
    plain = parts.table(["a"], [["1"]])
    assert "<button" not in plain
    assert "data-value" not in plain
    sortable = parts.table(["a"], [[("1 %", 0.01)]], sortable=True)
    assert '<td data-value="0.01">1 %</td>' in sortable
    assert "<script" not in parts.page("x", [plain])
    assert "script-src" not in parts.page("x", [plain])


def browse(path: Path, width: int) -> tuple[str, str]:
    """Return the DOM of a page after its scripts ran, and what the browser said."""
    assert BROWSER is not None
    done = subprocess.run(
        [
            BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--window-size={width},900", "--enable-logging=stderr", "--log-level=0",
            "--virtual-time-budget=2000", f"--user-data-dir={path.parent / 'profile'}",
            "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr


@NEEDS_BROWSER
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_and_sorts_the_page(page: Path, tmp_path: Path, width: int) -> None:
    _, said = browse(page, width)
    assert "CONSOLE" not in said
    text = page.read_text(encoding="utf-8")
    copy = tmp_path / "copy.html"
    open_to_scripts = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", text)
    copy.write_text(open_to_scripts.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    # A window of the browser cannot be as narrow as a telephone; a frame can.
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<script>onmessage = (told) => { document.title = told.data; }</script>"
        f'<iframe src="copy.html" style="width:{width}px;height:800px;border:0"></iframe>',
        encoding="utf-8",
    )
    dom, said = browse(frame, 1400)
    assert "CONSOLE" not in said
    title = re.search(r"<title>(\{.*?\})</title>", dom)
    assert title is not None, dom[:500]
    seen = json.loads(title[1])
    assert seen["inner"] == width
    assert seen["wide"] <= 0
    assert seen["focused"]
    assert seen["up"] == sorted(seen["up"])
    assert seen["down"] == sorted(seen["up"], reverse=True)
    assert seen["aria"] == "descending"


def test_the_page_of_an_evaluation_is_one_file(sample_data: Path, tmp_path: Path) -> None:
    done = evaluate(
        sample_data / "messy.csv", sample_data / "messy.types.yaml", methods=["mean", "draw"],
        rates=[0.3], repeats=2, jobs=1,
    )  # fmt: skip
    write_evaluation(done, tmp_path / "page.html", name="messy")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("<img ") == 1
    assert text.count('src="data:image/svg+xml;base64,') == 1
    assert "http://" not in text
    assert "https://" not in text
