"""Completions that need no fit: no cell is missing."""

from __future__ import annotations

from glfm_cli.completion.files import Files
from glfm_cli.encoding import Data
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.model import Problem
from glfm_cli.options import Saving

UNCHANGED = (
    "no cell is to be completed: the table has no missing cell in the completed columns, "
    "so that no model is fitted (--save DIR.glfm fits one)"
)


def is_needless(data: Data, files: Files, saving: Saving) -> bool:
    """Return whether no cell is missing, and nothing is written that a fit would be needed for."""
    kept = saving.save, saving.resume, files.traces, files.record
    return not data.missing and all(one is None for one in kept)


def without_draws(problem: Problem) -> Posterior:
    """Return a posterior that completes nothing."""
    return Posterior(problem.model, problem.links, spans_of(problem.links), ())
