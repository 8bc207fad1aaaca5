"""What all figures share: colours, matplotlib's settings, how numbers read, how files are written.

The colours are those of Okabe and Ito, told apart with every common kind of colour blindness; in
print without colour they differ in lightness and form (area, line, tick).
"""

from __future__ import annotations

import base64
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from glfm_cli.arrays import Array
from glfm_cli.errors import OutputError
from glfm_cli.exploration.words import differing
from glfm_cli.io import atomic_write
from glfm_cli.io.files import check_writable
from glfm_cli.schema import Column

DPI = 150
FORMATS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

OBSERVED = "#c3c8ce"
PREDICTED = "#0072b2"
PUT_IN = "#d55e00"
CHAINS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#999999")
TEXT = "#222222"
FAINT = "#666666"

_FAMILY = "DejaVu Sans"
PLAIN = FontProperties(family=_FAMILY, size=8.5)
SMALL = FontProperties(family=_FAMILY, size=8)
TITLE = FontProperties(family=_FAMILY, size=8.5, weight="bold")
_LACKING = "Glyph .* missing from font"  # a warning
_LONGEST = 200  # letters of a name, label or level that are looked at

# What a user's own settings must not change, and what keeps the bytes of a file the same.
_STYLE: Any = {
    "font.family": [_FAMILY],
    "font.size": PLAIN.get_size_in_points(),
    "text.usetex": False,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.color": TEXT,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": TEXT,
    "axes.linewidth": 0.6,
    "axes.facecolor": "white",
    "figure.facecolor": "white",
    "savefig.facecolor": "auto",
    "savefig.bbox": None,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "svg.hashsalt": "glfm",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
_NO_TIME: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


def check_figure(path: str | os.PathLike[str]) -> None:
    """Raise OutputError when the suffix names no format of figures, or nothing can be written."""
    if Path(path).suffix.lower() not in FORMATS:
        raise OutputError(
            "the name does not tell the figure's format",
            file=str(path),
            expected=f"a name ending in {', '.join(FORMATS)}",
        )
    check_writable(path)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with our own settings; a letter the font lacks becomes a box, without a warning."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_LACKING)
        yield


def finished(draw: Callable[[], Figure], path: str | os.PathLike[str] | None) -> Figure:
    """Return the figure that `draw` makes, written to `path` unless that is None.

    Raises OutputError: the suffix names no format, or the file cannot be written.
    """
    if path is not None:
        check_figure(path)
    with drawing():
        figure = draw()
        if path is not None:
            save(figure, path)
    return figure


def sheet(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, with some room between its panels."""
    layout = ConstrainedLayoutEngine(h_pad=0.07, hspace=0.03)
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def says_nothing(figure: Figure, words: str) -> Figure:
    """Return a figure with words in place of panels."""
    figure.text(0.5, 0.5, words, ha="center", color=TEXT)
    return figure


def titled(axes: Axes, title: str, text: str) -> None:
    """Write a title above a panel, and a line in small letters below it."""
    axes.set_title(title, loc="left", fontproperties=TITLE, pad=14)
    subtitle(axes, text)


def subtitle(axes: Axes, text: str) -> None:
    """Write a line in small letters between a panel and its title."""
    axes.annotate(
        text,
        (0, 1),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontproperties=SMALL,
        color=FAINT,
    )


def open_frame(axes: Axes) -> None:
    """Leave out the upper and the right line around a panel, and make its ticks short."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2.5, width=0.6)


def bars_of_shares(axes: Axes, most: float) -> None:
    """Make the axes of lying bars: the first on top, shares in percent up to `most`."""
    axes.invert_yaxis()
    axes.set_xlim(0, max(0.01, min(1.0, 1.08 * most)))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(percent))
    axes.tick_params(axis="y", length=0)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure, in the format of the suffix; the file is there only when complete."""
    kind = FORMATS[Path(path).suffix.lower()]
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata=_NO_TIME[kind])
    with atomic_write(path) as file:
        file.write(drawn.getvalue())


_MEDIA = {"svg": "image/svg+xml", "png": "image/png"}


def embedded(figure: Figure, kind: str = "svg") -> str:
    """Return a figure as a `data:` address that a page can show without another file.

    `kind` is "svg", sharp at any size, or "png", much smaller for a page of many figures.
    """
    drawn = io.BytesIO()
    with drawing():
        figure.savefig(drawn, format=kind, metadata=_NO_TIME[kind])
    return address_of(drawn.getvalue(), kind)


def address_of(content: bytes, kind: str) -> str:
    """Return the `data:` address of a drawn figure's file, an "svg" or a "png" one."""
    return f"data:{_MEDIA[kind]};base64,{base64.b64encode(content).decode()}"


def short(text: str, width: float, font: FontProperties, tail: str = "") -> str:
    """Return text and tail on one line, the end of text left out where both are too wide.

    width : in points
    """
    text = " ".join(text[:_LONGEST].split())
    if width_of(text + tail, font) <= width:
        return text + tail
    while text and width_of(f"{text}…{tail}", font) > width:
        text = text[:-1]
    return f"{text}…{tail}"


def squeezed(text: str, width: float, font: FontProperties, tail: str = "") -> str:
    """Return text and tail on one line, letters of the text's middle left out where too wide.

    Names often differ only at their ends. `width` is in points.
    """
    text = " ".join(text[:_LONGEST].split())
    if len(text) <= 2 or width_of(text + tail, font) <= width:
        return text + tail

    def shown(letters: int) -> str:
        return f"{text[: letters - letters // 2]}…{text[-(letters // 2) :]}{tail}"

    fits, not_fit = 2, len(text)  # letters
    while not_fit - fits > 1:
        letters = (fits + not_fit) // 2
        if width_of(shown(letters), font) <= width:
            fits = letters
        else:
            not_fit = letters
    return shown(fits)


def distinct(texts: Sequence[str], width: float, font: FontProperties) -> list[str]:
    """Return every text squeezed, each in a way that tells it from the others where one can.

    Of texts that would come out the same, "grade 1 of the scale" and "grade 2 of the scale", the
    words that they begin and end with in common are left out: "…1…" and "…2…".
    """
    shown = [squeezed(text, width, font) for text in texts]
    for same in [
        [i for i, one in enumerate(shown) if one == text] for text in dict.fromkeys(shown)
    ]:
        if len(same) > 1:
            for i, text in zip(same, differing([texts[i] for i in same]), strict=True):
                shown[i] = squeezed(text, width, font)
    return shown


def in_two_lines(text: str, width: float, font: FontProperties) -> list[str]:
    """Return text in up to two lines, broken between words, each at most `width` points."""
    words = text[:_LONGEST].split()
    fitting = [n for n in range(len(words) + 1) if width_of(" ".join(words[:n]), font) <= width]
    first = max(fitting[-1], 1)
    halves = (words[:first], words[first:])
    return [short(" ".join(half), width, font) for half in halves if half]


def width_of(text: str, font: FontProperties) -> float:
    """Return how wide a text is, in points; a letter the font lacks is as wide as its box."""
    with warnings.catch_warnings():  # texts are measured before there is a figure, too
        warnings.filterwarnings("ignore", message=_LACKING)
        return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def words_of(column: Column) -> str:
    """Return label and unit of a column, empty where it has neither."""
    unit = f" ({column.unit})" if column.label and column.unit else column.unit or ""
    return (column.label or "") + unit


def plain(value: float, _: object = None) -> str:
    """Return a number as people write it; a formatter of ticks."""
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.6g}")


def percent(value: float, _: object = None) -> str:
    """Return a share in percent; a formatter of ticks."""
    return f"{100 * value:.3g} %"


def spread(sample: Array, at_most: int) -> Array:
    """Return a sample, or evenly spaced members of it when there are more than `at_most`."""
    if sample.size <= at_most:
        return sample
    return sample[np.linspace(0, sample.size - 1, at_most).round().astype(int)]
