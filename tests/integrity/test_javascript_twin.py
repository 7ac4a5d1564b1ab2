"""Twins of JavaScript's and TypeScript's tests: what is rewritten, and that every runner sees it fail."""

from __future__ import annotations

import random

import pytest

from astra_async.integrity.javascript_runner import javascript_runner
from astra_async.integrity.rewriting import Manner, Settled, blurred, rewrite
from astra_async.integrity.syntax import parse
from astra_async.types import Problem, Project, ProjectFile

AT_ONCE = Settled(Manner(at_once=True, assertion=False), 1)


def parses(text: str) -> bool:
    return not parse(text.encode(), "tree_sitter_javascript").has_error


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("it('a', () => {});", [("a",)]),
        ("describe('A', () => { it('b' + 'c', function () { x(); }); });", [("A", "bc")]),
        ("it('it\\'s \\u0041\\x42\\u{43}', f);", [("it's ABC",)]),
        ("it(`plain`, () => 1); it(`made ${1}`, () => 1);", [("plain",)]),
        ("import { test as t } from 'vitest'; t('a', () => 1);", [("a",)]),
        ("import * as v from 'vitest'; v.describe('s', () => { v.it('a', () => 1) });", [("s", "a")]),
        ("const { it: check } = require('mocha'); check('a', done => done());", [("a",)]),
        ("const m = require('mocha'); m.it('a', () => 1);", [("a",)]),
        ("const check = it; const only = it.only; check('a', f); only('b', f);", [("a",), ("b",)]),
        (
            "import { test as base } from 'vitest'; const test = base.extend({}); test('a', () => 1);",
            [("a",)],
        ),
        ("import check from 'node:test'; check('a', {timeout: 5}, () => 1);", [("a",)]),
        ("global.it('a', f); window.test('b', f); globalThis.specify('c', f);", [("a",), ("b",), ("c",)]),
        ("it.only('a', f); fit('b', f); it.concurrent('c', f);", [("a",), ("b",), ("c",)]),
        ("it.skipIf(x)('a', f); it.runIf(x)('b', f);", [("a",), ("b",)]),
        ("it('a', inject(function (x) {}));", [("a",)]),
        ("[1, 2].forEach((n) => { it('same', () => n); });", [("same",)]),
    ],
)
def test_a_test_is_known_under_whatever_name_the_file_calls_it(
    text: str, certain: list[tuple[str, ...]]
) -> None:
    twin = rewrite("a.test.js", text, AT_ONCE)
    assert list(twin.certain) == certain
    assert twin.text.count("throw") + twin.text.count("JSON") + twin.text.count("decodeURI") >= len(certain)


@pytest.mark.parametrize(
    "text",
    [
        "it.skip('a', () => {}); xit('b', () => {}); it.todo('c'); it('d'); test('e', { skip: true }, f);",
        "describe.skip('s', () => { it('a', () => {}); }); xdescribe('t', () => { it('a', () => {}); });",
        "const test = require('tape'); test('a', (t) => t.end());",
        "function it(title, code) {} it('a', () => {});",
        "for (const test of tests) test('x', 1); /a/.test('a', 'b'); other.test('x', () => {});",
        "names.forEach((it) => { it('x', () => {}); });",
        "it.each([[1]]); const t = test.extend({ page: async ({}, use) => { await use(1); } });",
    ],
)
def test_what_is_no_test_or_does_not_run_stays_as_it_is(text: str) -> None:
    twin = rewrite("a.test.js", text, AT_ONCE)
    assert (twin.text, twin.certain) == (text, ())


@pytest.mark.parametrize(
    ("text", "key", "reason", "rewritten"),
    [
        ("it('n' + n, () => {});", "line 1", "its title is computed", True),
        ("it.each([[1]])('n %i', () => {});", "line 1", "its title is made from a table", True),
        ("it.each`a\n${1}`('n $a', () => {});", "line 1", "its title is made from a table", True),
        (
            "describe.each([[1]])('s %i', () => { it('a', () => {}); });",
            "a",
            "the title of its suite is computed",
            True,
        ),
        (
            "function shared() {\n it('a', () => {}); }",
            "a",
            "it stands in a function that may be called several times",
            True,
        ),
        (
            "const t = require('node:test'); t('a', async (x) => {\n await x.test('b', () => {}); });",
            "b",
            "it stands in another test",
            True,
        ),
        ("it.failing('a', () => {});", "a", "it is expected to fail", False),
        ("it.fails('a', () => {});", "a", "it is expected to fail", False),
        ("it('a', { fails: true }, () => {});", "a", "it is expected to fail", False),
        ("it('a', () => {", "a.test.js", "this file's syntax is not understood", False),
    ],
)
def test_a_test_that_cannot_be_promised_to_fail_under_a_name_is_named_with_the_reason(
    text: str, key: str, reason: str, *, rewritten: bool
) -> None:
    twin = rewrite("a.test.js", text, AT_ONCE)
    assert twin.left_out == {key: reason}
    assert (twin.text != text) is rewritten
    assert rewrite("a.test.js", text, AT_ONCE, lambda titles: titles == ("other",)).text == text


def test_a_choice_makes_the_others_keep_their_bodies() -> None:
    text = "describe('s', () => { it('a', () => { x(); }); it('b', () => { y(); }); });"
    twin = rewrite("a.test.js", text, AT_ONCE, lambda titles: titles == ("s", "b"))
    assert twin.certain == (("s", "b"),)
    assert "it('a', () => { x(); });" in twin.text
    assert "it('b', () => { y(); });" not in twin.text


@pytest.mark.parametrize(
    ("head", "runner"),
    [
        ("import { it } from 'vitest';", "vitest"),
        ("const { it } = require('mocha');", "mocha"),
        ("jest.mock('x');", "jest"),
        ("vi.mock('x');", "vitest"),
        ("const s = jasmine.createSpy();", "jasmine"),
        ("import { it } from 'node:test';", "node:test"),
        ("", ""),
    ],
)
def test_the_files_own_text_tells_the_runner(head: str, runner: str) -> None:
    assert rewrite("a.test.js", f"{head} it('a', () => {{}});", AT_ONCE).runner == runner


@pytest.mark.parametrize(
    ("text", "asserts"),
    [
        ("import { expect } from 'vitest'; it('a', () => { expect(x).toBe(1); });", True),
        ("const { expect } = require('chai'); it('a', () => { expect(x).to.equal(1); });", True),
        ("it('a', ({ expect }) => { expect(x).toBe(1); });", False),
        ("it('a', () => { const { expect } = load(); expect(x).toBe(1); });", False),
        (
            "let expect; before(() => { ({ expect } = load()); }); it('a', () => { expect(x).toBe(1); });",
            False,
        ),
        ("it('a', (expect) => { expect(x).toBe(1); }); it('b', expect => { expect(x).toBe(1); });", False),
        ("it('a', () => { expect.assertions(1); expect(x).toBe(1); });", False),
        (
            "it('a', () => { go(); }); it('b', () => { expect.soft(x).toBe(1); chai.assert.equal(1, 1); });",
            False,
        ),
    ],
)
def test_a_scored_runs_tests_assert_by_what_is_certainly_in_scope_or_not_at_all(
    text: str, *, asserts: bool
) -> None:
    made = [blurred("a.test.js", text, random.Random(seed)) for seed in range(30)]
    assert any(" + " in each for each in made) is asserts
    assert all(".length > 1" in each for each in made) or asserts
    assert all(parses(each) for each in made)


def test_a_functions_directive_stays_its_first_statement() -> None:
    text = "it('a', function () { 'use strict'; return x; });"
    assert all(
        "function () { 'use strict'; return x; }" in blurred("a.test.js", text, random.Random(seed))
        for seed in range(9)
    )


def test_typescript_is_not_checked_and_keeps_its_first_comments_first() -> None:
    twin = rewrite("a.test.ts", "/** @jest-environment jsdom */\nit('a', (): void => {});", AT_ONCE)
    assert twin.text.startswith("/** @jest-environment jsdom */\n// @ts-nocheck\nit(")


@pytest.mark.parametrize(
    ("command", "files", "runner"),
    [
        ("npm test", {"package.json": '{"scripts": {"test": "mocha --exit"}}'}, "mocha"),
        ("npm t", {"package.json": '{"scripts": {"test": "npm run unit", "unit": "CI=1 npx jest"}}'}, "jest"),
        ("yarn test:unit", {"package.json": '{"scripts": {"test:unit": "vitest run"}}'}, "vitest"),
        ("npm run ci", {"package.json": '{"scripts": {"ci": "c8 -r text node --test test/"}}'}, "node:test"),
        (
            "bash bin/test",
            {"bin/test": "#!/bin/bash\ncd app\nnode node_modules/mocha/bin/mocha.js test\n"},
            "mocha",
        ),
        ("node_modules/.bin/karma start", {}, "karma"),
        (
            "ng test --watch=false",
            {"angular.json": '{"builder": "@angular-devkit/build-angular:karma"}'},
            "karma",
        ),
        ("ng test", {"angular.json": '{"builder": "@angular-builders/jest:run"}'}, "jest"),
        ("CI=true npx react-scripts test", {}, "jest"),
        ("vue-cli-service test:unit", {"package.json": '{"devDependencies": {"mocha": "1"}}'}, "mocha"),
        ("npx gulp test", {"jest.config.js": ""}, "jest"),
        ("python3 -m pytest", {}, ""),
    ],
)
def test_tests_of_everybodys_globals_are_their_runners_who_really_starts(
    command: str, files: dict[str, str], runner: str
) -> None:
    project = Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in files.items()), sha256="x"
    )
    problem = Problem(id="p", statement="s", project="p", test_command=command)
    assert javascript_runner(problem, project) == runner
