"""Parse one CSV cell: lists, expected tests, numbers, locations. Invalid cells raise ValueError."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from astra_async.problems.manifest.document import number
from astra_async.problems.patterns import listed_paths
from astra_async.types import ExpectedTest

_OPENINGS = ('["', "['", "[{", '{"', "{'")  # parsed as a list, even if the closing bracket is missing
_COUNT = re.compile(r"[-+]?[0-9][0-9.,]*")
_URL = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)
_SCHEMES = ("https", "http", "s3")
_MAX_LITERAL = 1024**2  # ast.literal_eval needs about 100 times the text's memory


def read_list(cell: str) -> tuple[str, ...]:
    """Parse a JSON list, a Python list (as pandas writes it) or `;`-separated text; drop blank entries.

    Raises:
        ValueError: the cell has brackets but is not a valid list.
    """
    return tuple(_text(entry) for entry in _entries(cell) if not _blank(entry))


def read_paths(cell: str) -> tuple[str, ...]:
    """Parse a list of paths or patterns; same as `read_list`, but commas also separate entries.

    Raises:
        ValueError: the cell has brackets but is not a valid list.
    """
    text = cell.strip()
    return read_list(text) if _is_bracketed(text) else tuple(listed_paths(text))


def read_tests(cell: str) -> tuple[ExpectedTest, ...]:
    """Parse expected tests: names, objects `{name, file, type, weight}`, or one object `{name: weight}`.

    Duplicates are kept, because the expected names are a multiset.

    Raises:
        ValueError: an entry has no name, a weight is not a number, or the cell is a single number.
    """
    if _COUNT.fullmatch(cell.strip()):
        raise ValueError(
            f"{cell.strip()} is a number, not a list of tests; leave the cell empty to discover the tests"
            f' (if a test really has this name, write ["{cell.strip()}"])'
        )
    return tuple(_test(entry, place) for place, entry in enumerate(_entries(cell), 1) if not _blank(entry))


def read_seconds(cell: str) -> float | None:
    """Parse a positive number of seconds; return None for an empty cell.

    Raises:
        ValueError: the cell is not a positive, finite number.
    """
    text = cell.strip()
    if not text:
        return None
    match = re.fullmatch(r"([0-9.eE+]+) ?(?:s|sec|seconds)?", text)
    seconds = number(match[1]) if match else None
    if seconds is None or seconds <= 0:
        raise ValueError(f"{_short(text)} is not a positive number of seconds")
    return seconds


def read_id(cell: str) -> str:
    """Parse a problem id: printable text on one line, at most 200 characters.

    Raises:
        ValueError: the id is too long or empty, or contains control characters.
    """
    text = cell.strip()
    if not text:
        raise ValueError("the id is empty")
    if len(text) > 200 or not text.isprintable():  # noqa: PLR2004 - ids are used in tables and file names
        raise ValueError(f"the id {_short(text)} is longer than 200 characters or has control characters")
    return text


def read_location(cell: str, root: str) -> str:
    """Return the absolute location in a cell; relative ones are resolved against `root` (folder or URL).

    Raises:
        ValueError: the URL scheme is not supported.
    """
    text = cell.strip()
    if _URL.match(text):
        return _from_url(text)
    if _URL.match(root):
        return _joined(root, text)
    # Path.expanduser raises if no user has the name, but `~name` may be a folder.
    return str(Path(root, os.path.expanduser(text.replace("\\", "/"))).absolute())  # noqa: PTH111


def _entries(cell: str) -> list[object]:
    text = cell.strip()
    if _is_bracketed(text):
        value = _bracketed(text)
        if isinstance(value, dict):
            return [value] if "name" in value else [{"name": k, "weight": v} for k, v in value.items()]
        return list(value)
    # Spreadsheet cells often have one entry per line.
    return list(re.split(r"[;\n]" if ";" in text else r"\n", text))


def _is_bracketed(text: str) -> bool:
    return text[:1] + text[-1:] in {"[]", "{}"} or text.startswith(_OPENINGS)


def _bracketed(text: str) -> list[object] | dict[str, object]:
    try:
        value: object = json.loads(text)
    except ValueError as error:
        value = _python_literal(text)
        if value is None:
            raise ValueError(f"invalid list ({error}); write JSON, or separate entries by `;`") from error
    except RecursionError as error:
        raise ValueError("the list is nested too deeply") from error
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return {str(key): child for key, child in value.items()}
    raise ValueError("the cell is not a list")


def _python_literal(text: str) -> object:
    """Parse a Python list or dict literal such as `['a', 'b']`; return None if the text is not a literal."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings(action="ignore", category=Warning):  # invalid escapes in test names
            value: object = ast.literal_eval(text)
        joins = _joins_texts(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, tokenize.TokenError):
        return None
    if joins:
        raise ValueError("a comma is missing between two strings (NumPy prints arrays so); add the commas")
    return value


def _joins_texts(text: str) -> bool:
    """Return True if the text has adjacent string literals (`'a' 'b'`), which Python concatenates."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kinds = [token.type for token in tokens if token.type not in {tokenize.NL, tokenize.COMMENT}]
    return any(pair == (tokenize.STRING, tokenize.STRING) for pair in pairwise(kinds))


def _blank(entry: object) -> bool:
    return entry is None or (isinstance(entry, str) and not entry.strip())


def _text(entry: object) -> str:
    if isinstance(entry, dict | list):
        raise ValueError(f"expected text, not {_short(entry)}")  # noqa: TRY004 - a data error
    return str(entry).strip()


def _test(entry: object, place: int) -> ExpectedTest:
    if not isinstance(entry, dict):
        return ExpectedTest(name=_text(entry))
    value = {str(key).casefold(): child for key, child in entry.items()}
    name = next((value[key] for key in ("name", "testcase", "title") if not _blank(value.get(key))), None)
    if name is None:
        raise ValueError(f"test {place} has no name: {_short(entry)}")
    return ExpectedTest(
        name=_text(name),
        file=_text(value["file"]) if not _blank(value.get("file")) else None,
        type=_text(value["type"]) if not _blank(value.get("type")) else None,
        weight=_weight(value.get("weight"), place),
    )


def _weight(value: object, place: int) -> float | None:
    if _blank(value):
        return None
    weight = number(str(value))
    if weight is None or weight < 0:
        raise ValueError(f"test {place}: the weight {_short(value)} is not a number >= 0")
    return weight


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - one readable line


def _from_url(text: str) -> str:
    scheme = urlsplit(text).scheme.lower()
    if scheme == "file":
        return str(Path(unquote(urlsplit(text).path)))
    if scheme not in _SCHEMES:
        raise ValueError(f"{scheme}:// is not supported; use a folder, a .zip, https://, s3:// or file://")
    return scheme + text[len(scheme) :]


def _joined(root: str, key: str) -> str:
    """Append a key to an `s3://bucket/prefix` or https root; the root's query is dropped."""
    key = key.replace("\\", "/").lstrip("/")
    if root.lower().startswith("s3://"):
        return _from_url(root.rstrip("/") + "/" + key)
    address = urlsplit(root)._replace(query="", fragment="").geturl().rstrip("/")
    # Spaces and `#` in a key are quoted; `%` is kept because the key may already be quoted.
    return _from_url(address + "/" + quote(key, safe="/%?=&+:@!$'()*,;~"))
