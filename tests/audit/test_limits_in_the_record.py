"""Each limit is hit by a solution that is right but for that, and the record says which limit it was."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from shops import MOCHA, TOTAL

from astra_async.types import Limits
from machine import slowness

if TYPE_CHECKING:
    from graded_answers import Await, Grader

    from astra_async.types import Failure

_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE bomb [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {name} "{f"&{chr(ord(name) - 1)};" * 10}">' for name in "bcdefgh")
    + ']><testsuites><testsuite><testcase name="&h;"/></testsuite></testsuites>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """Code before the module's own, the limits of its run, and what the record says."""

    name: str
    code: str
    limits: Limits
    failure: Failure | None
    note: str = ""
    output: str = ""


def _at_exit(code: str) -> str:
    return f"const fs = require('fs');\nprocess.on('exit', () => {{ {code} }});\n"


LIMITS = Limits(timeout_s=60.0)
CASES = (
    Misbehaviour(
        name="time",
        code="for (;;);\n",
        limits=Limits(timeout_s=3.0),
        failure="timeout",
        note=r"stopped after \d s",
    ),
    Misbehaviour(
        name="memory",
        code="const kept = [];\nfor (;;) kept.push(Buffer.alloc(16 << 20, 1));\n",
        limits=Limits(timeout_s=60.0, memory_bytes=400 * 1024**2),
        failure="out_of_memory",
        note="the container's memory limit was hit",
    ),
    Misbehaviour(
        name="disk, many files",
        code="const fs = require('fs');\nconst block = Buffer.alloc(1 << 20, 1);\n"
        "for (let n = 0; ; n += 1) fs.writeFileSync(`filler${n % 4000}`, block);\n",
        limits=Limits(timeout_s=60.0, disk_bytes=64 * 1024**2),
        failure="no_report",
        note="unit.xml: not written",
        output="ENOSPC",
    ),
    Misbehaviour(
        name="disk, one file",
        code="const fs = require('fs');\nconst file = fs.openSync('filler', 'w');\n"
        "const block = Buffer.alloc(1 << 20, 1);\n"
        "for (let n = 0; n < 10240; n += 1) fs.writeSync(file, block);\n",
        limits=Limits(timeout_s=60.0, file_bytes=32 * 1024**2),
        failure="no_report",
        note="unit.xml: not written",
        output="EFBIG",
    ),
    Misbehaviour(
        name="processes",
        code="const { spawn, spawnSync } = require('child_process');\n"
        "for (let n = 0; n < 200; n += 1) spawn('sleep', ['60']).on('error', () => {});\n"
        "console.log(spawnSync('true').error ? 'no more processes' : 'no limit');\nprocess.exit(3);\n",
        limits=Limits(timeout_s=60.0, processes=64),
        failure="no_report",
        note="unit.xml: not written",
        output="no more processes",
    ),
    Misbehaviour(
        name="a fork bomb",
        code="require('child_process').spawnSync('bash', ['-c', 'b() { b | b & }; b; wait; sleep 60']);\n",
        limits=Limits(timeout_s=8.0, processes=64),
        failure="timeout",
        note=r"stopped after \d+ s",
    ),
    Misbehaviour(
        name="output",
        code="process.stdout.write('x'.repeat(200 << 20));\nconsole.log('the end');\nprocess.exit(3);\n",
        limits=Limits(timeout_s=60.0),
        failure="no_report",
        note="unit.xml: not written",
        output="the end|x{1000}",
    ),
    Misbehaviour(
        name="a report of 100 MB",
        code=_at_exit(
            "fs.writeFileSync('unit.xml', '<testsuites>' + ' '.repeat(100 << 20) + '</testsuites>');"
        ),
        limits=LIMITS,
        failure="no_report",
        note=r"unit\.xml: .*(bytes|MB|large)",
    ),
    Misbehaviour(
        name="entities in the report",
        code=_at_exit(f"fs.writeFileSync('unit.xml', {_BOMB!r});"),
        limits=LIMITS,
        failure="no_report",
        note="unit.xml: document types are not allowed",
    ),
    Misbehaviour(
        name="a pipe where the report should be",
        code=_at_exit("fs.unlinkSync('unit.xml'); require('child_process').execSync('mkfifo unit.xml');"),
        limits=LIMITS,
        failure="no_report",
        note="unit.xml: is a FIFO",
    ),
    Misbehaviour(
        name="a link to a file of the host",
        code=_at_exit("fs.unlinkSync('unit.xml'); fs.symlinkSync('/etc/hostname', 'unit.xml');"),
        limits=LIMITS,
        failure="no_report",
        note="unit.xml: is a symbolic link",
    ),
    Misbehaviour(
        name="folders in folders",
        code="const fs = require('fs');\nconst home = process.cwd();\n"
        "for (let n = 0; n < 3000; n += 1) { fs.mkdirSync('deeper'); process.chdir('deeper'); }\n"
        "process.chdir(home);\n",
        limits=LIMITS,
        failure=None,
    ),
)


@pytest.mark.first(failure=lambda limit: limit.failure)
@pytest.mark.docker
@pytest.mark.parametrize("limit", CASES, ids=lambda each: each.name)
def test_what_is_too_much_is_stopped_and_named(limit: Misbehaviour, grader: Grader, wait: Await) -> None:
    slower = 1.0 if limit.failure == "timeout" else slowness()
    grading = grader.grading(limits=replace(limit.limits, timeout_s=limit.limits.timeout_s * slower))
    result = wait(grader.grade("mocha", {MOCHA.main: limit.code + MOCHA.right}, grading))
    assert (result.status, result.failure) == ("scored", limit.failure)
    assert (result.passed, result.total) == (0 if limit.failure else TOTAL, TOTAL)
    assert re.search(limit.note, result.note), result.note
    assert re.search(limit.output, result.output_tail), result.output_tail
    assert len(result.output_tail.encode()) <= 2000
    assert result.timed_out is (limit.failure == "timeout")
