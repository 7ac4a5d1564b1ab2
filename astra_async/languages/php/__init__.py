"""PHP, with PHPUnit."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.needs import Part, Toolchain
from astra_async.languages.php.lookup import ClassLookup
from astra_async.languages.php.mutate import read_tests
from astra_async.languages.project_files import read_table, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.languages.needs import Commands


_PACKAGES = frozenset({"php-cli", "phpunit"})
_COMPOSER = frozenset({"composer", "git", "unzip"})
_INSTALL = """\
cd {folder} || exit 1
export COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_HOME=/root/.composer
attempt composer install --no-scripts --no-interaction || exit 1
"""
_EXTENSIONS = {
    "pdo_sqlite": "php-sqlite3", "sqlite3": "php-sqlite3", "curl": "php-curl", "intl": "php-intl",
    "mbstring": "php-mbstring", "dom": "php-xml", "simplexml": "php-xml", "bcmath": "php-bcmath",
    "gd": "php-gd", "zip": "php-zip",
}  # fmt: skip
_OWN = re.compile(r"php|phpunit/phpunit|(?:ext|lib)-[\w-]+")


def find_php(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """The part of a folder with a composer.json, or at the root of plain sources."""
    prefix = f"{folder}/" if folder else ""
    package = read_table(files.get(f"{prefix}composer.json"))
    if package is None:
        is_plain = not folder and "php" in commands.languages and any(path.endswith(".php") for path in files)
        if not is_plain:
            return None
    wanted = {*table((package or {}).get("require")), *table((package or {}).get("require-dev"))}
    extensions = {_EXTENSIONS.get(str(name).removeprefix("ext-")) for name in wanted} - {None}
    others = {name for name in wanted if not _OWN.fullmatch(str(name))}
    names = ("composer.json", "composer.lock")
    kept = {prefix + name: files[prefix + name] for name in names if others and prefix + name in files}
    label = "-".join(["php", *(["composer"] if others else []), *sorted(filter(None, extensions))])
    return Part(
        language="php",
        label="php",
        toolchain=Toolchain(
            label=label.replace("-php-", "-"),
            packages=_PACKAGES | (_COMPOSER if others else frozenset()) | {str(each) for each in extensions},
        ),
        files=kept,
        install=_INSTALL.format(folder=shlex.quote(folder or ".")) if others else "",
        notes=(f"{prefix}composer.json: Debian's PHP 8.2 and PHPUnit 9.5" if package else "plain PHP",),
    )


PHP = Language(
    name="php",
    suffixes=frozenset({"php"}),
    images=Images(
        find=find_php,
        calls=re.compile(r"(?<![\w./-])(?:php|phpunit|composer|pest|vendor/bin/\w+)(?![\w./-])"),
        signs=("composer.json",),
        holds="php/installed.sh",
    ),
    tools=Tools(
        programs=(
            ProjectTool(
                "phpunit",
                r"\bphpunit\b|\bpest\b|\bcodecept|\bparatest\b",
                runs_tests=True,
                brings=("composer", "php"),
            ),
            ProjectTool("composer", r"\bcomposer\b"),
            ProjectTool("php", r"\bphp\b"),
        ),
        reads=(
            Reads(RUNNER, "phpunit", "place", r"phpunit.*|codeception.*|behat\..*|pest\.php"),
            Reads(RUNNER, "php", "any", r"php(?:-cli)?\.ini|\.user\.ini"),
            Reads(BUILD, "phpunit composer", "place", r"composer\.(?:json|lock)"),
            Reads(BUILD, "phpunit composer", "path", r"(?:.*/)?vendor/.*"),
        ),
        manifests=r"composer\.json",
        everyday=r"composer\.json|phpunit.*\.php",
        settings=r"bootstrap|printerFile|extensionsDirectory|cacheDirectory|autoload|file",
        variables=r"(?:PHPUNIT|PHP|COMPOSER|XDEBUG)_\w{0,80}|PHPRC",
    ),
    tests=TestFiles(
        paths=re.compile(r"[a-z0-9](?:Tests?|Cest)\.php$"),
        content=(re.compile(r"extends\s+(?:\\?\w+\\)*TestCase\b"),),
    ),
    lookup=ClassLookup,
    loaded="word",
    compiled=r"\.phar$",
    unbuilt=r"PHP (?:Parse|Fatal) error",
    mutate=read_tests,
)  # fmt: skip
