"""Chained extra trees: each column is forecast by random trees on all the others.

A step is one of a sampler by chained equations [van Buuren and Groothuis-Oudshoorn 2011]: for a
column with missing cells, trees are grown on the rows where it is observed, and each missing cell
is given the value of a donor, one of the rows in its leaf [Doove and others 2014]. The law of a
cell under a kept draw is not that donor but all members of its leaves, of trees grown for the draw
[Meinshausen 2006]: of numbers a normal of their mean and variance, in leaves and between trees; of
levels the shares of members. Trees of numbers may be grown on what a line leaves over (lines.py).

The equations need not be those of one joint law; what is promised is that forecasts are honest, not
that the chain has a posterior. Every row is left out of some trees: forecasts of an observed cell
are by trees that have not seen it, and by these the variances of a column are scaled.

Extremely randomised trees: [Geurts and others 2006]. Cost of a step: O(T questions n log n) for
each column visited. Memory of a kept draw: about 10 bytes for each tree and observed cell, 28 in
leaves of one member, of at most `rows` in a column, 9 for each cell, and 4 in columns with a line.
"""

from __future__ import annotations

from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.draw import ForestDraw
from glfm_cli.latent.forest.model import Forest

__all__ = ["Forest", "ForestConfig", "ForestDraw"]
