"""A Gaussian copula with latent correlations by expectation maximisation (gcimpute).

python copula.py INPUT TYPES OUTPUT SEED
"""

from __future__ import annotations

import numpy as np
from gcimpute.gaussian_copula import GaussianCopula
from matrix import arguments, read


def main() -> None:
    given = arguments()
    # All R columns of a category together would make the latent correlation singular.
    matrix = read(given.input, given.types, drop_last=True)
    varying = np.array([np.unique(x[~np.isnan(x)]).size > 1 for x in matrix.values.T])
    filled = np.nanmean(matrix.values, axis=0) * np.ones_like(matrix.values)
    copula = GaussianCopula(random_state=given.seed, verbose=0, n_jobs=1)
    filled[:, varying] = copula.fit_transform(X=matrix.values[:, varying])
    matrix.put_back(filled).to_csv(given.output, index=False)


if __name__ == "__main__":
    main()
