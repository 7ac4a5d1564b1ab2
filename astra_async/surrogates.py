"""Lone surrogates, which JSON can carry but UTF-8 cannot encode."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates with U+FFFD.

    Return the same object if the text has no surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
