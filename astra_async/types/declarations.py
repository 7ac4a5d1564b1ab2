"""Declaration and check of settings: annotated fields of frozen dataclasses.

    samples: Annotated[int, Ge(1), Setting("Number of independent samples of each problem.", "K")] = 32

The declaration checks type and range of a value from any source. Flags, help and the tables of
`docs/formats.md` are made from the same field. Users cannot set a field without a `Setting`.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from annotated_types import Ge, Gt, MinLen, Predicate

from astra_async.errors import ConfigError
from astra_async.redaction import public_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_SHOWN = 200
_MOST_LOCAL = 64
_NO_AGENTS = {"xml", "json", "both", "none"}
_SPELLED = {**dict.fromkeys(("yes", "y", "on", "t"), True), **dict.fromkeys(("no", "n", "off", "f"), False)}
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "le": operator.le,
    "min_length": lambda value, least: len(value) >= least,
    "func": lambda value, check: check(value),
}
_NOUNS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Description of a setting for users.

    Attributes:
        help: meaning of the setting.
        metavar: name of the value in the help.
        asked: True if the setting changes requests to a model; it is then part of the run's fingerprint.
        short: letter of an option without a long flag.
    """

    help: str
    metavar: str = ""
    asked: bool = False
    short: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One declared setting: `kind` is its type without None, with ranges; `default` None means unset."""

    name: str
    kind: Any
    default: Any
    about: Setting

    @property
    def plain(self) -> Any:
        """Return the type without ranges."""
        return _bare(self.kind)

    @property
    def several(self) -> bool:
        """Return True for a list."""
        return get_origin(self.plain) is tuple

    @property
    def is_table(self) -> bool:
        """Return True for a table with arbitrary keys."""
        return get_origin(self.plain) in (dict, Mapping)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the permitted words of a choice; empty for other types."""
        kind = get_args(self.plain)[0] if self.several else self.plain
        return get_args(kind) if get_origin(kind) is Literal else ()

    @property
    def rule(self) -> str:
        """Return the permitted values as a noun phrase, such as `a whole number of 1 or more`."""
        return _phrase(self.kind)


def declared(table: type) -> tuple[Declared, ...]:
    """Return the settings of a dataclass in order."""
    hints = get_type_hints(table, include_extras=True)
    found = []
    for item in fields(table):
        about = next((part for part in _metadata(hints[item.name]) if isinstance(part, Setting)), None)
        if about is not None:
            default = None if item.default is MISSING else item.default
            kind = _without_none(hints[item.name])
            found.append(Declared(name=item.name, kind=kind, default=default, about=about))
    return tuple(found)


def checked_table(table: type, values: object, where: str) -> dict[str, Any]:
    """Return the checked keys and values of a TOML table; `where` names file and table.

    Raises ConfigError: `values` is not a table, a key is unknown, or a value is invalid.
    """
    known = {item.name: item for item in declared(table)}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: a table of keys is expected; known keys: {', '.join(known)}")
    for name in values:
        refuse_unknown(name, known, where)
    return {
        name: checked_value(known[name], value, f"{where}: {name} = {shown(repr(value))}")
        for name, value in values.items()
    }


def checked_value(item: Declared, value: object, where: str) -> Any:
    """Return the checked value in the declared type; `where` has the place, name and value for messages.

    A `Text` (from a flag or variable) is parsed; all other values must have the declared type.
    Raises ConfigError.
    """
    if isinstance(value, list):
        value = tuple(value)
    is_text = isinstance(value, Text)
    with suppress(msgspec.ValidationError):
        spelled = _spelled(item.plain, str(value)) if is_text else value
        if _fits(item.kind, found := msgspec.convert(spelled, item.plain, strict=not is_text)):
            return found
    # The message omits msgspec's reason, because it may repeat a part of the value with an unmasked secret.
    raise ConfigError(f"{where}: {item.rule} is expected")


def _spelled(kind: Any, text: str) -> Any:
    """Return a text as msgspec expects it: booleans as true, false, 1 or 0, and numbers without `_`."""
    if kind is bool:
        return _SPELLED.get(text.lower(), text)
    return text.strip().replace("_", "") if kind in (int, float) else text


class Text(str):
    """Typed value of a setting of any type: `3`, `0.5`, `true`."""

    __slots__ = ()


def refuse_unknown(name: str, known: Iterable[str], where: str) -> None:
    """Raise ConfigError for an unknown name; the message has the closest known name."""
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"known keys: {', '.join(names)}"
        raise ConfigError(f"{where}: unknown key `{name}`; {hint}")


def is_http_url(text: str) -> bool:
    """An http:// or https:// URL without user and password."""
    try:
        parts = urlsplit(text.strip())
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return whole and parts.username is None and parts.password is None


def is_cluster(text: str) -> bool:
    """The address of a Dask scheduler (tcp://HOST:PORT, tls://HOST:PORT), or local:N with N from 1 to 64."""
    kind, _, number = text.partition(":")
    if kind == "local":
        return number.isascii() and number.isdigit() and 1 <= int(number) <= _MOST_LOCAL
    try:
        parts = urlsplit(text)
        return parts.scheme in {"tcp", "tls"} and bool(parts.hostname and parts.port) and not parts.username
    except ValueError:
        return False


def is_reward_range(text: str) -> bool:
    """Two finite numbers LOW:HIGH with LOW < HIGH."""
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        return False
    return math.isfinite(low) and math.isfinite(high) and low < high


_AGENT_NAME = r"[a-z0-9][a-z0-9.-]{0,40}(?:@[0-9][A-Za-z0-9.+-]{0,40})?"


def is_agent_name(text: str) -> bool:
    """A NAME or NAME@VERSION of lower-case letters, digits, dots and hyphens.

    The names of answer formats are no agents: xml, json, none and both.
    """
    return re.fullmatch(_AGENT_NAME, text) is not None and text not in _NO_AGENTS


# Types of many settings; None: not set.
Word = Annotated[str | None, MinLen(1)]
Address = Annotated[str | None, Predicate(is_http_url)]
Whole = Annotated[int | None, Ge(1)]
Positive = Annotated[float | None, Gt(0)]
Price = Annotated[float | None, Ge(0)]


def shown(value: object) -> str:
    """Return a value for a message, without possible secrets before an @ or after a ?."""
    text = value if isinstance(value, str) else repr(value)
    if "@" in text or "://" in text:
        text = public_text(text)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _fits(hint: Any, value: Any) -> bool:
    """Return True if a value of the right type is within the declared ranges, also in lists and tables."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if not all(_BOUNDS[name](value, bound) for name, bound in _bounds(hint).items()):
        return False
    inner = get_args(_bare(hint))
    if isinstance(value, tuple):
        return all(_fits(inner[0], each) for each in value)
    return not (isinstance(value, dict) and inner) or all(_fits(inner[1], each) for each in value.values())


def _metadata(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _without_none(hint: Any) -> Any:
    bare = _bare(hint)
    if get_origin(bare) in (Union, UnionType):
        kept = tuple(part for part in get_args(bare) if part is not NoneType)
        bare = kept[0] if len(kept) == 1 else Union[kept]  # noqa: UP007 - built at run time
    rules = tuple(part for part in _metadata(hint) if not isinstance(part, Setting))
    return Annotated[(bare, *rules)] if rules else bare


def _phrase(hint: Any) -> str:
    bare, bounds = _bare(hint), _bounds(hint)
    if "func" in bounds:
        text = (bounds["func"].__doc__ or "a fitting value").strip().partition("\n")[0].rstrip(".")
        return text[0].lower() + text[1:]
    if get_origin(bare) is Literal:
        return f"one of {', '.join(map(str, get_args(bare)))}"
    if get_origin(bare) is tuple:
        inner = _phrase(get_args(bare)[0])
        return f"a list, each {inner}" if get_origin(get_args(bare)[0]) is Literal else "a list of texts"
    if get_origin(bare) in (dict, Mapping) or bare in (dict, Mapping):
        inner = _phrase(get_args(bare)[1]) if get_args(bare) else ""
        return f"a table of keys ({inner} for each)" if inner not in ("", "a value") else "a table of keys"
    return _NOUNS.get(bare, "a value") + _range(bounds)


def _bounds(hint: Any) -> dict[str, Any]:
    """Return the declared bounds of a value."""
    pairs = ((name, getattr(part, name, None)) for part in _metadata(hint) for name in _BOUNDS)
    return {name: bound for name, bound in pairs if bound is not None}


def _range(bounds: Mapping[str, Any]) -> str:
    if "ge" in bounds and "le" in bounds:
        return f" from {bounds['ge']} to {bounds['le']}"
    if "ge" in bounds:
        return f" of {bounds['ge']} or more"
    if "min_length" in bounds:
        return " that is not empty"
    return f" above {bounds['gt']}" if "gt" in bounds else ""
