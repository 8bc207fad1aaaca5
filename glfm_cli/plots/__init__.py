"""Figures of results. The one home of matplotlib: import this room only to draw.

Figures are made through `Figure` itself, never through pyplot, so nothing is shown, kept or
shared between threads. Neither the time nor a random number enters a file: the same result gives
the same bytes.
"""

from glfm_cli.plots.completion import plot_completion
from glfm_cli.plots.diagnosis import plot_diagnosis
from glfm_cli.plots.evaluation import plot_evaluation
from glfm_cli.plots.exploration import (
    pages_of_columns,
    plot_columns,
    plot_dependence,
    plot_exploration,
    plot_fit,
    plot_shares,
    plot_traces,
)
from glfm_cli.plots.map import palette, plot_map, shades_of
from glfm_cli.plots.style import address_of, check_figure, embedded
from glfm_cli.plots.tasks import plot_tasks
