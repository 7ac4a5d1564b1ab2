"""What one cell says: lists in both notations, expected tests, numbers, locations. Errors are ValueErrors."""

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

_OPENINGS = ('["', "['", "[{", '{"', "{'")  # begun as a list: never read as a name, even if cut off
_COUNT = re.compile(r"[-+]?[0-9][0-9.,]*")
_URL = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)
_SCHEMES = ("https", "http", "s3")
_MAX_LITERAL = 1024**2  # the reader of Python literals needs about 100 times the text's memory


def read_list(cell: str) -> tuple[str, ...]:
    """A JSON list (or a Python one, as pandas writes it), else `;`-separated; blanks are dropped.

    Raises:
        ValueError: looks like a list in brackets and is none.
    """
    return tuple(_text(entry) for entry in _entries(cell) if not _blank(entry))


def read_paths(cell: str) -> tuple[str, ...]:
    """A list of paths or patterns: as `read_list`, and a comma separates, too.

    Raises:
        ValueError: looks like a list in brackets and is none.
    """
    text = cell.strip()
    return read_list(text) if _is_bracketed(text) else tuple(listed_paths(text))


def read_tests(cell: str) -> tuple[ExpectedTest, ...]:
    """Expected tests: names, or objects `{name, file, type, weight}`, or one object `{name: weight}`.

    Duplicates stay: the expected names are a multiset.

    Raises:
        ValueError: an entry has no name, a weight is no number, or a number stands where a name belongs.
    """
    if _COUNT.fullmatch(cell.strip()):
        raise ValueError(
            f"{cell.strip()} is a number; names of tests are expected, or nothing to learn them from a run"
            f' (a test that is really named so: ["{cell.strip()}"])'
        )
    return tuple(_test(entry, place) for place, entry in enumerate(_entries(cell), 1) if not _blank(entry))


def read_seconds(cell: str) -> float | None:
    """A positive number of seconds; an empty cell is None.

    Raises:
        ValueError: not a positive, finite number.
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
    """A problem's id: any text on one line that does not name a path or break a key.

    Raises:
        ValueError: empty, too long, or with control characters.
    """
    text = cell.strip()
    if not text:
        raise ValueError("the id is empty")
    if len(text) > 200 or not text.isprintable():  # noqa: PLR2004 - ids stand in tables and file names
        raise ValueError(f"the id {_short(text)} is longer than 200 characters or holds control characters")
    return text


def read_location(cell: str, root: str) -> str:
    """The absolute location that a cell names, relative ones taken from `root` (a folder or a URL).

    Raises:
        ValueError: a scheme that nothing here can fetch.
    """
    text = cell.strip()
    if _URL.match(text):
        return _from_url(text)
    if _URL.match(root):
        return _joined(root, text)
    # Not Path's own: that raises where nobody has the name, and `~name` may be a folder.
    return str(Path(root, os.path.expanduser(text.replace("\\", "/"))).absolute())  # noqa: PTH111


def _entries(cell: str) -> list[object]:
    text = cell.strip()
    if _is_bracketed(text):
        value = _bracketed(text)
        if isinstance(value, dict):
            return [value] if "name" in value else [{"name": k, "weight": v} for k, v in value.items()]
        return list(value)
    # A list of lines is what a spreadsheet cell holds when somebody typed one entry per line.
    return list(re.split(r"[;\n]" if ";" in text else r"\n", text))


def _is_bracketed(text: str) -> bool:
    return text[:1] + text[-1:] in {"[]", "{}"} or text.startswith(_OPENINGS)


def _bracketed(text: str) -> list[object] | dict[str, object]:
    try:
        value: object = json.loads(text)
    except ValueError as error:
        value = _python_literal(text)
        if value is None:
            raise ValueError(f"neither a JSON list nor `;`-separated: {error}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return {str(key): child for key, child in value.items()}
    raise ValueError("a list is expected")


def _python_literal(text: str) -> object:
    """The value of Python's own notation for a list, `['a', 'b']`; None when it is not that."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings(action="ignore", category=Warning):  # stray backslashes in names
            value: object = ast.literal_eval(text)
        joins = _joins_texts(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, tokenize.TokenError):
        return None
    if joins:
        raise ValueError("two texts stand side by side without a comma, as NumPy writes arrays; add commas")
    return value


def _joins_texts(text: str) -> bool:
    """Whether Python would make one text of two, `'a' 'b'`."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kinds = [token.type for token in tokens if token.type not in {tokenize.NL, tokenize.COMMENT}]
    return any(pair == (tokenize.STRING, tokenize.STRING) for pair in pairwise(kinds))


def _blank(entry: object) -> bool:
    return entry is None or (isinstance(entry, str) and not entry.strip())


def _text(entry: object) -> str:
    if isinstance(entry, dict | list):
        raise ValueError(f"{_short(entry)} stands where a text is expected")  # noqa: TRY004 - a data error
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
        raise ValueError(f"test {place}: the weight {_short(value)} is not a number of 0 or more")
    return weight


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - one readable line


def _from_url(text: str) -> str:
    scheme = urlsplit(text).scheme.lower()
    if scheme == "file":
        return str(Path(unquote(urlsplit(text).path)))
    if scheme not in _SCHEMES:
        raise ValueError(f"{scheme}:// is not supported; a folder, a .zip, https://, s3:// or file:// is")
    return scheme + text[len(scheme) :]


def _joined(root: str, key: str) -> str:
    """A key below an `s3://bucket/prefix` or https root; a query of the root is not carried over."""
    key = key.replace("\\", "/").lstrip("/")
    if root.lower().startswith("s3://"):
        return _from_url(root.rstrip("/") + "/" + key)
    address = urlsplit(root)._replace(query="", fragment="").geturl().rstrip("/")
    # A key may hold spaces and `#`; a percent sign is taken as already quoted.
    return _from_url(address + "/" + quote(key, safe="/%?=&+:@!$'()*,;~"))
