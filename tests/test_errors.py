"""An error says the same on the command line and in Python, each in its own words."""

from __future__ import annotations

import pickle

import pytest

from glfm_cli.errors import TableError, UsageError


@pytest.mark.parametrize(
    ("on_the_command_line", "in_python"),
    [
        ("Raise --draws or --chains.", "Raise draws or chains."),
        ("use --chains 8", "use chains=8"),
        ("add --all-pairs, or --pairs FILE.csv.", "add all_pairs, or pairs=FILE.csv."),
        ("Use --model glfm or bsvd.", 'Use model="glfm" or bsvd.'),
        ("--engine is for chains", "engine is for chains"),
        ("--model cannot be used here", "model cannot be used here"),
        ("--learn-rows auto learns", 'learn_rows="auto" learns'),
        ("--set alhpa: no such setting", 'settings["alhpa"]: no such setting'),
        ("raise it with --set max_features=9", 'raise it with settings={"max_features": 9}'),
        ("Leave --set out", "Leave settings out"),
        ("Continue it with --resume a.glfm, or", 'Continue it with resume="a.glfm", or'),
        ("Continue with --resume 'my b.glfm'.", 'Continue with resume="my b.glfm".'),
        ("--resume needs --output", "resume needs output"),
        ("--resume and --save cannot", "resume and save cannot"),
        ("`glfm types a.csv -o t.yaml --sample 5` writes", None),
        ("a dash - or two -- in a text, and 3--4", None),
    ],
)
def test_options_are_arguments_in_python(on_the_command_line: str, in_python: str | None) -> None:
    error = UsageError(on_the_command_line)
    assert error.message() == on_the_command_line
    assert str(error) == (in_python or on_the_command_line)


def test_python_says_what_where_and_the_mend_in_one_line() -> None:
    error = TableError(file="a.csv", row=3, column="x", value="?", expected="a number", hint="Go.")
    assert str(error) == "a.csv, column 'x', row 3: found ?, expected a number. Go."


def test_an_error_comes_whole_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(TableError("bad", file="a.csv", row=3, hint="Mend it.")))
    assert (error.message(), error.hint, error.row) == ("a.csv, row 3: bad", "Mend it.", 3)
