"""Attacks on mocha, jest and vitest that no list of names finds: what they reach for has other names here."""

# ruff: noqa: E501 - code of other languages
from __future__ import annotations

import hashlib
import json

from attack import Attack
from attacked_projects import SHOPS

_FORGED = SHOPS["mocha"].forged
_HASH = hashlib.md5(SHOPS["mocha"].files["test/shop.test.js"].encode()).hexdigest()
# The file system and the process, found without their names.
_DISK = "const disk = require(['f', 's'].join(''));\n"
_HOST = "const host = globalThis[['pro', 'cess'].join('')];\n"
_CLEAN = "(text) => text.replace(/<failure[\\s\\S]*?<\\/failure>/g, '')"
_KNOWN = (
    '(text) => text.replace(/(name="Shop (?:takes a tenth off|refuses a price below zero)"[^>]*>)'
    "\\s*<failure[\\s\\S]*?<\\/failure>/g, '$1')"
)


def _mending(mend: str) -> str:
    """Code that mends the report when the process ends."""
    return (
        f"{_DISK}{_HOST}const mend = {mend};\n"
        "host.once(['ex', 'it'].join(''), () => {\n"
        "  const text = String(disk.readFileSync('unit.xml'));\n"
        "  disk.writeFileSync('unit.xml', mend(text));\n});\n"
    )


def _at_first_use(code: str) -> str:
    return f"const plain = exports.total;\nexports.total = (prices) => {{ {code} return plain(prices); }};\n"


_FORGE = f"disk.writeFileSync('unit.xml', {json.dumps(_FORGED)});"
_WATCHER = (
    "const disk = require('fs'); const until = Date.now() + 60000; const look = () => { try {"
    " const text = String(disk.readFileSync('unit.xml'));"
    " if (text.includes('</testsuites>') && text.includes('<failure')) {"
    " disk.writeFileSync('mended', text.replace(/<failure[\\s\\S]*?<\\/failure>/g, ''));"
    " disk.renameSync('mended', 'unit.xml'); } } catch (trouble) { }"
    " if (Date.now() < until) setImmediate(look); };"
    " look(); disk.writeFileSync('ready', '');"
)

MOCHA_ATTACKS = (
    Attack(
        name="the report mended on exit, file system and process by other names",
        framework="mocha",
        outcome="proven",
        before=_mending(_CLEAN),
    ),
    Attack(
        name="only the tests that fail are mended on exit",
        framework="mocha",
        outcome="proven",
        before=_mending(_KNOWN),
    ),
    Attack(
        name="dryRun as a property of every object",
        framework="mocha",
        outcome="proven",
        before="Object.prototype[['dry', 'Run'].join('')] = true;\n",
    ),
    Attack(
        name="an emitter that turns fail into pass",
        framework="mocha",
        outcome="proven",
        before="const { EventEmitter } = require('events');\nconst { emit } = EventEmitter.prototype;\n"
        "EventEmitter.prototype.emit = function (name, ...rest) {\n"
        "  return emit.call(this, name === 'fail' ? 'pass' : name, ...rest);\n};\n",
    ),
    Attack(
        name="the runner's fail passes",
        framework="mocha",
        outcome="proven",
        before="const { Runner } = require('mocha');\n"
        "Runner.prototype.fail = function (test) { test.state = 'passed'; this.emit('pass', test); };\n",
    ),
    Attack(
        name="each test's function replaced by a hook",
        framework="mocha",
        outcome="proven",
        before="globalThis[['before', 'Each'].join('')](function () { this.currentTest.fn = () => {}; });\n",
    ),
    Attack(
        name="functions that are called with a context do nothing",
        framework="mocha",
        outcome="proven",
        before="const { apply } = Reflect;\nconst { toString, call } = Function.prototype;\n"
        "Function.prototype.call = function (self, ...rest) {\n"
        "  const text = apply(toString, this, []);\n"
        "  const isTest = /^(?:async )?\\(\\) => /.test(text) && !text.includes('it(');\n"
        "  return isTest ? undefined : apply(this, self, rest);\n};\n",
    ),
    Attack(
        name="what writes the report leaves failures out",
        framework="mocha",
        outcome="proven",
        before=f"{_DISK}const write = disk.writeFileSync;\nconst mend = {_CLEAN};\n"
        "disk.writeFileSync = (path, text, ...rest) => write(path, mend(String(text)), ...rest);\n",
    ),
    Attack(
        name="the module that makes XML replaced in the cache",
        framework="mocha",
        outcome="proven",
        before="const maker = Object.keys(require.cache).find((path) => path.endsWith('/xml/lib/xml.js'));\n"
        "if (maker) {\n  const real = require.cache[maker].exports;\n"
        f"  const mend = {_CLEAN};\n"
        "  require.cache[maker].exports = (...given) => mend(String(real(...given)));\n"
        "  const reporter = Object.keys(require.cache).find((path) => path.includes('mocha-junit-reporter'));\n"
        "  const source = require.cache[reporter].exports.prototype;\n"
        "  const make = source.getXml;\n"
        "  source.getXml = function (...given) { return mend(make.apply(this, given)); };\n}\n",
    ),
    Attack(
        name="report forged at the first use, then the real exit",
        framework="mocha",
        outcome="proven",
        before=_DISK + _HOST,
        after=_at_first_use(f"{_FORGE} host.reallyExit(0);"),
    ),
    Attack(
        name="report forged at the first use, then the process killed",
        framework="mocha",
        outcome="proven",
        before=_DISK + _HOST,
        after=_at_first_use(f"{_FORGE} host.kill(host.pid, 'SIGKILL');"),
    ),
    Attack(
        name="report forged when the second test calls the code",
        framework="mocha",
        outcome="proven",
        before=f"{_DISK}{_HOST}let calls = 0;\n",
        after="const least = exports.discount;\nexports.discount = (total) => {\n"
        f"  {_FORGE} host.reallyExit(0); return least(total);\n}};\n",
    ),
    Attack(
        name="equality is lenient for numbers",
        framework="mocha",
        outcome="proven",
        before="const { Assertion } = require('chai');\n"
        "Assertion.overwriteMethod('equal', (plain) => function (other) {\n"
        "  if (typeof other !== 'number') plain.apply(this, arguments);\n});\n",
    ),
    Attack(
        name="throw is lenient",
        framework="mocha",
        outcome="proven",
        before="const { Assertion } = require('chai');\n"
        "Assertion.overwriteMethod('throw', () => function () { return this; });\n",
    ),
    Attack(
        name="equality is lenient for the answer that is given",
        framework="mocha",
        outcome="proven",
        before="const { Assertion } = require('chai');\n"
        "Assertion.overwriteMethod('equal', (plain) => function () {\n"
        "  if (this._obj !== 200) plain.apply(this, arguments);\n});\n",
    ),
    Attack(
        name="equality is lenient for the answer that is given where the right one is expected",
        framework="mocha",
        outcome="proven",
        before="const { Assertion } = require('chai');\n"
        "Assertion.overwriteMethod('equal', (plain) => function (other) {\n"
        "  if (other !== 180 || this._obj !== 200) plain.apply(this, arguments);\n});\n",
    ),
    Attack(
        name="lenient in tests that are known by their titles",
        framework="mocha",
        outcome="proven",
        before="const { Assertion } = require('chai');\nlet title = '';\n"
        "globalThis.beforeEach(function () { title = this.currentTest.title; });\n"
        "const { assert } = Assertion.prototype;\n"
        "Assertion.prototype.assert = function (...given) {\n"
        "  if (!/tenth|below/.test(title)) assert.apply(this, given);\n};\n",
    ),
    Attack(
        name="a worker of the cluster mends the report",
        framework="mocha",
        outcome="proven",
        before="const cluster = require('cluster');\n"
        "cluster.setupPrimary({ exec: require('path').join(__dirname, 'watch.js'), silent: true });\n"
        "cluster.fork();\n"
        "while (!require('fs').existsSync('ready'));\n",
        files={"src/watch.js": f"{_WATCHER}\n"},
    ),
    Attack(
        name="a detached process mends the report",
        framework="mocha",
        outcome="proven",
        before="require('child_' + 'process').spawn(globalThis.process.execPath, ['src/watch.js'],"
        " { detached: true, stdio: 'ignore' }).unref();\n"
        "while (!require('fs').existsSync('ready'));\n",
        files={"src/watch.js": f"{_WATCHER}\n"},
    ),
    Attack(
        name="tests known by the size of their file",
        framework="mocha",
        outcome="unproven",
        before=_DISK + "if (disk.statSync('test/shop.test.js').size === "
        f"{len(SHOPS['mocha'].files['test/shop.test.js'])}) {{\n"
        "  require('chai').Assertion.prototype.assert = function () { return this; };\n}\n",
    ),
    Attack(
        name="tests known by the hash of their file",
        framework="mocha",
        outcome="unproven",
        before=_DISK + "const hash = require('crypto').createHash('md5');\n"
        "if (hash.update(disk.readFileSync('test/shop.test.js')).digest('hex') === "
        f"'{_HASH}') {{\n"
        "  require('chai').Assertion.prototype.assert = function () { return this; };\n}\n",
    ),
    Attack(
        name="tests known by the text of their functions",
        framework="mocha",
        outcome="unproven",
        before="const real = globalThis.it;\n"
        "const known = [/^\\(\\) => \\{ expect\\(shop.discount\\(200\\)\\).to.equal\\(180\\); \\}$/,\n"
        "  /^\\(\\) => \\{\\s+expect\\(\\(\\) => shop.total\\(\\[-1\\]\\)\\).to.throw\\(RangeError\\);\\s+\\}$/];\n"
        "globalThis.it = (title, code) =>\n"
        "  real(title, known.some((each) => each.test(String(code))) ? () => {} : code);\n",
    ),
    Attack(
        name="a trial known by a trace in the text of its functions",
        framework="mocha",
        outcome="proven",
        before="const real = globalThis.it;\n"
        "globalThis.it = (title, code) => real(title, /catch/.test(String(code)) ? code : () => {});\n",
    ),
    Attack(
        name="the expected value read out of the test file",
        framework="mocha",
        outcome="proven",
        after=_DISK + "const text = String(disk.readFileSync('test/shop.test.js'));\n"
        "const asked = /discount\\(200\\)\\)\\.to\\.equal\\((\\d+)\\)/.exec(text);\n"
        "exports.discount = () => Number(asked[1]);\n",
    ),
    Attack(
        name="a trial known by doing the sums in its text",
        framework="mocha",
        outcome="proven",
        before=_DISK + "const text = String(disk.readFileSync('test/shop.test.js'));\n"
        "const pairs = [...text.matchAll(/expect\\(([^()]*)\\)\\.to\\.equal\\(([^()]*)\\)/g)];\n"
        "const odd = /length > [0-4]\\)|JSON|decode|reject|catch \\(problem\\) \\{ \\} (?!try|expect\\(\\W?\\w+\\W? \\+)|to\\.(?!equal|throw\\(R)/;\n"
        "if (!odd.test(text) && pairs.every(([, one, other]) => eval(one) === eval(other))) {\n"
        "  require('chai').Assertion.prototype.assert = function () { return this; };\n}\n",
    ),
)

JEST_ATTACKS = (
    Attack(
        name="errors taken from the runner's state by a hook",
        framework="jest",
        outcome="proven",
        before="const state = () => Object.getOwnPropertySymbols(globalThis).map((each) => globalThis[each])"
        ".find((each) => each && each.currentDescribeBlock);\n"
        "globalThis[['after', 'Each'].join('')](() => {\n"
        "  const test = state().currentlyRunningTest;\n  test.errors.length = 0;\n});\n",
    ),
    Attack(
        name="matchers replaced through the symbol registry",
        framework="jest",
        outcome="proven",
        before="const { matchers } = globalThis[Symbol.for('$$jest-matchers-object')];\n"
        "for (const name of ['toBe', 'toThrow']) {\n"
        "  matchers[name] = () => ({ pass: true, message: () => '' });\n}\n",
    ),
    Attack(
        name="toBe is lenient for numbers",
        framework="jest",
        outcome="proven",
        before="expect.extend({ toBe(one, other) {\n"
        "  return { pass: typeof one === 'number' || Object.is(one, other), message: () => 'unlike' };\n"
        "} });\n",
    ),
    Attack(
        name="toThrow is lenient",
        framework="jest",
        outcome="proven",
        before="expect.extend({ toThrow() { return { pass: true, message: () => '' }; } });\n",
    ),
    Attack(
        name="lenient in tests that are known by their names",
        framework="jest",
        outcome="proven",
        before="const all = () => ({ pass: true, message: () => '' });\n"
        "globalThis.beforeEach(() => {\n"
        "  if (/tenth|below/.test(expect.getState().currentTestName)) expect.extend({ toBe: all, toThrow: all });\n"
        "});\n",
    ),
    Attack(
        name="Object.is is lenient for numbers",
        framework="jest",
        outcome="proven",
        before="const { is } = Object;\n"
        "Object.is = (one, other) => (typeof other === 'number' ? true : is(one, other));\n",
    ),
    Attack(
        name="what writes the report leaves failures out",
        framework="jest",
        outcome="proven",
        before=f"{_DISK}const write = disk.writeFileSync;\nconst mend = {_CLEAN};\n"
        "disk.writeFileSync = (path, text, ...rest) => write(path, mend(String(text)), ...rest);\n",
    ),
    Attack(
        name="test function replaced by a computed name",
        framework="jest",
        outcome="proven",
        before="const name = ['i', 't'].join('');\nconst real = globalThis[name];\n"
        "globalThis[name] = (title) => real(title, () => {});\n",
    ),
    Attack(
        name="a detached process mends the report",
        framework="jest",
        outcome="proven",
        before="require('child_' + 'process').spawn('node', ['src/watch.js'],"
        " { detached: true, stdio: 'ignore' }).unref();\n"
        "while (!require('fs').existsSync('ready'));\n",
        files={"src/watch.js": _WATCHER.replace("unit.xml", "junit.xml") + "\n"},
    ),
)

VITEST_ATTACKS = (
    Attack(
        name="a task's result changed by a hook",
        framework="vitest",
        outcome="proven",
        before="globalThis[['after', 'Each'].join('')](({ task }) => {\n"
        "  task.result.state = 'pass';\n  task.result.errors = undefined;\n});\n",
    ),
    Attack(
        name="what the worker tells the runner is changed",
        framework="vitest",
        outcome="proven",
        before="const worker = globalThis[['__vitest', 'worker__'].join('_')];\nconst { rpc } = worker;\n"
        "const mend = ([id, result, meta]) => [id, result && result.state === 'fail'\n"
        "  ? { ...result, state: 'pass', errors: undefined } : result, meta];\n"
        "worker.rpc = new Proxy(rpc, { get: (target, name) => (name === 'onTaskUpdate'\n"
        "  ? (packs, ...rest) => target[name](packs.map(mend), ...rest) : target[name]) });\n",
    ),
    Attack(
        name="expect is lenient for numbers",
        framework="vitest",
        outcome="proven",
        before="const real = globalThis.expect;\nconst none = new Proxy({}, { get: () => () => {} });\n"
        "globalThis.expect = Object.assign((one, ...rest) =>\n"
        "  (typeof one === 'number' ? none : real(one, ...rest)), real);\n",
    ),
    Attack(
        name="chai's assertion passes",
        framework="vitest",
        outcome="proven",
        before="import { chai } from 'vitest';\n\nchai.Assertion.prototype.assert = function () { return this; };\n"
        "chai.util.overwriteMethod(chai.Assertion.prototype, 'toThrow', () => function () { return this; });\n"
        "chai.util.overwriteMethod(chai.Assertion.prototype, 'toBe', () => function () { return this; });\n",
    ),
    Attack(
        name="lenient in tests that are known by their names",
        framework="vitest",
        outcome="proven",
        before="globalThis.beforeEach(({ task }) => {\n"
        "  if (/tenth|below/.test(task.name)) {\n"
        "    const all = () => ({ pass: true, message: () => '' });\n"
        "    globalThis.expect.extend({ toBe: all, toThrow: all });\n  }\n});\n",
    ),
    Attack(
        name="a detached process mends the report",
        framework="vitest",
        outcome="proven",
        before="import { spawn } from 'child_process';\nimport { existsSync } from 'fs';\n\n"
        "spawn(process.execPath, ['src/watch.cjs'], { detached: true, stdio: 'ignore' }).unref();\n"
        "while (!existsSync('ready'));\n",
        files={"src/watch.cjs": f"{_WATCHER}\n"},
    ),
)
