"""Ruby."""

from __future__ import annotations

import re
import shlex

from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools
from astra_async.languages.ruby.image import find_ruby
from astra_async.languages.ruby.lookup import RequireLookup
from astra_async.languages.ruby.mutate import read_tests

_TOOLS = Tools(
    programs=(
        Tool("rspec", r"\brspec\b", runs_tests=True),
        Tool("minitest", r"\bminitest\b|\brails\s+test\b|\bruby\b[^\n]{0,200}\btest", runs_tests=True),
        Tool("rake", r"\brake\b|\brails\b", scripts=("rakefile", "Rakefile")),
        Tool("bundler", r"\bbundle\b|\bgem ['\"]"),
    ),
    reads=(
        Reads(RUNNER, "rake rspec minitest", "place", r"rakefile(?:\.rb)?|guardfile"),
        Reads(RUNNER, "rake", "path", r"(?:.*/)?rakelib/[^/]+\.rake"),
        Reads(RUNNER, "", "path", r".*config/environments/test\.rb"),
        Reads(BUILD, "bundler rake rspec minitest", "place", (
            r"gemfile(?:\.lock)?|gems\.(?:rb|locked)|.*\.gemspec"
        )),
    ),
    manifests=r"gemfile",
    inert=r"rubocop.*\.ya?ml",
    variables=r"RUBYOPT|RAILS_ENV|RACK_ENV|TESTOPTS|(?:BUNDLE|GEM|RSPEC|MINITEST)_\w{0,80}|RUBY(?:_\w{0,80}|PATH|OPT|LIB|HOME)",
    dependency_folders=frozenset({".bundle", ".gem"}),
)  # fmt: skip

RUBY = Language(
    name="ruby",
    suffixes=frozenset({"rb"}),
    images=Images(
        find=find_ruby,
        calls=re.compile(r"(?<![\w.-])(?:ruby|bundle|rake|rspec|rails|gem|rvm|rbenv)(?![\w-])"),
        signs=("Gemfile",),
        installs=lambda words: shlex.join(words) if words[:2] == ["gem", "install"] and words[2:] else "",
        managers=("gem", "bundle", "bundler", "rvm", "rbenv"),
        holds="ruby/installed.sh",
    ),
    tools=_TOOLS,
    tests=TestFiles(
        paths=re.compile(r"(?:^|/)(?:[^/]*_(?:test|spec)|test_[^/]*|(?:spec|rails|test)_helper)\.rb$"),
        content=(
            re.compile(
                r"\bRSpec\.describe\b|\bMinitest::|\bActiveSupport::TestCase\b|\bIntegrationTest\b|\bTest::Unit\b"
                r"|^\s{0,40}describe\b[^\n]{1,300}\bdo\b",
                re.MULTILINE,
            ),
        ),
    ),
    lookup=RequireLookup,
    compiled=r"\.gem$",
    unbuilt=r"LoadError|syntax error, unexpected",
    mutate=read_tests,
)
