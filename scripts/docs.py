#!/usr/bin/env python3
"""Write the tables of docs/formats.md and docs/example.toml from the declarations in the code.

.venv/bin/python scripts/docs.py            write the changed files
.venv/bin/python scripts/docs.py --check    write nothing; exit 1 and print the files that would change
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from astra_async.answers import REPAIRS
from astra_async.metrics import ProblemRow
from astra_async.options import OTHER_VARIABLES, flag_of, options, tables, variable_of
from astra_async.overlay import PATH_REPAIRS
from astra_async.problems.columns import COLUMNS, REQUIRED
from astra_async.report.labels import CLASSES
from astra_async.running.trouble import EVENTS
from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.types import Declared, declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "formats.md"
EXAMPLE = ROOT / "docs" / "example.toml"
_BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def main() -> int:
    """Write or check the files; return the exit code."""
    wanted = {PAGE: page(PAGE.read_text(encoding="utf-8")), EXAMPLE: example()}
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in changed:
            print(f"{path.relative_to(ROOT)} differs from the code: run .venv/bin/python scripts/docs.py")
        return 1 if changed else 0
    for path in changed:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def page(text: str) -> str:
    """Return the page with new blocks. An unknown block is a KeyError."""
    return _BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]]() + found[3], text)


def columns() -> str:
    """Table of the fields of the problems CSV with their aliases."""
    rows = [
        (f"`{name}`" + (" (required)" if name in REQUIRED else ""), column.help, _code(column.names))
        for name, column in COLUMNS.items()
    ]
    return _table(("field", "meaning", "column names (without case, spaces, - and _)"), rows)


def _rule(item: Declared) -> str:
    return item.rule.removesuffix(" that is not empty")


def option_table() -> str:
    """Table of the options of a run with flag, variable and TOML key."""

    def names(name: str) -> tuple[str, ...]:
        return f"`{flag_of(name)}`", f"`{variable_of(name)}`", f"`{name}`"

    rows = [(*names(name), _rule(item), _default(item), item.about.help) for name, item in options().items()]
    return _table(("flag", "variable", "TOML key", "value", "default", "meaning"), rows)


def table_of(name: str) -> Callable[[], str]:
    """Table of the keys of one TOML table."""

    def made() -> str:
        rows = [
            (f"`{item.name}`", _rule(item), _default(item), item.about.help)
            for item in declared(tables()[name])
        ]
        return _table(("key", "value", "default", "meaning"), rows)

    return made


def variables() -> str:
    """Table of the variables without an option."""
    return _table(("variable", "meaning"), [(f"`{name}`", text) for name, text in OTHER_VARIABLES.items()])


def repairs() -> str:
    """Table of the repairs of an answer, by the name in the record."""
    repeated = {TIMEOUT_REPEATED: "not a repair: the tests timed out on a busy machine and ran again"}
    every = {**REPAIRS, **PATH_REPAIRS, **repeated}
    return _table(("repair", "meaning"), [(f"`{name}`", text) for name, text in every.items()])


def events() -> str:
    """Table of the kinds of events."""
    return _table(("kind", "meaning"), [(f"`{name}`", text) for name, text in EVENTS.items()])


def labels() -> str:
    """Table of the classes of labels.csv."""
    return _table(("label", "class in the paper"), [(f"`{name}`", text) for name, text in CLASSES.items()])


def problems_csv() -> str:
    """Table of the columns of problems.csv."""
    rows = [(f"`{item.name}`", PROBLEMS_CSV[item.name]) for item in fields(ProblemRow)]
    return _table(("column", "meaning"), rows)


PROBLEMS_CSV: Mapping[str, str] = {
    "model": "name of the model",
    "format": "answer format or agent",
    "problem_id": "id of the problem",
    "planned": "K",
    "valid": "samples with a final line",
    "perfect": "samples that passed all tests",
    "total": "T",
    "tests_passed": "sum of passed tests over the valid samples",
    "mean_tests_passed": "mean of passed tests over the valid samples",
    "mean_score": "mean of passed / total, from 0 to 1",
    "pass_at_1": "share of perfect samples, from 0 to 1",
    "sd": "standard deviation of the scores over the samples, ddof = 0; empty for one sample",
}

BLOCKS: Mapping[str, Callable[[], str]] = {
    "columns": columns,
    "options": option_table,
    "variables": variables,
    "repairs": repairs,
    "events": events,
    "labels": labels,
    "problems-csv": problems_csv,
    **{name: table_of(name) for name in tables()},
}

# Values that the example sets. All other keys are comments with their defaults.
_SET: Mapping[str, Mapping[str, str]] = {
    "": {"problems": '"bundled"', "samples": "4", "budget_usd": "20.0"},
    "models": {"spec": '"simulated/steady"', "name": '"steady"', "max_in_flight": "64"},
    "agents": {
        "name": '"own-agent"',
        "version": '"1"',
        "speaks": '"chat"',
        "command": """'python3 /opt/agent/work.py {prompt_file} --model {model}'""",
        "variables": '{ OPENAI_BASE_URL = "{base_url}", OPENAI_API_KEY = "{token}" }',
        "files": "{}",
        "logs": '[".own-agent/**/*.jsonl"]',
        "volume": '"own-agent"',
    },
    "sandbox": {"timeout_s": "300.0"},
}
_SHOWN: Mapping[str, str] = {
    "model": '["openai/gpt-4o"]',
    "out": '"runs/october"',
    "agent": '["none", "shell"]',
    "column": '["project=Project Zip"]',
    "only": '["product-api"]',
    "stop": '["END"]',
    "leave_out": '["*.lock"]',
    "extra_headers": '{ "x-team" = "${TEAM}" }',
    "extra_body": '{ user = "benchmark" }',
    "denied": '{ weak = "key" }',
    "endpoint": '"https://my.openai.azure.com"',
    "base_url": '"http://localhost:8000/v1"',
    "cluster": '"tcp://head:8786"',
    "endpoint_url": '"http://localhost:9000"',
    "batch_s3_endpoint": '"http://localhost:9000"',
    "batch_s3": '"s3://my-bucket/batches"',
    "batch_role": '"arn:aws:iam::123456789012:role/batches"',
    "batch_enqueued_tokens": "1_000_000",
}


def example() -> str:
    """Return a TOML file with every key, and its meaning as a comment."""
    parts = [
        "# Every setting of a run. `astra run --config example.toml --out DIR` runs this file with a",
        "# simulated model. Flags and ASTRA_ variables have priority over this file. Lines with `#` show a",
        "# default or an example. scripts/docs.py writes this file from the code.",
        "",
        *_keys("", options().values()),
    ]
    for name, table in tables().items():
        several = name in {"models", "agents"}
        head = f"[[{name}]]" if several else f"[{name}]"
        note = [f"# One such table for each {name[:-1]}."] if several else []
        parts += ["", *note, head, *_keys(name, declared(table))]
    return "\n".join(parts) + "\n"


def _keys(table: str, items: Iterable[Declared]) -> list[str]:
    lines = []
    for item in items:
        lines.append(f"# {item.about.help} ({_rule(item)})")
        set_here = _SET.get(table, {}).get(item.name)
        lines.append(f"{item.name} = {set_here}" if set_here else f"#{item.name} = {_toml(item)}")
    return lines


def _toml(item: Declared) -> str:
    if item.name in _SHOWN:
        return _SHOWN[item.name]
    value = item.default
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{each}"' for each in value) + "]"
    if value is None:
        kind = item.plain
        return (
            f'"{item.choices[0]}"'
            if item.choices
            else "1"
            if kind is int
            else "1.0"
            if kind is float
            else '"..."'
        )
    return f'"{value}"' if isinstance(value, str) else str(value)


def _default(item: Declared) -> str:
    value = item.default
    if value in (None, "", ()) or isinstance(value, Mapping):
        return ""
    if item.choices and item.several:
        return "all"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
