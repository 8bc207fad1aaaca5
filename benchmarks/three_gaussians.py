"""The example of [iQGME section 3.5.1]: three Gaussians, in each another line between two labels.

    python benchmarks/three_gaussians.py [--rows 600] [--hidden 0] [--seed 0] [--figure PNG]

Draws rows from the thesis' three Gaussians, labels them by which side of their Gaussian's line they
lie on, fits the classifier and prints the experts that it finds beside the truth; the figure is
like figures 3.2 and 3.4 of the thesis: the rows and the true lines, the probability that the model
gives to a label in each place, with the experts and their own lines, and the experts' weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from glfm_cli import GlfmClassifier
from glfm_cli.plots.style import PREDICTED, PUT_IN, TEXT, TITLE, drawing, save

Array = np.ndarray[Any, Any]

MEANS = np.array([[-3.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
OUTER = [[0.52, -0.36], [-0.36, 0.73]]
COVARIANCES = np.array([OUTER, [[0.47, 0.19], [0.19, 0.7]], OUTER])
SLOPES, HEIGHTS = np.array([0.75, -0.58, 0.75]), np.array([2.25, 0.58, -3.75])
DOMINANT = 0.005  # weight from which an expert is shown, as in the thesis
LEFT, RIGHT, BOTTOM, TOP = -5.5, 7.5, -3.5, 3.5


def draw_rows(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return features (n, 2) and labels (n,) 0 or 1."""
    z = rng.integers(0, 3, n)
    x = np.stack([rng.multivariate_normal(MEANS[k], COVARIANCES[k]) for k in z])
    return x, (x[:, 1] > SLOPES[z] * x[:, 0] + HEIGHTS[z]).astype(int)


class Found:
    """The dominant experts, in the features' own units and from left to right.

    mean (H, 2), cov (H, 2, 2); weight, weight_sd (H,); slope, height (H,) of their lines
    """

    def __init__(self, model: GlfmClassifier) -> None:
        trained = model.classification_.trained
        assert trained is not None
        q = trained.classifier.experts
        # Features are a shift and a scale away from the model's: x = a + b z.
        ends = np.array([[0.0], [1.0]])
        z = np.hstack([f.latent(ends[:, 0]) for f in trained.classifier.seen.features])
        b = 1.0 / (z[1] - z[0])
        a = -z[0] * b
        order = [h for h in np.argsort(q.m[:, 0]) if q.pi[h] > DOMINANT]
        self.mean = (a + b * q.m)[order]
        self.cov = (b[:, None] * np.linalg.inv(q.nB) * b)[order]
        weights = stick_draws(q.v1, q.v2, np.random.default_rng(0))
        self.weight, self.weight_sd = q.pi[order], weights.std(axis=0)[order]
        w = q.mw[order, 0, :2] / b
        c = q.mw[order, 0, 2] - w @ a
        self.slope, self.height = -w[:, 0] / w[:, 1], -c / w[:, 1]


def stick_draws(v1: Array, v2: Array, rng: np.random.Generator, n: int = 10_000) -> Array:
    """Return draws (n, H) of the experts' weights."""
    v = np.hstack([rng.beta(v1, v2, (n, v1.size)), np.ones((n, 1))])
    return v * np.cumprod(np.hstack([np.ones((n, 1)), 1.0 - v[:, :-1]]), axis=1)


def plot(x: Array, y: Array, model: GlfmClassifier, found: Found, path: Path) -> None:
    """Draw the rows, the experts with the label's probability everywhere, and the weights."""
    with drawing():
        figure = Figure(figsize=(10.0, 3.1), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        truth, regions, weights = figure.subplots(1, 3, width_ratios=(4, 4, 1.5))
        _rows(truth, x, y, 0.8)
        _experts(truth, MEANS, COVARIANCES, SLOPES, HEIGHTS)
        truth.set_title("Rows, their labels, the true Gaussians and lines", fontproperties=TITLE)
        across, up = np.linspace(LEFT, RIGHT, 261), np.linspace(BOTTOM, TOP, 141)
        at = np.array(np.meshgrid(across, up)).reshape(2, -1).T
        p = model.predict_proba(at)[:, 1].reshape(up.size, across.size)
        shade = regions.contourf(across, up, p, np.linspace(0, 1, 11), cmap="RdBu", alpha=0.75)
        regions.contour(across, up, p, [0.5], colors=TEXT, linewidths=1.4)
        _rows(regions, x, y, 0.6)
        _experts(regions, found.mean, found.cov, found.slope, found.height)
        regions.set_title("Probability of a blue label; the inferred experts", fontproperties=TITLE)
        figure.colorbar(shade, ax=regions, shrink=0.9, pad=0.02, ticks=[0, 0.5, 1])
        number = np.arange(1, found.weight.size + 1)
        weights.bar(number, found.weight, 0.6, yerr=found.weight_sd, color=PREDICTED, capsize=3)
        weights.axhline(1 / 3, color=TEXT, linewidth=0.6, linestyle=":")
        weights.set_xticks(number)
        weights.set_xlabel("expert, from the left")
        weights.set_title("Weights ± sd", fontproperties=TITLE)
        save(figure, path)


def _rows(axes: Axes, x: Array, y: Array, alpha: float) -> None:
    for label, colour, marker in ((0, PUT_IN, "x"), (1, PREDICTED, "o")):
        here = x[y == label]
        axes.scatter(*here.T, s=7, c=colour, marker=marker, alpha=alpha, linewidths=0.7)
    axes.set(xlim=(LEFT, RIGHT), ylim=(BOTTOM, TOP), xlabel="x₁", ylabel="x₂")


def _experts(axes: Axes, mean: Array, cov: Array, slope: Array, height: Array) -> None:
    """Draw centres, ellipses of two standard deviations and, across these, the lines."""
    for m, c, s, k in zip(mean, cov, slope, height, strict=True):
        value, vector = np.linalg.eigh(c)
        angle = np.degrees(np.arctan2(vector[1, 1], vector[0, 1]))
        width, length = 4.0 * np.sqrt(value[1]), 4.0 * np.sqrt(value[0])
        axes.add_patch(Ellipse(m, width, length, angle=angle, fill=False, ls="--", lw=1.0, ec=TEXT))
        axes.plot(*m, marker="o", color=TEXT, markersize=4)
        ends = m[0] + np.array([-1.6, 1.6]) * np.sqrt(c[0, 0])
        axes.plot(ends, s * ends + k, color="#009e73", lw=1.8)


def main() -> None:
    """Fit, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--hidden", type=float, default=0.0, help="share of cells hidden")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=None)
    said = parser.parse_args()
    rng = np.random.default_rng(said.seed)
    x, y = draw_rows(said.rows, rng)
    seen = np.where(rng.random(x.shape) < said.hidden, np.nan, x)
    model = GlfmClassifier(seed=said.seed).fit(seen, y)
    found = Found(model)
    print("expert   weight           centre           line: slope, height")
    for h in range(found.weight.size):
        m = found.mean[h]
        print(
            f"{h + 1:>6}   {found.weight[h]:.3f} ± {found.weight_sd[h]:.3f}"
            f"   {m[0]:6.2f} {m[1]:6.2f}   {found.slope[h]:6.2f} {found.height[h]:6.2f}"
        )
    new, truth = draw_rows(5000, np.random.default_rng([said.seed, 1]))
    print(f"{model.score(new, truth):.3f} of 5,000 new rows labelled right")
    if said.figure is not None:
        plot(x, y, model, found, said.figure)


if __name__ == "__main__":
    main()
