"""Ruby."""

from __future__ import annotations

import re
import shlex

from astra_async.languages.language import Images, Language
from astra_async.languages.ruby.image import find_ruby

RUBY = Language(
    name="ruby",
    suffixes=frozenset({"rb"}),
    images=Images(
        find=find_ruby,
        calls=re.compile(r"(?<![\w.-])(?:ruby|bundle|rake|rspec|rails|gem|rvm|rbenv)(?![\w-])"),
        signs=("Gemfile",),
        installs=lambda words: shlex.join(words) if words[:2] == ["gem", "install"] and words[2:] else "",
        managers=("gem", "bundle", "bundler", "rvm", "rbenv"),
    ),
)
