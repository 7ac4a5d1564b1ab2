"""Project files from a folder, an archive, https or S3: fetched once, kept by content, trusted never.

Where bytes come from is `download` (https) and `objects` (S3), tried again by `retrying` and kept in `cache`;
what they hold is `archives` and `reference`, what a project is made of is `tree`; `locations` and
`hub` tell what an address means, and `store` joins them all behind the ProjectStore protocol.
"""

from astra_async.problems.fetch.store import Store

__all__ = ["Store"]
