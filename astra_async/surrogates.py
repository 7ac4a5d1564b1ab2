"""Halves of UTF-16 pairs, which JSON may carry and UTF-8 cannot: no paid answer is lost to an encoder."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """The text with halves that belong together joined, and each lone one as U+FFFD.

    The same object where there is none.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
