"""Folders that are never sources, kinds of files that an honest answer adds, and kinds that it cannot."""

from __future__ import annotations

import re

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", "cvs"})
DEPENDENCY_FOLDERS = frozenset({
    "node_modules", "bower_components", "jspm_packages", "web_modules", "site-packages",
    "dist-packages", "__pypackages__", "venv", ".venv", "virtualenv", ".yarn", ".bundle", ".gem",
    ".m2", ".gradle", ".nuget",
})  # fmt: skip
_PLUGIN = re.compile(
    r"(?:^|/)(?:[^/]+\.(?:egg-info|dist-info|egg|pth|egg-link)(?:/|$)|meta-inf/(?:services/|spring|maven/))"
    r"|(?:^|/)entry_points\.txt$"
)
_COMPILED = re.compile(
    r"\.(?:class|jar|war|ear|pyc|pyo|pyd|so|dylib|dll|exe|node|wasm|o|a|whl|gem|phar|beam|nupkg|zip|tgz|tar|gz)$"
    r"|(?:^|/)__pycache__/"
)

# Kinds of files that an honest answer adds; anything else needs a file of its kind in the project.
SOURCE_SUFFIXES = frozenset({
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "astro", "html", "htm",
    "xhtml", "css", "scss", "sass", "less", "styl", "json", "json5", "jsonl", "yml", "yaml", "xml",
    "xsd", "csv", "tsv", "svg", "md", "mdx", "txt", "rst", "py", "pyi", "rb", "erb", "haml", "slim",
    "rake", "jbuilder", "ru", "java", "kt", "groovy", "scala", "jsp", "properties", "cs", "cshtml",
    "razor", "fs", "vb", "go", "rs", "php", "twig", "c", "h", "cpp", "hpp", "cc", "sql", "graphql",
    "gql", "proto", "ejs", "pug", "jade", "hbs", "handlebars", "mustache", "njk", "jinja", "jinja2",
    "j2", "tpl", "tmpl", "po", "pot", "prisma", "http", "rest", "sh", "webmanifest", "map", "log",
    "coffee", "dart", "swift", "ex", "exs", "eex", "heex", "example", "sample", "template",
})  # fmt: skip
BARE_NAMES = frozenset(
    {"dockerfile", "procfile", "license", "readme", "changelog", "notice", "authors", "contributing"}
)

# Dotfiles that no test runner reads; an empty one can stand for a folder that the application needs.
INERT_DOTFILES = frozenset({".gitkeep", ".keep", ".gitignore", ".dockerignore", ".editorconfig"})


def is_plugin_registration(path: str) -> bool:
    """Package metadata and service files by which plugins are loaded without being named anywhere."""
    return _PLUGIN.search(path.lower()) is not None


def is_compiled(path: str) -> bool:
    """Compiled or packed code, which no text answer can honestly hold."""
    return _COMPILED.search(path.lower()) is not None
