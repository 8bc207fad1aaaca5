"""Where a table is: a file, a folder or pattern of files, or a table inside a file.

Behind a `?` stands what a file needs besides its name: `book.xlsx?sheet=Data&header=3`,
`duckdb:store.db?table=visits`, `store.sqlite?query=select * from visits`. The `?` of an address of
the web is the server's; there it stands behind a `#`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glfm_cli.errors import UsageError
from glfm_cli.io.files import STANDARD, PathLike
from glfm_cli.io.web import is_address

_SCHEMES = ("duckdb", "sqlite")


@dataclass(frozen=True)
class Location:
    """A place of a table.

    path : the file, folder or pattern, an address of the web, or "-"
    scheme : `duckdb` or `sqlite` where the user wrote it in front
    options : what stands behind the `?`, by name
    """

    path: str
    scheme: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_standard(self) -> bool:
        """True for standard input or output."""
        return self.path == STANDARD

    @property
    def is_web(self) -> bool:
        """True for an address of the web."""
        return is_address(self.path)

    @property
    def is_many(self) -> bool:
        """True for a folder, or a pattern that is no file itself."""
        path = Path(self.path)
        return not self.is_web and (
            path.is_dir() or (not path.exists() and glob.has_magic(self.path))
        )

    def check_options(self, known: Mapping[str, str]) -> None:
        """Raise UsageError for an option that this kind of file has not.

        `known` is what each option is, by name.
        """
        for name in self.options:
            if name not in known:
                raise UsageError(
                    f"unknown option '{name}' behind the `?`",
                    file=self.path,
                    expected=" or ".join(f"{key}={what}" for key, what in known.items())
                    or "none for this kind of file",
                )


def locate(source: PathLike) -> Location:
    """Return the place that a user's words name; a file of exactly that name wins."""
    text = os.fspath(source)
    if text == STANDARD or os.path.exists(text):
        return Location(text)
    path, mark, query = text.partition("#" if is_address(text) else "?")
    options: dict[str, str] = {}
    if mark and "=" in query:
        for part in query.split("&"):
            name, _, value = part.partition("=")
            options[name.strip()] = value.strip()
    else:
        path = text  # a `?` of a pattern
    scheme, colon, rest = path.partition(":")
    if colon and scheme in _SCHEMES:
        return Location(rest, scheme, options)
    return Location(path, None, options)
