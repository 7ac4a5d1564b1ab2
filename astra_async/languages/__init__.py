"""Programming languages: each subpackage has all knowledge about one language.

`LANGUAGES` is the registry. Rules common to all languages are in the packages that use it: `overlay`,
`images`, `testing`. To add a language, see docs/development/extending.md.
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
    """Return the language of a source file by its suffix; None for other files."""
    return _BY_SUFFIX.get(path.rpartition("/")[2].rpartition(".")[2].lower())


def lacks(language: Language) -> tuple[str, ...]:
    """Return what is not supported for a language, as phrases for the user."""
    found = {
        "no image can be built for it": language.images is None,
        "test files are recognized by name only": not language.tests.content,
        "configuration files of its tools are unknown": not language.tools.reads,
        "new files that shadow modules are not detected": language.lookup is None,
        "an audit cannot mutate its tests": language.mutate is None,
    }
    return tuple(line for line, is_missing in found.items() if is_missing)
