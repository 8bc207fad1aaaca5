"""A first types file, guessed from a table, each guess with its reason."""

from glfm_cli.guess.guess import Guess, guess_features, guess_schema
