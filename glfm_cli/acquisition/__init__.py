"""Which unobserved cells to ask for next: those that tell most, given each other."""

from glfm_cli.acquisition.suggest import COUNT, Choice, Suggestion, suggest
