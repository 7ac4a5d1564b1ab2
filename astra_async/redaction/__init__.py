"""Mask secrets in everything the program writes: messages, events, records and reports.

There are two rules. First, secrets that the user configured (a key's variable, a password or signature in a
URL, the value of a header) are registered by value with `register_secret` and masked in every spelling, in
base64 and in hex. The text of an answer is tested and therefore not masked, with one exception: values that
were sent to the answer's server. A model cannot know those, so any occurrence is an echo by the server.

Second, servers send secrets that were never registered, so strings shaped like a key are masked as well.
Ordinary words must never match: a shape needs a digit within a long piece, or a position that only secrets
have (`user:password@`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from astra_async.redaction.secret_patterns import MASK, SecretRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST_MESSAGE = 300
_LEAST_SECRET = 8  # characters; masking shorter values would mask ordinary words
_HASH_CHARACTERS = 12

_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:[A-Z]*KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?|AUTH|SIGNATURE)(?:_|$)"
)
_NO_SECRET_VARIABLE = re.compile(r"(?:_FILE|_PATH|_DIR|_SOCK|_ID|_URI|^PWD|^OLDPWD)$")
# Names of query parameters, of fields and of headers whose values are secrets.
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:sig|signature|(?:api[-_]?|access[-_]?|aws[-_]?)?key(?:[-_]?id)?|[a-z]*apikey|token|secret"
    r"|passwor[dt]|passwd|pwd|credentials?|auth|authorization|code|policy|awsaccesskeyid|googleaccessid)$",
    re.IGNORECASE,
)
_HARMLESS_PARAMETERS = frozenset({"alt", "api-version", "beta", "region", "version", "versionid"})
_HARMLESS_HEADERS = frozenset(
    {"accept", "anthropic-beta", "http-referer", "openai-beta", "referer", "user-agent", "x-title"}
)
_ADDRESSES = ("base_url", "endpoint", "endpoint_url", "projects")
_TEMPLATE = re.compile(r"(?:(?:Bearer|Basic|Token) )?\$\{\w+\}")
_RECORDED = re.compile(rf"sha256:[0-9a-f]{{{_HASH_CHARACTERS}}}")

# Shape of keys that are not registered (a proxy's or router's key) or are incomplete: OpenAI quotes a
# rejected key with stars in its middle. Single character classes keep the search linear.
_KEY_SHAPE = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|xai|nvapi|hf|r8|pplx|csk|tgp|ghp|gho|glpat|xox[abps])[-_]|ABSK|AIza|AKIA|ASIA|AQ\.)"
    r"[-_A-Za-z0-9*.+/=]{8,}"
)
_SURE_SHAPE = re.compile(r"\b(?:sk-(?:proj|ant|or|svcacct|admin)-|AIzaSy|github_pat_)[-_A-Za-z0-9*.]{8,}")
_AUTHORIZATION = re.compile(
    r"(\bAuthorization[\"']?\s?[:=]\s?[\"']?(Bearer |Basic |Token )?)([-.~+/=\w*]{6,})", re.IGNORECASE
)
_BEARER = re.compile(r"(?<=[Bb]earer )[-.~+/=\w*]{8,}")
_BASIC = re.compile(r"(?<=[Bb]asic )[A-Za-z0-9+/=]{4,}")
# Before the host: a password, or a token as the user name of an HTTP URL. `ssh://me@host` holds no secret.
_USERINFO = re.compile(
    r"(?<=://)[^\s/@\"'<>\[\]:]{0,500}:[^\s/@\"'<>\[\]]{1,500}@"
    r"|(?:(?<=http://)|(?<=https://))[^\s/@\"'<>\[\]]{1,500}@"
)
_PARAMETER = re.compile(r"([?&](?:amp;)?)([-\w.]{1,60})=([^&\s\"'<>#;]{1,4000})")
_SIGNATURE = re.compile(
    r"(?<![-\w])((?:X-Amz-|X-Goog-)?(?:Signature|Credential|Security-Token)|AWSAccessKeyId"
    r"|(?:x-)?api[-_]?key|access_token)(=|[\"']?\s?:\s?[\"']?)([^&\s\"'<>,;]{4,4000})",
    re.IGNORECASE,
)
_LONG_PIECE, _LONG_KEY = 12, 24

_LEAST_SENT = 16  # characters; a shorter value, or one without a digit, may occur in an answer by chance


_known, _sent = SecretRegistry(), SecretRegistry()


def register_secret(*values: str) -> None:
    """Register values that are masked from now on in all written text, in every known spelling."""
    for value in values:
        if len(value.strip()) >= _LEAST_SECRET:
            _known.register(value.strip())


def register_sent_secret(*values: str) -> None:
    """Register secrets that are also sent to a server, which may echo them within an answer."""
    register_secret(*values)
    for value in values:
        if len(value.strip()) >= _LEAST_SENT and _has_digit(value):
            _sent.register(value.strip())


def mask_sent(text: str) -> str:
    """Mask only values that were sent to servers; for the text of an answer."""
    return _sent.mask(text)


def register_secrets_of(environ: Mapping[str, str]) -> None:
    """Register an environment's secrets: keys, tokens and passwords by name, and secrets within URLs."""
    for name, value in environ.items():
        if _SECRET_VARIABLE.search(name.upper()) and not _NO_SECRET_VARIABLE.search(name.upper()):
            register_secret(value)
        if "://" in value:
            register_secrets_in_url(value)


def register_secrets_in_url(url: str) -> None:
    """Register the URL's password (or a user name used as one) and query values that may be secrets."""
    try:
        parts = urlsplit(url)
        user, password = parts.username or "", parts.password
    except ValueError:
        return
    secret = password if password is not None else user
    register_secret(secret, unquote(secret))
    for name, value in parse_qsl(parts.query):
        if _is_secret_name(name) or (name.lower() not in _HARMLESS_PARAMETERS and _has_digit(value)):
            register_secret(value)


def register_secrets_in(value: Any, name: str = "") -> None:
    """Register the secrets of a configuration value: URLs, headers, and fields with a secret's name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            known = name == "extra_headers" and key.lower() not in _HARMLESS_HEADERS
            register_secrets_in(inner, "secret" if known else key)
    elif isinstance(value, list | tuple):
        for inner in value:
            register_secrets_in(inner, name)
    elif isinstance(value, str):
        if "://" in value:
            register_secrets_in_url(value)
        elif "@" in value and name in _ADDRESSES:  # an address without its scheme
            register_secret(value.rpartition("@")[0].partition(":")[2])
        elif _is_secret_name(name) and not _TEMPLATE.fullmatch(value):
            register_secret(value, value.rpartition(" ")[2])  # with and without its scheme (`Bearer`)


def mask(text: str) -> str:
    """Replace every registered secret, and every string shaped like one, with `***`.

    The beginning of a secret is masked as well, because this program or a server may have cut the text there.
    """
    text = _known.mask(text)
    lower = text.lower()
    for shape, masked, needles in _SHAPES:
        if any(needle in lower for needle in needles):
            text = shape.sub(masked, text)
    return text


def one_line(value: object, *, length: int = LONGEST_MESSAGE, ends: bool = False) -> str:
    """Return foreign text on one line, cut to `length` characters: its start, or its start and end (`ends`).

    Control characters are removed and secrets masked before the text is cut. For a very long text, only its
    start (and end) is examined, without the words at the cut, which may be incomplete. Bytes are decoded as
    UTF-8.
    """
    most = 16 * length
    if isinstance(value, bytes):  # UTF-8 uses at most 4 bytes a character
        value = (value if ends else value[: 4 * most + 1]).decode("utf-8", "replace")
    text = str(value)
    if len(text) > most:
        head = text[: most // 2 if ends else most].rsplit(None, 1)[:1]
        text = " ".join([*head, *text[-most // 2 :].split(None, 1)[-1:]] if ends else head)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    text = mask(text)
    if len(text) <= length:
        return text
    return f"{text[: length // 2 - 2]} … {text[-(length // 2) + 2 :]}" if ends else text[: length - 1] + "…"


def public_url(url: str) -> str:
    """Return the URL without user, password and trailing slash, and with its query values masked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return mask(url)
    pairs = [
        f"{quote(name)}={quote(value) if name.lower() in _HARMLESS_PARAMETERS else MASK}"
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    host = parts.netloc.rpartition("@")[2]
    return _known.mask(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "&".join(pairs), "")))


def public_text(text: str) -> str:
    """Mask the text before an `@` and after a `?` in a string that may be an address."""
    text = re.sub(r"(\w+://)?[^\s'\"]*@", rf"\1{MASK}@", text)
    return re.sub(r"\?[^\s'\"]+", f"?{MASK}", text)


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers for a record: harmless values unchanged, all others as the beginning of a hash.

    A value that only refers to `${VARIABLE}` stays unchanged. A recorded hash is not hashed again.
    """
    return {
        name: value
        if name.lower() in _HARMLESS_HEADERS or _TEMPLATE.fullmatch(value) or _RECORDED.fullmatch(value)
        else _hashed(value)
        for name, value in headers.items()
    }


def public_table(value: Any, name: str = "") -> Any:
    """Return an open table (`extra_body`) for a record; fields with a secret's name are hashed."""
    if isinstance(value, dict):
        return {key: public_table(inner, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [public_table(inner, name) for inner in value]
    if not isinstance(value, str) or _TEMPLATE.fullmatch(value) or _RECORDED.fullmatch(value):
        return value
    return _hashed(value) if _is_secret_name(name) else mask(value)


def public_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a model's settings for run.json and the fingerprint."""
    public = dict(settings)
    for name in _ADDRESSES:
        if public.get(name):
            public[name] = public_url(public[name])
    if "extra_headers" in public:
        public["extra_headers"] = public_headers(public["extra_headers"])
    if "extra_body" in public:
        public["extra_body"] = public_table(dict(public["extra_body"]))
    return public


def _mask_parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={MASK if _is_secret_name(unquote(name)) else value}"


def _mask_authorization(found: re.Match[str]) -> str:
    before, scheme, value = found.groups()
    sure = re.search(r"\d|\*|\w\.\w" if scheme else r"\d|\*", value)
    return f"{before}{MASK}" if sure else found[0]


def _mask_signature(found: re.Match[str]) -> str:
    name, separator, value = found.groups()
    sure = name[:2].lower() == "x-" or len(value) >= _LEAST_SECRET
    return f"{name}{separator}{MASK}" if sure and _has_digit(value) else found[0]


def _mask_basic(found: re.Match[str]) -> str:
    """Mask the text after `Basic` if it decodes to user:password; `Basic` is also an ordinary word."""
    try:
        decoded = base64.b64decode(found[0], validate=True)
    except (binascii.Error, ValueError):
        return found[0]
    return MASK if b":" in decoded else found[0]


def _is_secret_name(name: str) -> bool:
    lower = name.lower()
    return lower.startswith(("x-amz-s", "x-amz-c", "x-goog-s", "x-goog-c")) or bool(_SECRET_NAME.search(name))


def _is_key(text: str) -> bool:
    """Return True if the text after a key's prefix looks random: stars, or a digit in a long piece."""
    pieces = re.split(r"[-_.]", text)
    whole = "".join(pieces)
    return (
        "**" in text
        or any(len(piece) >= _LONG_PIECE and _has_digit(piece) for piece in pieces)
        or (len(whole) >= _LONG_KEY and _has_digit(whole) and whole != whole.lower())
    )


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


# (pattern, replacement, substrings), tried in this order. A pattern is only searched if the lowercased text
# holds one of the substrings: most texts hold none, and test output can be long.
_SHAPES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str], tuple[str, ...]], ...] = (
    (_USERINFO, f"{MASK}@", ("://",)),
    (_PARAMETER, _mask_parameter, ("?", "&")),
    (
        _SIGNATURE,
        _mask_signature,
        ("signature", "credential", "security-token", "accesskeyid", "api", "access_token"),
    ),
    (_AUTHORIZATION, _mask_authorization, ("authorization",)),
    (_SURE_SHAPE, MASK, ("sk-", "aizasy", "github_pat_")),
    (_BASIC, _mask_basic, ("basic ",)),
    (_BEARER, lambda found: MASK if re.search(r"[*\d]", found[0]) else found[0], ("bearer ",)),
    (_KEY_SHAPE, lambda found: MASK if _is_key(found[0]) else found[0], ("",)),
)


def _hashed(value: str) -> str:
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:_HASH_CHARACTERS]}"
