"""Where a problem's files lie: a cell's location made absolute against the projects root."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

_URL = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)
_SCHEMES = ("https", "http", "s3")


def locate(cell: str, root: str) -> str:
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
