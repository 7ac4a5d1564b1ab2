""".env files: an application's own variables are taken, those that steer a test process are not."""

from __future__ import annotations

import re

from astra_async.types import Dropped

# Variables by which a test runner, an interpreter or a package manager can be steered. NODE_ENV is not
# among them: runners set it themselves, and dotenv never replaces what is set.
_STEERING = re.compile(
    r"(?:^|\b)(NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_EXTRA_CA_CERTS|DJANGO_SETTINGS_MODULE|TEST_RUNNER|TESTOPTS"
    r"|(?:JEST|VITEST|MOCHA|KARMA|BABEL|CYPRESS|PLAYWRIGHT|NPM_CONFIG|YARN|PYTEST|PYTHON|COVERAGE|RUBY|BUNDLE|GEM|RSPEC"
    r"|MINITEST|MAVEN|JAVA|JDK|GRADLE|DOTNET|PHPUNIT|LD|DYLD|BASH|TS_NODE|SWC|CHROME|TEST|TESTS)_\w{0,80}"
    r"|(?:PYTHON|RUBY|MAVEN|JAVA|LD)(?:PATH|OPT|LIB|HOME|STARTUP|WARNINGS)|RUBYOPT|RAILS_ENV|RACK_ENV|PATH|IFS|SHELL|HOME)"
    r"\s{0,20}[=:]",
    re.IGNORECASE,
)


def merged_environment(path: str, text: str) -> tuple[str, tuple[Dropped, ...]]:
    """The text without the lines that set a steering variable, and those lines' names as dropped parts."""
    kept, dropped = [], []
    for line in text.splitlines(keepends=True):
        steering = _STEERING.search(line)
        if steering is None:
            kept.append(line)
        else:
            dropped.append(Dropped(path=f"{path}#{steering.group(1)}", reason="runner_configuration"))
    return "".join(kept), tuple(dropped)
