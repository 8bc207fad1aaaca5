"""What do slopes and noise of rows cost where a matrix has neither?

    python benchmarks/plain_matrices.py [--sets 12] [--ranks 0,2] [--chains 2]

Matrices of 40 x 30, half of whose cells are seen: intercepts of rows and columns and some
components, each normal with a root mean square of 1, unit noise; as numbers and as four ordered
levels. Both models, as they are by default and without slopes and noise of rows, foretell the other
half. Printed are the share of the means that intervals of 95 % cover, the root mean squared error
of the means, and the mean log score of the hidden values; and how these differ from those without,
with standard errors over sets.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.completion.matrix import Pairs, prepare_matrix
from glfm_cli.encoding import encode_triplets
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.scoring import log_scores
from glfm_cli.schema import Schema

Array = np.ndarray
SHAPE, CUTS = (40, 30), (0.0, 0.8, 1.5)
PLAIN = {"slopes": "false", "row_noise": "false"}
VALUES: dict[str, dict[str, Any]] = {
    "real": {"type": "real", "transform": "none"},
    "ordinal": {"type": "ordinal", "levels": ["0", "1", "2", "3"]},
}


def drawn(kind: str, rank: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the means of all cells, and their values."""
    x = rng.normal(size=(SHAPE[0], 1)) + rng.normal(size=SHAPE[1])
    x += rng.normal(size=(SHAPE[0], rank)) @ rng.normal(size=(rank, SHAPE[1]))
    y = x + rng.normal(size=SHAPE)
    return x, y if kind == "real" else np.digitize(y, CUTS).astype(float)


def scores(kind: str, rank: int, seed: int, settings: dict[str, str], chains: int) -> Array:
    """Return coverage of the means, error of the means, and mean log score of hidden values."""
    rng = np.random.default_rng([seed, rank])
    x, values = drawn(kind, rank, rng)
    seen = rng.random(SHAPE) < 0.5
    seen[np.arange(SHAPE[0]), np.arange(SHAPE[0]) % SHAPE[1]] = True  # every row and column
    i, j = np.nonzero(seen)
    schema = Schema.from_dict(
        {"columns": {"i": "row", "j": "column", "v": VALUES[kind] | {"role": "value"}}}
    )
    v = values[i, j] if kind == "real" else values[i, j].astype(int).astype(str)
    problem, data, plan = prepare_matrix(
        encode_triplets(pa.table({"i": i, "j": j, "v": v}), schema),
        seed=seed, chains=chains, draws=75, settings=settings,
    )  # fmt: skip
    posterior = sample(problem, plan).posterior
    i, j = np.nonzero(~seen)
    pairs = Pairs(*(ids.places([str(key) for key in keys]) for ids, keys in
                    ((data.rows, i), (data.others, j))))  # fmt: skip
    (link,) = posterior.links
    means = np.array([draw.latent.means_at(pairs.row, pairs.column) for draw in posterior.draws()])
    truth = x[i, j]
    if kind == "real":
        truth = link.start(truth)[1][:, 0]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    view = posterior.at(pairs)
    log_p = log_scores(view, {0: np.arange(i.size)}, {0: values[i, j]})[0]
    error = np.sqrt(np.mean((means.mean(axis=0) - truth) ** 2))
    return np.array([np.mean((low <= truth) & (truth <= high)), error, log_p.mean()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=12)
    parser.add_argument("--ranks", default="0,2")
    parser.add_argument("--chains", type=int, default=2)
    asked = parser.parse_args()
    for kind in VALUES:
        for rank in map(int, asked.ranks.split(",")):
            found = {
                name: np.array(
                    [scores(kind, rank, seed, more, asked.chains) for seed in range(asked.sets)]
                )
                for name, more in (("without", PLAIN), ("default", {}))
            }
            for name, values in found.items():
                gap = values - found["without"]
                error = gap.std(axis=0) / np.sqrt(asked.sets)
                print(
                    f"{kind:8} rank {rank} {name:8}"
                    + "".join(
                        f"  {what} {value:.4f} ({difference:+.4f} ± {se:.4f})"
                        for what, value, difference, se in zip(
                            ("covered", "error", "log score"),
                            values.mean(axis=0), gap.mean(axis=0), error, strict=True,
                        )
                    ),
                    flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
