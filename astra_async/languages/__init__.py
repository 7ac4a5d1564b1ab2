"""The languages: what is known about each stands in its own folder, and nowhere else.

`LANGUAGES` is the registry. Rules that are the same for all stand in the packages that ask it: `overlay`,
`images`, `testing`. How one is added: docs/development/extending.md.
"""

from __future__ import annotations

from astra_async.languages import others
from astra_async.languages.dotnet import DOTNET
from astra_async.languages.go import GO
from astra_async.languages.java import JAVA
from astra_async.languages.javascript import JAVASCRIPT
from astra_async.languages.language import Language
from astra_async.languages.php import PHP
from astra_async.languages.python import PYTHON
from astra_async.languages.ruby import RUBY
from astra_async.languages.rust import RUST

__all__ = ["LANGUAGES", "Language", "lacks", "language_of"]

LANGUAGES: tuple[Language, ...] = (
    JAVASCRIPT,
    PYTHON,
    RUBY,
    JAVA,
    DOTNET,
    GO,
    RUST,
    PHP,
    others.ELIXIR,
    others.DART,
    others.COFFEESCRIPT,
    others.GHERKIN,
    others.BUILD_TOOLS,
)
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}


def language_of(path: str) -> Language | None:
    """The language of a source, by its suffix; None for any other file."""
    return _BY_SUFFIX.get(path.rpartition("/")[2].rpartition(".")[2].lower())


def lacks(language: Language) -> tuple[str, ...]:
    """What is not known of a language, in words for a user who has a problem in it."""
    found = {
        "no image can be made for it": language.images is None,
        "its test files are known by their names alone": not language.tests.content,
        "no file that its tools read by name is known": not language.tools.reads,
        "what its new files are loaded in place of is not known": language.lookup is None,
        "an audit cannot mutate its tests": language.mutate is None,
    }
    return tuple(line for line, is_missing in found.items() if is_missing)
