"""Links: how the cells of a column are seen as Gaussian pseudo-observations."""

from glfm_cli.links.link import (
    LevelLink,
    Link,
    LinkConfig,
    NumericLink,
    Params,
    make_link,
)

__all__ = ["LevelLink", "Link", "LinkConfig", "NumericLink", "Params", "make_link"]
