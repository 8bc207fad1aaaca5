"""Complete a file that is not read as a whole: some of its rows are learnt from, all completed.

One pass chooses the rows (`sampled_rows`), a run learns from them, and a second pass completes
batch after batch (`batches`). Memory does not grow with the rows of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from glfm_cli.completion.batches import BatchedCompletion, BatchedImputation
from glfm_cli.completion.complete import Filling
from glfm_cli.completion.cost import estimate_cost, with_process
from glfm_cli.completion.files import Files
from glfm_cli.completion.folding_cost import of_session, with_folding
from glfm_cli.completion.kept import Kept
from glfm_cli.completion.learning_rows import AUTO_ROWS
from glfm_cli.completion.needless import UNCHANGED, is_needless, without_draws
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.completion.sampled_rows import sample_rows
from glfm_cli.completion.session import Session, plan_session
from glfm_cli.encoding import Data
from glfm_cli.errors import UsageError
from glfm_cli.inference.folding import BATCH
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.io import memory_needed, read_batches, rows_after
from glfm_cli.io.files import file_label
from glfm_cli.io.row_notes import RowsNote
from glfm_cli.options import SEED, MatrixOptions, Sampling, Saving, Scaling
from glfm_cli.schema import Role, Schema
from glfm_cli.store import read_header

_HINT = (
    "--learn-rows auto learns from some of its rows and completes it in batches, unless role "
    "group, --multiple, --plot or other outputs ask for all rows together."
)


@dataclass(frozen=True)
class StreamedImputation:
    """The completion of a file in batches, once some of its rows are learnt from.

    session : the run over these rows
    n_rows : of the file
    """

    source: Any
    session: Session
    files: Files
    how: Filling
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return what would be done, as `--dry-run --json` prints it."""
        costs, data = estimate_cost(self.session), self.session.data
        assert isinstance(data, Data)
        learnt = {"rows": self.n_rows, "learnt_rows": costs["rows"], "rows_in_a_batch": BATCH}
        # Cells are counted as they are read, those of the rows that are learnt from say nothing.
        sizes = {name: n for name, n in costs.items() if name not in ("cells_to_complete", "gaps")}
        folding = of_session(self.session, data, self.n_rows, self.how.threads)
        return with_process(with_folding(sizes | learnt, folding, learnt["rows_in_a_batch"]))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know beforehand, one line each."""
        more = (UNCHANGED,) if self.needless else ()
        # Rows are numbered in the sample, not in the file.
        of_data = (text for text in self.session.data.notes if not isinstance(text, RowsNote))
        return (*of_data, *self.session.notes, *more)

    @cached_property
    def needless(self) -> bool:
        """Whether no cell is missing, and nothing is written that a fit would be needed for.

        Of the rows that are learnt from an empty cell of a column may be one that is left as it is,
        and one of another row not: where they have none to complete, all rows are looked at.
        """
        data = self.session.data
        assert isinstance(data, Data)
        if not is_needless(data, self.files, self.session.saving):
            return False
        fitted, file = self._fitted(without_draws(self.session.problem)), file_label(self.source)
        n_rows = 0
        for table in read_batches(self.source, BATCH):
            with rows_after(n_rows):
                batch = fitted.encode(fitted.with_types(table), file=file)
            assert isinstance(batch, Data)
            if batch.missing:
                return False
            n_rows += batch.n_rows
        return True

    def complete(
        self, observer: Observer | None = None, finish: Callable[[Any], None] | None = None
    ) -> BatchedCompletion:
        """Make the run, then complete batch after batch."""
        if self.needless:
            run = Run(without_draws(self.session.problem), None, 0.0, (UNCHANGED,))
            return self._batches(run).complete(observer, finish)
        with Kept(self.session, observer) as kept:
            return self._batches(kept.sample()).complete(observer, finish)

    def _batches(self, run: Run) -> BatchedImputation:
        fitted = replace(self._fitted(run.posterior).thinned(), notes=run.warnings)
        how = fitted, self.files, self.how
        return BatchedImputation(self.source, *how, "error", (), run, self.n_rows)

    def _fitted(self, posterior: Posterior) -> Fitted:
        session = self.session
        assert isinstance(session.data, Data)
        schema, problem = session.header.schema, session.problem
        return Fitted.of_run(schema, session.data, problem, posterior, self.how.seed)


def plan_stream(
    source: Any,
    schema: Schema | None,
    groups: tuple[Sampling, Saving, MatrixOptions, Scaling],
    files: Files,
    how: Filling,
) -> StreamedImputation | None:
    """Return the completion of a file that takes more than `--memory`; None of a smaller one.

    schema : None of a run that goes on, and of triplets

    Raises UsageError: it would have to be read as a whole, for want of `--learn-rows` or for what
        is asked of it.
    """
    sampling, saving, matrix, scaling = groups
    most = scaling.most_bytes
    needed = None if most is None else memory_needed(source)
    if most is None or needed is None or needed <= most:
        return None
    known, seed = schema, SEED if sampling.seed is None else sampling.seed
    if saving.resume is not None:
        header = read_header(saving.resume)
        known, seed = None if header.matrix else header.schema, header.plan.seed
    grouped = known is None or any(c.role in (Role.GROUP, Role.TIME) for c in known.columns)
    if scaling.learn_rows in (None, "all") or how.estimate == "draw" or files.whole or grouped:
        raise UsageError(
            f"learning reads the table as a whole, which takes about {max(needed >> 20, 1)} MB: "
            "more than --memory",
            file=file_label(source),
            hint=_HINT,
        )
    assert known is not None
    n = AUTO_ROWS if scaling.learn_rows == "auto" else int(scaling.learn_rows)
    table, n_rows = sample_rows(source, known, n, seed)
    session = plan_session(table, schema, sampling, saving, matrix, file=file_label(source))
    assert isinstance(session.data, Data)
    files.check(table, session.data)
    how = replace(how, seed=session.plan.seed)
    return StreamedImputation(source, session, files, how, n_rows)
