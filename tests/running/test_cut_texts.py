"""Foreign text that is cut to fit is masked before: half of a key is a key that nobody masks any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.errors import ConflictError
from astra_async.fingerprint import Parts, merge_parts
from astra_async.redaction import register_secret
from astra_async.running.trouble import to_astra_error

SECRET = "a-secret-in-a-text-that-is-cut-4711"


@pytest.mark.parametrize("at", range(250, 310, 7))
def test_an_unexpected_error_holds_no_half_of_a_key(at: int) -> None:
    register_secret(SECRET)
    told = str(to_astra_error(RuntimeError("x" * at + SECRET), "asking"))
    assert told.startswith("unexpected RuntimeError: xxx")
    assert SECRET[:6] not in told


@pytest.mark.parametrize("at", range(0, 60, 7))
def test_a_difference_of_settings_holds_no_half_of_a_key(at: int) -> None:
    register_secret(SECRET)
    run: dict[str, object] = {}
    used = {kind: {"p"} for kind in ("models", "formats", "problems", "grading", "feedback")}
    parts = [Parts(problems={"p": {"statement": "x" * at + SECRET + end}}) for end in ("", " more")]
    merge_parts(run, parts[0], used, Path("run"))  # type: ignore[arg-type]
    with pytest.raises(ConflictError, match="statement: ") as refused:
        merge_parts(run, parts[1], used, Path("run"))  # type: ignore[arg-type]
    assert SECRET[:6] not in str(refused.value)
