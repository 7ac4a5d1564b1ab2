"""Foreign text made fit for a message: one short line without keys, whoever wrote it."""

from __future__ import annotations

import re
from urllib.parse import quote

LONGEST_MESSAGE = 300
_MASK = "***"

# What keys look like, for those that are not ours (a proxy's, a gateway's own) or come back in part:
# OpenAI quotes a refused key with its middle starred out. Single character classes: linear time.
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|nvapi|hf|r8|pplx|csk|tgp|ABSK|AIza|AKIA|ASIA|AQ\.)[-_A-Za-z0-9*.]{8,}"
    r"|(?<=[Bb]earer )[^\s\"',;]+"
    r"|(?<=://)[^\s/@\"']+(?=@)"
)


def mask(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text with each secret, and whatever looks like a key, replaced by `***`."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, _MASK).replace(quote(secret, safe=""), _MASK)
    return _KEY_SHAPES.sub(_MASK, text)


def one_line(text: str, secrets: tuple[str, ...] = ()) -> str:
    """At most 300 characters on one line, control characters gone, keys masked.

    Masked before it is cut, so that no half of a key is left at the end.
    """
    text = mask(text[: 16 * LONGEST_MESSAGE], secrets)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
