"""An image for any project: what its files and commands say about languages, versions and dependencies.

`detect` reads a pristine project and gives a `Stack`, or None. From it follow two image sets: the
toolchain's (system packages, Node.js, browser, the runs' user), shared by all projects of a kind, and the
project's, which holds its dependency files and nothing else of it. `images.build` makes images of them.
Pure: nothing here runs, fetches or writes anything.
"""

from astra_async.images.stacks.detect import detect
from astra_async.images.stacks.image_sets import project_set, toolchain_set
from astra_async.languages.needs import Stack

__all__ = ["Stack", "detect", "project_set", "toolchain_set"]
