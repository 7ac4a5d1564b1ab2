"""Where `integrity` still looks for it; the readers stand in `languages`."""

from astra_async.languages.project_files import dependencies_of, read_table

__all__ = ["dependencies_of", "read_table"]
