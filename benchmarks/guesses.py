"""How often does `glfm types` see a column as somebody who knows the table does?

    python benchmarks/guesses.py [FOLDER ...]

FOLDER has tables beside their types files (`NAME.types.yaml`). Also the tables that come with
statsmodels and scikit-learn are judged, by what their descriptions say of each column. A guess is
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
# Grades of cells that a model of the literature takes for categories, and grades taken for numbers.
EITHER = {"bcw": "co", "fair.educ": "no", "wine.quality": "no"}


def main() -> None:
    """Print each wrong guess, and the share of right ones."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    columns = right = 0
    print(f"{'table':22}{'column':22}{'guess':13}{'right':13}reason")
    for name, table, known in [*of_folders(parser.parse_args().folders), *of_libraries()]:
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


def _known(frame: object, letters: str) -> tuple[pa.Table, dict[str, str]]:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table, {
        name: "co" if letter == "b" else letter
        for name, letter in zip(table.column_names, letters, strict=True)
    }


if __name__ == "__main__":
    main()
