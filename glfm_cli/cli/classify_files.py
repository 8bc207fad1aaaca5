"""What `glfm classify` writes: checked before the work, written after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glfm_cli.cli.outputs import check_drawn, check_outputs

if TYPE_CHECKING:
    from glfm_cli.classification import Classification
    from glfm_cli.errors import UsageError


@dataclass(frozen=True)
class ClassifyFiles:
    """Where results go; None: nobody asked.

    output, complete : predictions, and the completed table
    similarity, nearness, plot : of tasks, as tables and as a figure
    """

    output: Path | None
    complete: Path | None
    similarity: Path | None
    nearness: Path | None
    plot: Path | None

    @property
    def of_tasks(self) -> dict[str, Path | None]:
        """Return what is about tasks by the option that names it."""
        return {"--similarity": self.similarity, "--nearness": self.nearness, "--plot": self.plot}

    def check(
        self, data: str, types: Path | None, predict: str | None, cv: int | None, as_json: bool
    ) -> None:
        """Raise now what writing would raise after the work.

        Raises UsageError: two files are one, or no column tells tasks apart; OutputError: a file
            cannot be written.
        """
        from glfm_cli.classification import Predictions
        from glfm_cli.completion import as_schema, is_guessed
        from glfm_cli.errors import UsageError
        from glfm_cli.io import check_target, check_writable
        from glfm_cli.schema import Role

        inputs: dict[str, str | Path | None] = {"the table itself": data, "the types file": types}
        inputs["the rows to predict"] = predict
        # Of a cross-validation the scores are what is asked for, and predictions only with -o.
        on_stdout = ["--json"] * as_json + ["the table"] * (self.output is None and cv is None)
        others = {"--complete": self.complete, **self.of_tasks}
        check_outputs(inputs, {"--output": self.output, **others}, on_stdout)
        for name, path in others.items():
            if path is not None and cv is not None:
                raise UsageError(
                    f"--cv and {name} cannot be used together: --cv makes a fit for each fold",
                    hint="Run the command twice, once for each.",
                )
        asked = [name for name, path in self.of_tasks.items() if path is not None]
        if asked and types is not None and not is_guessed(types) and str(types) != "-":
            roles = {column.role for column in as_schema(types).columns}
            if Role.TASK not in roles:
                raise one_task(asked[0])
        if predict == "-" and data == "-":
            raise UsageError("the training rows and --predict are both standard input")
        if self.output is not None:
            check_target(self.output, Predictions.example())
        for table in (self.complete, self.similarity, self.nearness):
            if table is not None:
                check_writable(table)
        check_drawn(self.plot)

    def write(self, found: Classification) -> None:
        """Write all but the predictions; UsageError when there is only one task after all."""
        from glfm_cli.io import write_table

        tasks = found.trained.tasks if found.trained is not None else None
        asked = [name for name, path in self.of_tasks.items() if path is not None]
        if asked and tasks is None:
            raise one_task(asked[0])
        if tasks is not None and self.similarity is not None:
            write_table(tasks.to_table(), self.similarity)
        if tasks is not None and self.nearness is not None:
            write_table(tasks.to_table(near=True), self.nearness)
        if tasks is not None and self.plot is not None:
            from glfm_cli.plots import plot_tasks

            plot_tasks(tasks, self.plot)
        if self.complete is not None and found.completed is not None:
            write_table(found.completed, self.complete)


def one_task(option: str) -> UsageError:
    """Return the error of asking how alike tasks are where there is one."""
    from glfm_cli.errors import UsageError

    return UsageError(
        f"{option}: there is only one task",
        hint="Give the column that tells tasks apart `role: task` in the types file.",
    )
