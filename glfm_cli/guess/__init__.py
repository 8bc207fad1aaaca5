"""A first types file, guessed from a table, each guess with its reason."""

from glfm_cli.guess.guess import guess_features, guess_schema
from glfm_cli.guess.types_file import Guess
