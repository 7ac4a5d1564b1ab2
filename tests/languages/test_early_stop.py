"""Commands that stop at the first failure are named with the corrected command."""

from __future__ import annotations

import pytest

from astra_async.languages.runners import early_stop


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("pytest -x --junitxml=unit.xml", "(-x)"),
        ("python -m pytest tests --maxfail=1", "(--maxfail=1)"),
        ("npx jest --ci --bail", "(--bail)"),
        ("npx vitest run --bail=1 --reporter=junit", "(--bail=1)"),
        ("npx playwright test -x", "(-x)"),
        ("go test -json -failfast ./...", "(-failfast)"),
        ("bundle exec rspec --fail-fast --format progress", "(--fail-fast)"),
        ("vendor/bin/phpunit --stop-on-failure --log-junit unit.xml", "(--stop-on-failure)"),
        ("python manage.py test --failfast", "(--failfast)"),
        ('{"scripts": {"test": "mocha --bail"}}', "(--bail)"),
        ("cargo test", "use: cargo test --no-fail-fast"),
        (
            "cargo +stable test --offline -- --nocapture",
            "use: cargo +stable test --no-fail-fast --offline --",
        ),
    ],
)
def test_a_command_that_stops_early_is_named(command: str, option: str) -> None:
    assert option in str(early_stop(command))


@pytest.mark.parametrize(
    "command",
    [
        "pytest --junitxml=unit.xml; rm -f old",
        "cargo test --no-fail-fast",
        "cargo build && cargo test --no-fail-fast -- --test-threads=1",
        "go test -json ./...",
        "npx jest --ci",
        "mocha && echo -b",
        "pytest --maxfail-of-mine=1 -xdist",
        "",
    ],
)
def test_a_command_that_runs_all_tests_is_not(command: str) -> None:
    assert early_stop(command) is None


def test_a_long_command_costs_little() -> None:
    assert early_stop("pytest " * 100_000 + "jest " * 100_000) is None
