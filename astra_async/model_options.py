"""The models of a run: those of the command line or the TOML file, with what options say of all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConfigError
from astra_async.listing import told_once
from astra_async.redaction import keep_secrets_in_url, public_url
from astra_async.types import ModelSettings, checked_value, declared
from astra_async.types.declarations import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.options import Options


def chosen_models(typed: Options, tables: Sequence[Mapping[str, Any]]) -> tuple[ModelSettings, ...]:
    """Return the models that `--model` names, else those of the TOML file's `tables`.

    Raises ConfigError: there is none, or two have one name.
    """
    known = [replace(_plain_model(values["spec"]), **values) for values in tables]
    by_name = {model.name: model for model in known}
    by_spec = {model.spec: model for model in reversed(known)}
    chosen = [by_name.get(spec) or by_spec.get(spec) or _plain_model(spec) for spec in typed.model] or known
    if not chosen:
        raise ConfigError("no model: add --model PROVIDER/NAME, or [[models]] to the TOML file")
    for name, count in Counter(model.name for model in chosen).items():
        if count > 1:
            raise ConfigError(f"two models are called {name!r}: give one a `name` of its own in TOML")
    overrides = {
        "base_url": typed.base_url,
        "max_in_flight": typed.max_in_flight,
        "batch": typed.batch or None,
    }
    changes: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    return tuple(replace(model, **changes) for model in chosen)


def with_addresses(
    models: Sequence[ModelSettings], environ: Mapping[str, str]
) -> tuple[tuple[ModelSettings, ...], tuple[str, ...]]:
    """Fill in the addresses that the variables of the providers' own SDKs name.

    Flags and TOML outrank them, and a variable is for its own provider's models only. Returns the models and
    a line for each address. Raises ConfigError: a variable holds no address.
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
            keep_secrets_in_url(url)
            told.append((model.name, f"requests go to {public_url(url)} ({name})"))
            found.append(replace(model, base_url=url))
        else:
            found.append(model)
    return tuple(found), tuple(told_once(told))


def _plain_model(spec: str) -> ModelSettings:
    from astra_async.asking.providers import parse_spec

    provider, model = parse_spec(spec)
    return ModelSettings(name=spec, spec=spec, provider=provider, model=model)
