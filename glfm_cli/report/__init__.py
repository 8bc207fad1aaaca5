"""Results as pages to send to a colleague: one HTML file each, nothing loaded from elsewhere."""

from glfm_cli.report.evaluation import write_evaluation
from glfm_cli.report.exploration import write_exploration
from glfm_cli.report.map import write_map
