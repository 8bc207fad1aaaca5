"""What each column of a table means: types, roles, and the types file.

A types file is YAML; its scalars are read as text and converted here, so that `no`, `0123`
and `12:30` stay what was written. The whole format is documented in docs/guides/types.md.
"""

from glfm_cli.schema.columns import Column, MissingCode, Role, Transform, with_calendar
from glfm_cli.schema.schema import Schema, read_schema
from glfm_cli.schema.types import COLUMN_TYPES, ColumnType
