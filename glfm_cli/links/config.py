"""Choices that the links of all columns share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.errors import SchemaError


@dataclass(frozen=True)
class LinkConfig:
    """Choices that all links share.

    link : "scaled" or "paper"; the scale constant of positive and count columns is calibrated, or 1
        as in the original GLFM article, where the model then changes with the unit of a column
    link_noise : variance of the noise added inside the link of real and positive columns, >= 0
    threshold_variance : prior variance of the thresholds of ordinal columns, > 0
    rank_skewness : numeric columns without a `transform` and with a larger absolute skewness are
        mapped to normal scores
    rank_kurtosis : so are those with a smaller kurtosis, but for dates; it is 3 of a normal column
        and 1.8 of a uniform one
    atoms : True gives a value of its own probability, such as 0 of rainfall, a latent column
    recalibrate : True corrects the forecasts of missing cells by those of observed ones, each made
        without the cell
    first_threshold_fixed : True holds the first threshold at 0, right for models with a bias
    """

    link: str = "scaled"
    link_noise: float = 0.0
    threshold_variance: float = 4.0
    rank_skewness: float = 1.0
    rank_kurtosis: float = 2.0
    first_threshold_fixed: bool = True
    atoms: bool = True
    recalibrate: bool = True

    def __post_init__(self) -> None:
        if self.link not in ("scaled", "paper"):
            raise SchemaError("--set link", value=self.link, expected="scaled or paper")
        for field, lowest_allowed in (("link_noise", True), ("threshold_variance", False)):
            value = getattr(self, field)
            if not (np.isfinite(value) and (value >= 0 if lowest_allowed else value > 0)):
                expected = "a number of 0 or more" if lowest_allowed else "a number above 0"
                raise SchemaError(f"--set {field}", value=value, expected=expected)
        for field in ("rank_skewness", "rank_kurtosis"):
            if np.isnan(getattr(self, field)):
                raise SchemaError(f"--set {field}", value="nan", expected="a number")
