"""Explore a table: which groups of rows it has, what marks each, and how sure that is."""

from glfm_cli.exploration.component_result import ComponentExploration
from glfm_cli.exploration.explore import explore, plan_explore
from glfm_cli.exploration.explored import Explored
from glfm_cli.exploration.factors import FactorExploration
from glfm_cli.exploration.features import Feature
from glfm_cli.exploration.files import ExplorationFiles
from glfm_cli.exploration.lines import (
    agreement_line,
    convergence_line,
    remainder_line,
    sample_line,
)
from glfm_cli.exploration.lowrank import Component
from glfm_cli.exploration.map_result import MapExploration, RowMap
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.request import TOP, Request
from glfm_cli.exploration.result import Exploration
