"""Which unobserved cells to ask for next: those that tell most, given each other."""

from __future__ import annotations

from glfm_cli.acquisition.suggest import (
    COUNT,
    Suggestion,
    check_wish,
    finish,
    plan_matrix_cells,
    plan_table_cells,
    suggest,
    with_fit,
)

__all__ = [
    "COUNT",
    "Suggestion",
    "check_wish",
    "finish",
    "plan_matrix_cells",
    "plan_table_cells",
    "suggest",
    "with_fit",
]
