"""Scores of rates that are predicted for new rows of counts.

perplexity        exp(- sum y log p / sum y) over hidden counts y of all rows, p a column's
                  share of the rates of all columns of its row
perplexity_mixed  the same with a tenth of the columns' shares in all rows mixed in
log_score         mean log probability of a Poisson count over all hidden cells, zeros too
recall_20         of the hidden columns with a count, the share among the 20 hidden columns that
                  are likeliest to have one, over that of a perfect list; mean over rows
ndcg_20           discounted gain of that list over that of a perfect one
                  [Jarvelin and Kekalainen 2002]
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from glfm_cli.errors import UsageError
from glfm_cli.evaluation.new_rows import HeldOutRows
from glfm_cli.evaluation.scoring import ALL, Score
from glfm_cli.evaluation.task import Prediction

MIX = 0.1
LISTED = 20  # columns that are recommended
BLOCK = 1 << 21  # rates that are held at once


def score_new_rows(rows: HeldOutRows, prediction: Prediction) -> list[Score]:
    """Return the scores of the rates that a method predicts."""
    assert prediction.rates is not None
    n, J = rows.counts.shape
    shares, step = rows.shares, max(1, BLOCK // J)
    total, logs = 0.0, np.zeros(3)
    n_hidden = int(rows.hidden.sum())
    recall: list[float] = []
    gain: list[float] = []
    discount = 1.0 / np.log2(np.arange(2, LISTED + 2))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        rates, hidden = prediction.rates(part), rows.hidden[part]
        y = np.where(hidden, rows.counts[part], 0)
        u, i = np.nonzero(y)
        count = y[u, i]
        total += count.sum()
        p = rates[u, i] / rates.sum(axis=1)[u]
        mixed = (1.0 - MIX) * p + MIX * shares[i]
        with np.errstate(divide="ignore"):
            poisson = count * np.log(rates[u, i]) - gammaln(count + 1.0)
            logs += [(count * np.log(p)).sum(), (count * np.log(mixed)).sum(), poisson.sum()]
        logs[2] -= rates[hidden].sum()
        likely = rates if prediction.p_any is None else prediction.p_any(part)
        best = np.argsort(-np.where(hidden, likely, -np.inf), axis=1, kind="stable")[:, :LISTED]
        found = np.take_along_axis(y > 0, best, axis=1)
        perfect = np.minimum((y > 0).sum(axis=1), LISTED)
        for one, most in zip(found[perfect > 0], perfect[perfect > 0], strict=True):
            recall.append(float(one.sum() / most))
            gain.append(float((one * discount[: one.size]).sum() / discount[:most].sum()))
    if not total:
        raise UsageError("no count is hidden", hint="Use a larger share for --rates.")
    values = {
        "perplexity": np.exp(-logs[0] / total),
        "perplexity_mixed": np.exp(-logs[1] / total),
        "log_score": logs[2] / n_hidden,
        "recall_20": np.mean(recall),
        "ndcg_20": np.mean(gain),
    }
    cells = {"log_score": n_hidden}
    return [
        Score(ALL, "", "", name, float(value), cells.get(name, int(total)))
        for name, value in values.items()
    ]
