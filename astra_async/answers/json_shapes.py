"""Turn a parsed JSON value into files, in any shape that models give it.

Supported shapes: `{path: content}`, `{"files": [{"path": ..., "content": ...}]}`, lists of such objects,
wrappers (`{"solution": {...}}`), folders as nested objects, content as a list of lines, and the content of a
.json file as a JSON value. A key is a path if it has a `/` or a suffix, or is a known name such as
`Dockerfile`. Other keys next to the files (an explanation, notes) are ignored with the repair `ignored_key`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astra_async.answers.reading import Reading

# fmt: off
_PATH_KEYS = (
    "path", "file_path", "filepath", "filePath", "filename", "file_name", "fileName", "file", "name",
)
_CONTENT_KEYS = (
    "content", "contents", "file_content", "fileContent", "code", "source", "body", "text", "data",
    "new_content", "newContent",
)
_WRAPPERS = frozenset({
    "solution", "files", "file", "answer", "result", "response", "output", "project", "project_files",
    "projectfiles", "changes", "data", "code", "modified_files", "changed_files", "updated_files",
    "new_files", "file_changes", "arguments", "parameters",
})
_BARE_NAMES = frozenset({
    "Dockerfile", "Containerfile", "Makefile", "makefile", "justfile", "Gemfile", "Rakefile", "Procfile",
    "Podfile", "Brewfile", "Caddyfile", "Jenkinsfile", "Pipfile", "Vagrantfile", "Guardfile", "LICENSE",
    "README", "CHANGELOG", "NOTICE", "VERSION", "CODEOWNERS", "artisan", "gradlew", "mvnw",
})
# fmt: on
_SUFFIXED = re.compile(r"[^\s/]\.[A-Za-z0-9_~-]{1,20}\Z")
_MAX_DEPTH = 12
_MAX_PATH = 1200
_MOST_INDENTED = 30  # levels of nesting; the size of indented text grows with their square


def is_path(key: str) -> bool:
    """Return True if a key of an answer's object may be the path of a file.

    A name with blanks needs a suffix (`src/My Page.html`): `Why/how` and `The changes` are prose.
    """
    if not 0 < len(key) <= _MAX_PATH or "\n" in key or "://" in key:
        return False
    if key in _BARE_NAMES or _SUFFIXED.search(key):
        return True
    return " " not in key.strip() and (key.startswith(".") or "/" in key)


def begins_an_answer(key: str, value: str | None) -> bool:
    """Return True if an object with this first key can be an answer of files.

    `value` is the beginning of the key's string value, or None if the value is not a string.
    """
    if key in _PATH_KEYS and value is not None and is_path(value):
        return True
    holds_more = value is None or value.lstrip().startswith(("{", "["))
    return is_path(key) or (key.lower() in _WRAPPERS and holds_more)


def collect_files(value: Any, found: Reading) -> None:
    """Add every file of the parsed value to `found`."""
    if isinstance(value, str):
        _add_encoded_twice(value, found, _MAX_DEPTH)
    else:
        _add_nested(value, "", found, _MAX_DEPTH)


def _add_nested(value: Any, folder: str, found: Reading, depth: int) -> None:
    if depth == 0:
        return
    if isinstance(value, list):
        found.note("wrapped")
        for item in value:
            if isinstance(item, dict | list):
                _add_nested(item, folder, found, depth - 1)
    elif isinstance(value, dict) and not _add_described_file(value, folder, found):
        for key, item in value.items():
            _add_entry(str(key), item, folder, found, depth)


def _add_described_file(value: dict[str, Any], folder: str, found: Reading) -> bool:
    """Add the file of `{"path": ..., "content": ...}`; return False if the object has another form."""
    name = next((key for key in _PATH_KEYS if isinstance(value.get(key), str)), None)
    key = next((key for key in _CONTENT_KEYS if key in value), None)
    if name is None or key is None or not _is_described(value, name, key):
        return False
    content = _content(value[name], value[key], found)
    if content is not None:
        found.note("wrapped")
        found.add(folder + value[name], content)
    return True


def _is_described(value: dict[str, Any], name: str, key: str) -> bool:
    """Return True if the object is a file, not data (`{"name": "India", "code": "IN"}`) or a wrapper."""
    path = value[name]
    if any(isinstance(value.get(each), dict | list) for each in _WRAPPERS.difference(_CONTENT_KEYS)):
        return False
    certain = name not in {"name", "file"} and "content" in key.lower()
    return is_path(path) or (certain and 0 < len(path) <= _MAX_PATH)


def _add_entry(key: str, item: Any, folder: str, found: Reading, depth: int) -> None:
    if isinstance(item, dict | list) and (key.lower() in _WRAPPERS and not folder):
        found.note("wrapped")
        _add_nested(item, folder, found, depth - 1)
    elif isinstance(item, dict) and is_path(key) and _holds_content(key, item):
        found.note("wrapped")
        _add_described_file({"path": key, **item}, folder, found)
    elif isinstance(item, dict) and not _SUFFIXED.search(key):
        _add_folder(key, item, folder, found, depth)
    elif isinstance(item, list) and not is_path(key):
        _add_nested(item, folder, found, depth - 1)
    elif is_path(key):
        content = _content(key, item, found)
        if content is not None:
            found.add(folder + key, content)
    elif isinstance(item, str) and (key.lower() in _WRAPPERS or key in _CONTENT_KEYS):
        _add_encoded_twice(item, found, depth)
    else:
        found.note("ignored_key")


def _holds_content(path: str, item: dict[str, Any]) -> bool:
    """Return True if the object describes the file at this path.

    For a .json file the object may be the content itself.
    """
    texts = [item[key] for key in _CONTENT_KEYS if isinstance(item.get(key), str | list)]
    if path.endswith(".json"):
        return any(isinstance(text, str) and text.lstrip().startswith(("{", "[")) for text in texts)
    return bool(texts) and len(item) <= len(_PATH_KEYS)


def _add_folder(key: str, item: dict[str, Any], folder: str, found: Reading, depth: int) -> None:
    """Add the files of an object that is a folder, or a single file under a key like `file_1`."""
    if any(isinstance(item.get(name), str) for name in _PATH_KEYS):
        found.note("wrapped")
        _add_nested(item, folder, found, depth - 1)
        return
    found.note("nested_folders")
    _add_nested(item, f"{folder}{key.rstrip('/')}/", found, depth - 1)


def _add_encoded_twice(text: str, found: Reading, depth: int) -> None:
    value = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text, strict=False)
    found.note("encoded_twice" if isinstance(value, dict | list) else "ignored_key")
    _add_nested(value, "", found, depth - 1)


def _content(path: str, value: Any, found: Reading) -> str | None:
    """Return a file's text from a string, a list of lines, or the JSON value of a .json file."""
    if isinstance(value, str):
        return value
    is_lines = isinstance(value, list) and value and all(isinstance(line, str) for line in value)
    if is_lines and not (path.endswith(".json") and not value[0].lstrip().startswith(("{", "["))):
        found.note("lines")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in value)
    if path.endswith(".json") and isinstance(value, dict | list):
        with suppress(RecursionError):  # nested too deeply for json.dumps
            indent = None if _is_deeper(value, _MOST_INDENTED) else 2
            text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
            found.note("json_content")
            return text
    found.note("ignored_key")
    return None


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)
