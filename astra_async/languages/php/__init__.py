"""PHP, with PHPUnit."""

from __future__ import annotations

import re

from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools
from astra_async.languages.php.image import find_php
from astra_async.languages.php.lookup import ClassLookup
from astra_async.languages.php.mutate import read_tests

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
            Tool(
                "phpunit",
                r"\bphpunit\b|\bpest\b|\bcodecept|\bparatest\b",
                runs_tests=True,
                brings=("composer", "php"),
            ),
            Tool("composer", r"\bcomposer\b"),
            Tool("php", r"\bphp\b"),
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
