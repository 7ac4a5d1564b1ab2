"""Fetch project files from a folder, an archive, https or S3; cache them by content; never trust them.

locations, hub        parse locations; Hugging Face Hub settings and API
download, objects     one GET over http(s); one S3 object
cache                 content-addressed cache, and retries
archives, tree        read archives safely; build a Project from their entries
store                 the ProjectStore that combines the above
"""

from astra_async.problems.fetch.store import Store

__all__ = ["Store"]
