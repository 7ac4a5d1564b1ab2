"""Test commands that stop at the first failure, so that later tests are never reported."""

from __future__ import annotations

import re


# A runner with the options that make it stop early, within one command.
def _rule(runner: str, stops: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{runner})\b[^\n;&|\"]{{0,400}}?\s(?P<option>{stops})(?![\w-])")


_RULES = (
    _rule(r"pytest|py\.test", r"-x|--exitfirst|--maxfail(?:=|\s)\d+"),
    _rule(r"jest|vitest|react-scripts test|mocha|bun test", r"--bail(?:(?:=|\s)\d+)?|-b"),
    _rule(r"playwright test", r"-x|--max-failures(?:=|\s)\d+"),
    _rule(r"go test|gotestsum", r"-failfast"),
    _rule(r"rspec", r"--fail-fast(?:=\d+)?"),
    _rule(r"phpunit", r"--stop-on-(?:failure|error|defect)"),
    _rule(r"unittest|manage\.py test|xmlrunner", r"-f|--failfast"),
    _rule(r"ava|tap", r"--fail-fast|--bail"),
)
_CARGO = re.compile(r"\bcargo\s+(?:\+\S{1,40}\s+)?(?:test|nextest run)\b(?P<options>[^\n;&|\"]{0,400})")


_WHY = "tests stop at the first failure ({what}), so a score depends on the order of the tests"


def early_stop(commands: str) -> str | None:
    """Return a warning with the remedy if the commands stop at the first failure, else None."""
    for rule in _RULES:
        if found := rule.search(commands):
            command = " ".join(found[0].split())
            return f"{_WHY.format(what=found['option'])}; remove this option from: {command}"
    for found in _CARGO.finditer(commands):
        options = found["options"].partition(" -- ")[0]
        if "--no-fail-fast" not in options:
            begin = found[0][: len(found[0]) - len(found["options"])]
            command = " ".join(f"{begin} --no-fail-fast{found['options']}".split())
            return f"{_WHY.format(what='cargo test')}; use: {command}"
    return None
