"""Two levels without an order, in a matrix: x is which side of 0 y ~ N(eta, 1) lies on.

The same law as `CategoricalLink`'s of two levels, whose reference keeps a utility of its own beside
y: given y alone components are found much later.
"""

from __future__ import annotations

from glfm_cli.links.ordinal import OrdinalLink


class BinaryLink(OrdinalLink):
    """An ordinal column of two levels, whose codes are no order."""

    ordered = False
