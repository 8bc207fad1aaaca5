"""Settings of the low-rank model (`bsvd`)."""

from __future__ import annotations

from dataclasses import dataclass

from glfm_cli.settings import require_each, require_whole

SMALLEST, LARGEST = 1e-10, 1e10


@dataclass(frozen=True)
class BsvdConfig:
    """Settings of the low-rank model; `--set name=value` reaches each.

    max_components : K, the most components
    initial_components : components that a chain starts with; None: those that births bring
        into a matrix of one kind, or 10 of a table
    candidates : components that are visited in a sweep, to switch them on or off
    on_mass, off_mass : a and b of the prior of a component's being on; their ratio is the expected
        number of components
    scale_shape, scale_rate : gamma prior of alpha I J, the precision of the components' scales
    noise_shape, noise_rate : inverse-gamma prior of the noise variances of real, positive and
        count columns, whose pseudo-observations have variance about 1
    extra_scale : of the half-normal prior of the standard deviation, as a normal score, by which
        the rates of binomial cells vary beside what their rows and columns say
    bias : give every column, and every row of a matrix of one kind, an intercept
    bias_variance : prior variance of the mean of the columns' intercepts, in a matrix of one kind
    intercept_scale : of the half-Cauchy prior of the standard deviation of intercepts
    effect_shape, effect_rate : gamma prior of the precision of the weights of covariates
    prior_means : let covariates set the prior means of factors and intercepts
    own_weights : give every column weights of its own for the covariates of rows, and every row
        for those of columns
    slopes : let each row of a matrix of one kind respond by a factor of its own, 1 + c_i, to what
        the columns' intercepts differ by
    row_noise : give each row of a matrix of one kind, whose values are numbers that fix y, a noise
        variance of its own
    """

    max_components: int = 50
    initial_components: int | None = None
    candidates: int = 10
    on_mass: float = 1.0
    off_mass: float = 1.0
    scale_shape: float = 1.0
    scale_rate: float = 1.0
    noise_shape: float = 2.0
    noise_rate: float = 0.5
    extra_scale: float = 0.5
    bias: bool = True
    bias_variance: float = 10.0
    intercept_scale: float = 1.0
    effect_shape: float = 1.0
    effect_rate: float = 1.0
    prior_means: bool = True
    own_weights: bool = False
    slopes: bool = False
    row_noise: bool = False

    def __post_init__(self) -> None:
        positive = "on_mass off_mass scale_shape scale_rate noise_shape noise_rate extra_scale"
        positive += " bias_variance intercept_scale effect_shape effect_rate"
        expected = "a number from 1e-10 to 1e10"
        require_each(self, positive, lambda value: SMALLEST <= value <= LARGEST, expected)
        most = 10_000
        require_whole(self, max_components=(0, most), initial_components=(0, most))
        require_whole(self, candidates=(1, most))
