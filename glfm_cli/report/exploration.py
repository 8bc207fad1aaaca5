"""The page of an exploration."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import glfm_cli.plots as plots
import glfm_cli.report.page as parts
from glfm_cli import __version__
from glfm_cli.exploration import (
    ComponentExploration,
    Exploration,
    Explored,
    FactorExploration,
    Feature,
    agreement_line,
    convergence_line,
    remainder_line,
    sample_line,
    shared_words,
)
from glfm_cli.exploration import tables as tidy
from glfm_cli.exploration.lines import missing_line, no_feature_line
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.shared import SharedByRows
from glfm_cli.exploration.shared_tables import loadings, together
from glfm_cli.exploration.words import (
    cell_text,
    in_words,
    left_out,
    named,
    number,
    percent,
    typical,
    with_error,
)

MOST_FIGURES = 40  # columns with a figure of their own
_MOST_PAIRS = 2000
_FACTORS = "Shares of components, their correlations, and their leading columns"
_COMPONENTS = "Shares of components and of variance, leading columns, and the chains"
_SEEN = "Features, patterns, columns they move, and the chains"
_LONGEST = 30  # letters of a column's name in the table of typical rows
_LETTERS = 14  # of a line there
_MOST_SHARES = 60  # levels of a column whose patterns are drawn level by level


def write_exploration(
    found: Exploration | ComponentExploration | FactorExploration,
    *paths: str | os.PathLike[str],
    name: str,
    drawn: Mapping[str, Path] | None = None,
) -> None:
    """Write an exploration as an HTML file that needs no other.

    *paths : one or more files to write it to; each is replaced only when complete
    name : of the table, in the title
    drawn : figures that are PNG files already: "overview", "traces", "fit", "dependence", and
        "shares N" for column N of the table

    Raises OutputError: a file cannot be written.
    """
    drawn = drawn or {}
    if isinstance(found, Exploration):
        sections = _of_features(found, drawn)
    elif isinstance(found, FactorExploration):
        sections = _of_factors(found, drawn)
    else:
        sections = _of_components(found, drawn)
    title = f"What structure is in {name}"
    parts.save(parts.page(title, parts.in_sections(sections), sortable=True), *paths)


def _of_features(found: Exploration, drawn: Mapping[str, Path]) -> list[parts.Section]:
    return [
        ("overview", "Overview", _overview(found, drawn)),
        ("features", "Features", _features(found)),
        ("patterns", "Patterns", _patterns(found)),
        ("shared", "Groups and time", _shared(found.shared)),
        ("columns", "Columns", _columns(found, drawn)),
        ("rows", "Rows", _rows(found)),
        ("dependence", "Dependence", _dependence(found, drawn)),
        ("missing", "Missing cells", _missing(found)),
        ("convergence", "Convergence", _convergence(found, drawn)),
        ("settings", "Settings", _settings(found)),
    ]


def _of_factors(found: FactorExploration, drawn: Mapping[str, Path]) -> list[parts.Section]:
    tables, n_chains = found.tables(), len(found.posterior.chains)
    facts = [
        f"{len(found.rows):,} rows, {len(found.columns):,} columns; {n_chains} restarts, "
        f"{found.seconds:.1f} s.",
        found.diagnostics.summary(),
        *found.warnings,
    ]
    overview = _figure(drawn, "overview", partial(plots.plot_exploration, found), _FACTORS)
    sections: list[parts.Section] = [
        ("overview", "Overview", [parts.bullets(facts), overview]),
        ("components", "Components", [_arrow(tables["components"])]),
    ]
    if found.pairs:
        sections.append(("pairs", "Correlations", [_arrow(tables["pairs"].slice(0, _MOST_PAIRS))]))
    return [*sections, ("settings", "Settings", _settings(found))]


def _of_components(found: ComponentExploration, drawn: Mapping[str, Path]) -> list[parts.Section]:
    summary, tables = found.to_dict(), found.tables()
    facts = [
        f"{summary['rows']:,} rows, {summary['columns']:,} columns; {summary['chains']} chains "
        f"with {summary['draws']} draws in all, {found.seconds:.1f} s.",
        found.diagnostics.summary(),
        *found.warnings,
    ]
    overview = _figure(drawn, "overview", partial(plots.plot_exploration, found), _COMPONENTS)
    leading = [
        [c.name, *(", ".join(n for n, *_ in found.leading(c, side)) for side in ("column", "row"))]
        for c in found.components
    ]
    sections: list[parts.Section] = [
        ("overview", "Overview", [parts.bullets(facts), overview]),
        ("components", "Components", [_arrow(tables["components"])]),
        (
            "leading",
            "Leading columns and rows",
            [parts.table(["component", "columns", "rows"], leading)],
        ),
    ]
    titles = {
        "goes_with": "Covariates that components go with",
        "explained": "Explained by other columns",
    }
    for name in ("goes_with", "variance", "explained", "covariates", "rank"):
        if name in tables:
            sections.append((name, titles.get(name, name.capitalize()), [_arrow(tables[name])]))
    sections.append(("shared", "Groups and time", _shared(found.shared)))
    convergence = [parts.paragraph(found.diagnostics.summary()), _quantities(found)]
    sections.append(("convergence", "Convergence", convergence))
    return [*sections, ("settings", "Settings", _settings(found))]


def _figure(
    drawn: Mapping[str, Path], key: str, draw: Callable[[], Any], text: str, *, broad: bool = True
) -> str:
    """Return a figure, drawn now unless there is a file of it."""
    there = drawn.get(key)
    address = (
        plots.embedded(draw(), "png")
        if there is None
        else plots.address_of(there.read_bytes(), "png")
    )
    return parts.figure(address, text, broad=broad)


def _overview(found: Exploration, drawn: Mapping[str, Path]) -> list[str]:
    n_chains = len(found.posterior.chains)
    facts = [
        f"{found.data.n_rows:,} rows, {len(found.scales)} modelled columns; {n_chains} chains with "
        f"{found.posterior.n_draws} draws in all, {found.seconds:.1f} s.",
        sample_line(found),
        agreement_line(found),
        *found.warnings,
    ]
    if found.stopped:
        facts.append(f"Sampling ended early: {found.stopped}.")
    return [
        parts.bullets(facts),
        _figure(drawn, "overview", partial(plots.plot_exploration, found), _SEEN),
    ]


def _features(found: Exploration) -> list[str]:
    if not found.features:
        line = remainder_line(found)
        return [parts.paragraph(text) for text in (no_feature_line(found), line) if text]
    rows: list[list[parts.Cell]] = []
    for one in found.features:
        halves = "" if math.isnan(one.halves) else with_error(one.halves, one.halves_error)
        stability = with_error(one.stability, one.stability_error), one.stability
        shares = [_share(x) for x in (one.share, one.explained)]
        half = halves, _or_none(one.halves)
        rows.append([_word(one.name), *shares, stability, half, found.in_words(one)])
    words = "its rows against the others"
    header = ["feature", "rows", "explains", "stability", "in halves", words]
    made = [parts.table(header, rows, sortable=True)]
    line = remainder_line(found)
    if line:
        made.append(parts.paragraph(line))
    made += [parts.folded(f"All effects of {f.name}", [_effects(f)]) for f in found.features]
    made.append(
        parts.paragraph(
            "Rows: the share of rows that have the feature. Explains: its part of what all "
            "features explain. Stability: the share of the draws of other chains in which much the "
            "same rows have a feature in common, with its standard error. In halves: the same, of "
            "chains that saw half of the rows. A column of rows with and without a feature is "
            "compared where its other columns, and draws of other rows, say who has it.",
            faint=True,
        )
    )
    return made


def _effects(feature: Feature) -> str:
    rows: list[list[parts.Cell]] = []
    for effect in feature.effects:
        credible, z = _word("yes" if effect.credible else "no"), (number(effect.z), abs(effect.z))
        name, size = _word(effect.scale.name), _share(effect.size)
        rows.append([name, size, z, credible, in_words(effect)])
    return parts.table(["column", "moved", "z", "beyond chance", "how"], rows, sortable=True)


def _patterns(found: Exploration) -> list[str]:
    rows: list[list[parts.Cell]] = []
    for one in found.top_patterns:
        numbers = map(_share, (one.share, one.cumulative, one.stability))
        n = str(one.rows.size), one.rows.size
        rows.append([_word(one.name), found.features_on(one), n, *numbers])
    header = ["pattern", "features", "rows", "share", "cumulative", "stability"]
    made = [parts.table(header, rows, sortable=True)]
    others = len(found.patterns) - len(found.top_patterns)
    if others:
        made.append(parts.paragraph(f"and {others} more pattern{'s' if others > 1 else ''}."))
    made += [parts.heading("Typical rows", level=3), _typical(found)]
    made.append(
        parts.paragraph("The mean, or the likeliest level with its probability.", faint=True)
    )
    return made


def _typical(found: Exploration) -> str:
    place = {scale.d: i for i, scale in enumerate(found.scales)}
    rows = []
    for scale in found.columns:
        i = place[scale.d]
        profiles = found.baseline[i], *(pattern.typical[i] for pattern in found.top_patterns)
        rows.append(
            [named(scale, _LONGEST), *(typical(scale, profile, _LETTERS) for profile in profiles)]
        )
    shown = parts.table(["column", "all rows", *(p.name for p in found.top_patterns)], rows)
    return shown + (parts.paragraph(text) if (text := left_out(found.columns)) else "")


def _columns(found: Exploration, drawn: Mapping[str, Path]) -> list[str]:
    made = []
    for scale in found.columns[:MOST_FIGURES]:
        made += [parts.heading(scale.name, level=3), *_column(found, scale, drawn)]
    left = [scale.name for scale in found.columns[MOST_FIGURES:]]
    if left:
        made.append(parts.paragraph(f"Without a figure of their own: {', '.join(left)}."))
    return made


def _column(found: Exploration, scale: Scale, drawn: Mapping[str, Path]) -> list[str]:
    column, observed = scale.encoded.column, int(scale.encoded.observed.sum())
    words = [str(column.type), f"{observed:,} of {found.data.n_rows:,} cells observed"]
    if column.label:
        words.insert(0, column.label)
    alone = plots.plot_columns(found, columns=[scale.name])
    made = [
        parts.paragraph("; ".join(words), faint=True),
        parts.figure(
            plots.embedded(alone, "png"), f"{scale.name} under each pattern, and in all rows"
        ),
    ]
    if 1 < len(scale.encoded.levels) <= _MOST_SHARES:
        draw = partial(plots.plot_shares, found, scale.name)
        text = f"Share of each pattern in the rows of each level of {scale.name}"
        shares = _figure(drawn, f"shares {scale.d + 1}", draw, text, broad=False)
        made.append(parts.folded("Patterns by level", [shares]))
    return made


def _rows(found: Exploration) -> list[str]:
    made = []
    if found.surprising is not None:
        made += [
            parts.heading("The least expected cells", level=3),
            _arrow(tidy.surprising_cells(found)),
        ]
        made += [
            parts.heading("The least expected rows", level=3),
            _arrow(tidy.surprising_rows(found)),
        ]
    if found.similar is not None:
        title = f"The rows most like row {found.similar.row + 1}"
        made += [parts.heading(title, level=3), _arrow(tidy.similar(found))]
    return made


def _dependence(found: Exploration, drawn: Mapping[str, Path]) -> list[str]:
    if found.dependence is None or len(found.scales) < 2:
        return []
    text = "Mutual information of columns"
    return [
        _figure(drawn, "dependence", partial(plots.plot_dependence, found), text),
        parts.folded("As a table", [_arrow(tidy.dependence(found))]),
    ]


def _shared(found: SharedByRows | None) -> list[str]:
    if found is None:
        return []
    header, rows = shared_words.part_rows(found)
    made = [parts.paragraph(f"{shared_words.PARTS}."), parts.table(["column", *header], rows)]
    if found.clock is None:
        return made
    if not found.series:
        return [*made, parts.paragraph(shared_words.NO_SERIES)]
    header = ["series", "share", "stability", shared_words.MOVES]
    rows = shared_words.series_rows(found)
    made += [parts.paragraph(f"{shared_words.SERIES}."), parts.table(header, rows)]
    tables = (
        ("What series do to pairs of columns", together(found)),
        ("All loadings", loadings(found)),
    )
    return made + [parts.folded(title, [_arrow(table)]) for title, table in tables]


def _missing(found: Exploration) -> list[str]:
    one = found.missing
    missing_cells = [i for i in range(len(one.names)) if one.share[i] > 0]
    words = parts.paragraph(f"{percent(one.complete)} of the rows have no missing cell.")
    if not missing_cells:
        return [words]
    rows = [[_word(one.names[i]), _share(float(one.share[i]))] for i in missing_cells]
    made = [words, parts.table(["column", "missing"], rows, sortable=True)]
    made += [parts.paragraph(line) for line in (missing_line(found),) if line]
    pairs = [
        (a, b)
        for k, a in enumerate(missing_cells)
        for b in missing_cells[k + 1 :]
        if one.together[a, b] > 0
    ]
    pairs.sort(key=lambda pair: -one.phi[pair])
    if pairs:
        together: list[list[parts.Cell]] = []
        for a, b in pairs:
            phi, names = float(one.phi[a, b]), (_word(one.names[a]), _word(one.names[b]))
            together.append([*names, _share(float(one.together[a, b])), (f"{phi:.2f}", phi)])
        header = ["column", "other", "both missing", "correlation"]
        inside = parts.table(header, together, sortable=True)
        made.append(parts.folded("Columns that miss together", [inside]))
    return made


def _quantities(found: Explored) -> str:
    """Return the table of what was watched."""
    rows: list[list[parts.Cell]] = []
    for one in found.diagnostics:
        numbers = map(_or_none, (one.rhat, one.ess_bulk, one.ess_tail, one.mean, one.sd))
        rows.append([_word(_label(found, one.name)), *((cell_text(x), x) for x in numbers)])
    header = ["quantity", "R-hat", "bulk ESS", "tail ESS", "mean", "sd"]
    return parts.table(header, rows, sortable=True)


def _convergence(found: Exploration, drawn: Mapping[str, Path]) -> list[str]:
    return [
        parts.paragraph(convergence_line(found)),
        _figure(drawn, "traces", partial(plots.plot_traces, found), "Traces of the chains"),
        _quantities(found),
        parts.folded(
            "Pseudo-observations of numeric columns, and the density fitted to them",
            [
                _figure(
                    drawn, "fit", partial(plots.plot_fit, found), "Histograms and fitted densities"
                )
            ],
        ),
    ]


def _label(found: Explored, name: str) -> str:
    """Return a traced quantity by the name of its column."""
    head, _, tail = name.rpartition("_")
    if head == "noise":
        return f"noise of {found.data.columns[int(tail)].column.name}"
    return name.replace("_", " ")


def _settings(found: Explored) -> list[str]:
    rows = []
    for key, value in found.options.items():
        if isinstance(value, dict):
            rows += [[f"--set {name}", str(inner)] for name, inner in value.items()]
        else:
            rows.append([key, "" if value is None else str(value)])
    return [
        parts.table(["option", "value"], rows),
        parts.heading("How to reproduce it", level=3),
        parts.code(command(found)),
        parts.folded("TYPES.yaml", [parts.code(found.schema.to_yaml())]),
        parts.paragraph(f"glfm {__version__}", faint=True),
    ]


def command(found: Explored) -> str:
    """Return the command line that gives this exploration again."""
    options = dict(found.options)
    source = options.pop("source") or "TABLE"
    words = ["glfm", "explore", source]
    settings = options.pop("settings")
    if not source.rstrip("/").endswith(".glfm"):
        words += ["--types", "TYPES.yaml"]
        for name in ("model", "chains", "warmup", "draws", "thin", "seed"):
            words += [f"--{name}", str(options[name])]
        for name, value in settings.items():
            words += ["--set", f"{name}={value}"]
    words += ["--sample", str(options["sample"])] if "sample" in options else []
    words += ["--top", str(options["top"])]
    for name in options.get("columns") or ():
        words += ["--columns", name]
    for name in ("surprising", "similar"):
        words += [f"--{name}", str(options[name])] if options.get(name) else []
    words += ["--dependence"] if options.get("dependence") else []
    words += ["--all-features"] if options.get("all_features") else []
    return " ".join(map(shlex.quote, words))


def _arrow(content: Any) -> str:
    """Return an Arrow table, its numbers rounded."""
    rows = [[(cell_text(x), _key(x)) for x in record.values()] for record in content.to_pylist()]
    return parts.table(content.column_names, rows, sortable=True)


def _word(text: str) -> parts.Cell:
    return text, text


def _share(value: float) -> parts.Cell:
    return percent(value), value


def _key(value: object) -> float | str | None:
    return value if isinstance(value, float | int | str) else cell_text(value)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
