"""Ruby."""

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
from astra_async.languages.needs import Part, Toolchain, script
from astra_async.languages.ruby.lookup import RequireLookup
from astra_async.languages.ruby.mutate import read_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.languages.needs import Commands


# Bundler is pointed at this copy: it asks for no other Ruby than Debian's, and an answer's changed Gemfile
# cannot break a run that has no network.
GEMFILE = "/projects/bundle/Gemfile"
_GEM = re.compile(rb"(?m)^\s*gem\s*\(?\s*[\"']([\w.-]+)[\"']")
_RUBY = re.compile(rb"(?m)^\s*ruby[\s(]+(.{1,60})$")
TOOLCHAIN = Toolchain(
    label="ruby",
    packages=frozenset(
        {
            *("ruby", "ruby-dev", "ruby-bundler", "rake", "build-essential", "git", "pkg-config", "tzdata"),
            *("zlib1g-dev", "libyaml-dev", "libsqlite3-dev", "sqlite3", "libxml2-dev", "libxslt1-dev"),
        }
    ),
)
_PLAIN = Part(
    language="ruby",
    label="ruby",
    toolchain=Toolchain(
        label="ruby-plain",
        packages=frozenset(
            {
                *("ruby", "rake", "tzdata", "ruby-rspec", "ruby-rspec-junit-formatter", "ruby-minitest"),
                *("ruby-minitest-reporters", "ruby-test-unit"),
            }
        ),
    ),
    notes=("plain Ruby: Debian's Ruby 3.1 with its rspec and minitest",),
)


def find_ruby(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """The part of a folder with a Gemfile; at the root also one of plain sources."""
    prefix = f"{folder}/" if folder else ""
    gemfile = files.get(f"{prefix}Gemfile")
    if gemfile is None:
        plain = not folder and "ruby" in commands.languages and any(path.endswith(".rb") for path in files)
        return _PLAIN if plain else None
    names = ("Gemfile", "Gemfile.lock", ".ruby-version")
    kept = {prefix + name: files[prefix + name] for name in names if prefix + name in files}
    kept |= {
        path: content
        for path, content in files.items()
        if path.startswith(prefix) and path.endswith((".gemspec", "lib/version.rb"))
    }
    gems = sorted({name.decode() for name in _GEM.findall(gemfile)})
    asked = _RUBY.search(gemfile)
    note = f" (the Gemfile asks for {asked[1].decode(errors='replace').strip()})" if asked else ""
    return Part(
        language="ruby",
        label="rails" if "rails" in gems else "ruby",
        toolchain=TOOLCHAIN,
        files=kept,
        install=script("ruby/bundle.sh", FOLDER=folder or ".", GEMS=" ".join(gems)),
        environment={"BUNDLE_GEMFILE": GEMFILE, "BUNDLE_APP_CONFIG": "/projects/bundle/.bundle"},
        notes=(f"{prefix}Gemfile: Debian's Ruby 3.1{note}",),
    )


_TOOLS = Tools(
    programs=(
        ProjectTool("rspec", r"\brspec\b", runs_tests=True),
        ProjectTool("minitest", r"\bminitest\b|\brails\s+test\b|\bruby\b[^\n]{0,200}\btest", runs_tests=True),
        ProjectTool("rake", r"\brake\b|\brails\b", scripts=("rakefile", "Rakefile")),
        ProjectTool("bundler", r"\bbundle\b|\bgem ['\"]"),
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
