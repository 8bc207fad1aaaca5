"""What `glfm classify` writes about tasks: checked before the work, written after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glfm_cli.classification import Classification
    from glfm_cli.errors import UsageError


@dataclass(frozen=True)
class TaskFiles:
    """Where similarity and nearness of tasks go as tables, and as a figure; None: nobody asked."""

    similarity: Path | None
    nearness: Path | None
    plot: Path | None

    def by_option(self) -> dict[str, Path | None]:
        """Return all by the option that names them."""
        return {"--similarity": self.similarity, "--nearness": self.nearness, "--plot": self.plot}

    def check(self, types: Path | None) -> None:
        """Raise now what writing would raise after the work.

        Raises
        ------
        UsageError
            No column tells tasks apart.
        OutputError
            A file cannot be written.
        """
        from glfm_cli.completion import as_schema
        from glfm_cli.io import check_writable
        from glfm_cli.schema import Role

        asked = [name for name, path in self.by_option().items() if path is not None]
        if asked and types is not None:
            roles = {column.role for column in as_schema(types).columns}
            if Role.TASK not in roles:
                raise one_task(asked[0])
        for table in (self.similarity, self.nearness):
            if table is not None:
                check_writable(table)
        if self.plot is not None:
            from glfm_cli.plots import check_figure

            check_figure(self.plot)

    def write(self, found: Classification) -> None:
        """Write all; UsageError when there is only one task after all."""
        from glfm_cli.io import write_table

        tasks = found.trained.tasks if found.trained is not None else None
        asked = [name for name, path in self.by_option().items() if path is not None]
        if asked and tasks is None:
            raise one_task(asked[0])
        if tasks is not None and self.similarity is not None:
            write_table(tasks.to_table(), self.similarity)
        if tasks is not None and self.nearness is not None:
            write_table(tasks.to_table(near=True), self.nearness)
        if tasks is not None and self.plot is not None:
            from glfm_cli.plots import plot_tasks

            plot_tasks(tasks, self.plot)


def one_task(option: str) -> UsageError:
    """Return the error of asking how alike tasks are where there is one."""
    from glfm_cli.errors import UsageError

    return UsageError(
        f"{option}: there is only one task",
        hint="Give the column that tells tasks apart `role: task` in the types file.",
    )
