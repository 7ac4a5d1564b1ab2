"""Project files from a folder, an archive, https or S3: fetched once, kept by content, trusted never.

Where bytes come from is `download` (https) and `objects` (S3), what they hold is `archives` and `folder`,
what a project is made of is `tree`; `store` joins them behind the ProjectStore protocol.
"""

from astra_async.problems.fetch.store import Store

__all__ = ["Store"]
