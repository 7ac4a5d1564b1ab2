"""The languages: what is known about each stands in its own folder, and nowhere else.

`LANGUAGES` is the registry. Rules that are the same for all stand in the packages that ask it: `overlay`,
`images`, `testing`, `integrity`. How one is added: docs/extending.md.
"""

from __future__ import annotations

from astra_async.languages.dotnet import DOTNET
from astra_async.languages.java import JAVA
from astra_async.languages.javascript import JAVASCRIPT
from astra_async.languages.language import Images, Language
from astra_async.languages.python import PYTHON
from astra_async.languages.ruby import RUBY

__all__ = ["LANGUAGES", "Images", "Language"]

LANGUAGES: tuple[Language, ...] = (JAVASCRIPT, PYTHON, RUBY, JAVA, DOTNET)
