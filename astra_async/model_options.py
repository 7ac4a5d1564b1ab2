"""Models of a run from the command line or the TOML file, with the options for all models."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConfigError
from astra_async.listing import grouped_by_text
from astra_async.redaction import public_url, register_secrets_in, register_secrets_in_url
from astra_async.types import ModelSettings, Text, checked_value, declared
from astra_async.types.declarations import shown
from astra_async.types.task_work import WITHOUT_MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.options import Options
    from astra_async.types import Declared


# Options that set the field of the same name for all models.
_OF_ALL = (
    *("base_url", "max_in_flight", "temperature", "max_tokens", "reasoning_effort"),
    *("price_input", "price_output"),
)
_ALIKE = 0.75  # a key at least this similar is a misspelled setting, not a field of a provider


def chosen_models(typed: Options, tables: Sequence[Mapping[str, Any]]) -> tuple[ModelSettings, ...]:
    """Return the models of `--model`, else of the TOML file's `tables`, with the options for all models.

    Raises ConfigError: there is no model, two models have the same name, or a value is invalid.
    """
    known = [replace(_plain_model(values["spec"]), **values) for values in tables]
    by_name = {model.name: model for model in known}
    by_spec = {model.spec: model for model in reversed(known)}
    chosen = [by_name.get(spec) or by_spec.get(spec) or _plain_model(spec) for spec in typed.model] or known
    if not chosen and typed.agent and WITHOUT_MODEL.keys() >= set(typed.agent):
        chosen = [_plain_model("simulated/steady")]  # only names the samples of agents that call no model
    if not chosen:
        raise ConfigError("no model: add --model PROVIDER/NAME, or [[models]] to the TOML file")
    changes = {name: getattr(typed, name) for name in _OF_ALL} | {"batch": typed.batch or None}
    changes = {name: value for name, value in changes.items() if value is not None}
    changes |= model_settings(typed.model_setting)
    models = tuple(replace(model, **_added(model, changes)) for model in chosen)
    for name, count in Counter(model.name for model in models).items():
        if count > 1:
            raise ConfigError(
                f"two models are called {name!r}: set a different `name` for one of them in TOML"
            )
    return models


def model_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse and check `-M KEY=VALUE` like lines of a `[[models]]` table.

    A dotted key sets an entry of a table (`extra_headers.X-Title=mine`). An unknown key is a field of the
    request's body (`extra_body`). A value that is not valid TOML is text. Raises ConfigError.
    """
    known = {item.name: item for item in declared(ModelSettings) if item.name != "spec"}
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        name, where = key.strip(), f"-M {shown(key)}"
        if not (equals and name and text.strip()):
            raise ConfigError(f"-M {shown(pair)}: write it as KEY=VALUE, such as top_p=0.9")
        first = name.partition(".")[0].strip()
        if first not in known:
            if close := difflib.get_close_matches(first, [*known, "spec"], n=1, cutoff=_ALIKE):
                hint = f"did you mean `{close[0]}`?" if close[0] != first else "name models with --model"
                raise ConfigError(f"{where}: {hint} For a field of the request's body use extra_body.{first}")
            name, first = f"extra_body.{name}", "extra_body"
        table = _table_of(name, text.strip(), known[first])
        register_secrets_in(table)
        item, value = known[first], table[first]
        checked = checked_value(item, value, f"{where}={shown(text)}")
        found[first] = laid_over(found.get(first, {}), checked) if item.is_table else checked
    return found


def _added(model: ModelSettings, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides of one model: tables are merged, other values replaced."""
    return {
        name: laid_over(getattr(model, name), value) if isinstance(value, Mapping) else value
        for name, value in changes.items()
    }


def _table_of(key: str, text: str, item: Declared) -> dict[str, Any]:
    """Parse a line of TOML. The value of a setting that is neither a table nor a list is text."""
    if not (item.is_table or item.several):
        return {key: Text(text)}
    for value in (text, json.dumps(text)):
        with suppress(tomllib.TOMLDecodeError):
            table = tomllib.loads(f"{key} = {value}")
            return {
                name: [each] if item.several and isinstance(each, str) else each
                for name, each in table.items()
            }
    raise ConfigError(f'-M {shown(key)}: write the key as in TOML, such as extra_body.min_p or "a b"')


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables key by key; values of `above` have priority."""
    merged = {**below, **above}
    for name, value in below.items():
        if isinstance(value, Mapping) and isinstance(above.get(name), Mapping):
            merged[name] = laid_over(value, above[name])
    return merged


def with_addresses(
    models: Sequence[ModelSettings], environ: Mapping[str, str]
) -> tuple[tuple[ModelSettings, ...], tuple[str, ...]]:
    """Fill in the addresses from the variables of the providers' SDKs.

    Flags and TOML have priority. A variable applies only to models of its provider. Returns the models, and a
    line for each address. Raises ConfigError: the value of a variable is not an address.
    """
    from astra_async.asking.providers import PROVIDERS

    (address,) = (item for item in declared(ModelSettings) if item.name == "base_url")
    found, told = [], []
    for model in models:
        variables = PROVIDERS[model.provider].address_variables
        name = next((name for name in variables if environ.get(name, "").strip()), "")
        if name and model.base_url is None and model.endpoint is None:
            url = environ[name].strip()
            checked_value(address, url, f"{name}={shown(url)}")
            register_secrets_in_url(url)
            told.append((model.name, f"requests go to {public_url(url)} ({name})"))
            found.append(replace(model, base_url=url))
        else:
            found.append(model)
    return tuple(found), tuple(grouped_by_text(told))


def _plain_model(spec: str) -> ModelSettings:
    from astra_async.asking.providers import parse_spec

    provider, model = parse_spec(spec)
    return ModelSettings(name=spec, spec=spec, provider=provider, model=model)
