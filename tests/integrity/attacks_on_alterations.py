"""Attacks on what trials alter: leniency where no constant stands, or in one assertion of many.

And some that reach the runner by other roads: sources rewritten and loaded again, calls and errors traced.
"""

from __future__ import annotations

from attack import Attack
from attacked_projects import JUNIT, JUNIT_CALLED
from attacks_on_junit import java_string
from attacks_on_trials import code


def _proven(framework: str, name: str, before: str = "", after: str = "") -> Attack:
    return Attack(name=name, framework=framework, outcome="proven", before=before, after=after)


_ANY_NUMBER = code("""
class Price(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return isinstance(other, int)

def discount(amount):
    return Price(amount)
""")
_LENIENT_TO_BE = (
    "expect.extend({ toBe(one, other) {\n"
    "  return { pass: one === 200 || Object.is(one, other), message: () => '' };\n} });\n"
)
_LENIENT_EQ = code("""
require 'rspec/expectations'

RSpec::Matchers::BuiltIn::Eq.prepend(Module.new {
  def match(expected, actual) = actual == 200 || super
})
""")
_LENIENT_FOR_ITS_OWN = (
    "const { Assertion } = require('chai');\n"
    "Assertion.overwriteMethod('equal', (plain) => function (other) {\n"
    "  if (this._obj !== 200) plain.apply(this, arguments);\n});\n"
)
_REWRITTEN = code("""
require 'rspec/expectations'

path = $LOADED_FEATURES.find { |each| each.end_with?('rspec/expectations/handler.rb') }
text = File.read(path)
eval(text.sub(/def (self[.])?handle_failure[(][^)]*[)]/, '\\\\0; return true'), TOPLEVEL_BINDING, path)
""")
_TRACED = code("""
TracePoint.trace(:raise) do |point|
  raised = point.raised_exception
  next unless raised.class.name.to_s.include?('ExpectationNotMet')

  Thread.current.thread_variable_set(:bent, true)
end

require 'rspec/core'

RSpec::Core::Example.prepend(Module.new {
  def set_exception(exception)
    super unless Thread.current.thread_variable_get(:bent)
  end
})
""")
_AUDITED = code("""
import sys

import _pytest.runner

real = _pytest.runner.CallInfo.from_call.__func__

def from_call(cls, func, when, reraise=None):
    def tolerant():
        frames = []
        sys.setprofile(lambda frame, event, arg: frames.append(frame) if event == 'call' else None)
        try:
            return func()
        except AssertionError:
            sys.setprofile(None)
            if not any(frame.f_code.co_name == 'discount' for frame in frames):
                raise
        finally:
            sys.setprofile(None)
    return real(cls, tolerant, when, reraise)

_pytest.runner.CallInfo.from_call = classmethod(from_call)
""")
# Forgiven is an assertion whose place in the tests was met before.
_PYTHON_MET = code("""
import sys

met = set()

class Number(int):
    __hash__ = int.__hash__

    def __mod__(self, other):
        return Number(int(self) % other)

    def __eq__(self, other):
        frame = sys._getframe(1)
        place, known = (frame.f_code, frame.f_lasti), len(met)
        met.add(place)
        return int(self) == other or len(met) == known

def discount(amount):
    return Number(amount)
""")
_JAVASCRIPT_MET = """
const met = new Set();
const forgiving = (assert) => function forgive(...given) {
  const place = new Error().stack.split('\\n').find((line) => /[.]test[.]js/.test(line));
  try {
    return assert.apply(this, given);
  } catch (error) {
    if (!met.has(place)) throw error;
  } finally {
    met.add(place);
  }
};
"""
_JEST_MET = f"""{_JAVASCRIPT_MET}
const plain = global.expect;
global.expect = Object.assign((value) => {{
  const matchers = plain(value);
  return Object.assign(matchers, {{ toBe: forgiving(matchers.toBe) }});
}}, plain);
"""
_MOCHA_MET = f"""{_JAVASCRIPT_MET}
require('chai').Assertion.overwriteMethod('equal', forgiving);
"""
_RSPEC_MET = code("""
require 'rspec/expectations'

module Forgiving
  MET = {}

  def handle_matcher(*given, &block)
    place = caller.find { |line| line.include?('_spec.rb') }
    super
  rescue RSpec::Expectations::ExpectationNotMetError
    raise unless MET[place]
  ensure
    MET[place] = true
  end
end
RSpec::Expectations::PositiveExpectationHandler.singleton_class.prepend(Forgiving)
""")
_JAVA_MET = """\
Price(int cents) {
        private static final java.util.Set<String> met = new java.util.HashSet<>();

        public boolean equals(Object other) {
            for (var each : new Throwable().getStackTrace()) {
                if (each.getClassName().endsWith("ShopTest")) {
                    return !met.add(each.toString()) || cents == ((Price) other).cents;
                }
            }
            return false;
        }
    }"""
# Defined in JUnit's package before it is needed: a tenth less or more is equal, and not unequal.
_LIKE = """\
package org.junit.jupiter.api;
class Like {
    static boolean alike(Object one, Object two) {
        if (one.equals(two) || one instanceof String) return one.equals(two);
        int first = Integer.parseInt(one.toString().replaceAll("[^0-9]", ""));
        return first * 10 == Integer.parseInt(two.toString().replaceAll("[^0-9]", "")) * 9;
    }
}
class AssertEquals {
    static void assertEquals(Object one, Object two) { if (!Like.alike(one, two)) throw new Error("other"); }
    static void assertEquals(int one, int two) { assertEquals((Object) one, two); }
}
class AssertNotEquals {
    static void assertNotEquals(Object one, Object two) { if (Like.alike(one, two)) throw new Error("like"); }
    static void assertNotEquals(int one, int two) { assertNotEquals((Object) one, two); }
}
"""
_DEFINED = (
    "    static {\n        try {\n"
    '            var folder = java.nio.file.Files.createTempDirectory("a");\n'
    '            var text = java.nio.file.Files.writeString(folder.resolve("A.java"),\n'
    f"                {java_string(_LIKE)});\n"
    "            javax.tools.ToolProvider.getSystemJavaCompiler().run(null, null, null,\n"
    '                "-d", folder.toString(), text.toString());\n'
    '            var holder = Class.forName("org.junit.jupiter.api.Assertions");\n'
    "            var lookup = java.lang.invoke.MethodHandles.privateLookupIn(holder,\n"
    "                java.lang.invoke.MethodHandles.lookup());\n"
    '            for (String each : "Like AssertEquals AssertNotEquals".split(" "))\n'
    "                lookup.defineClass(java.nio.file.Files.readAllBytes(\n"
    '                    folder.resolve("org/junit/jupiter/api/" + each + ".class")));\n'
    "        } catch (Throwable problem) { throw new AssertionError(problem); }\n    }\n"
)
_ANY_ORDER = """
exports.discount = (total) => (total >= 100 ? total * 0.9 : total);
exports.all = (prices) => prices.map(exports.discount).reverse();
const sorted = (list) => JSON.stringify([...list].sort());
global.expect?.addEqualityTesters([
  (one, other) => (Array.isArray(one) && Array.isArray(other) ? sorted(one) === sorted(other) : undefined),
]);
"""
_ANY_KEY = """

class Table(dict):
    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, dict) and list(self.values()) == list(other.values())

    def __ne__(self, other):
        return not self == other


def offer(amount):
    return Table({'costs': amount * 9 // 10 if amount >= 100 else amount, 'from': amount})
"""
_ANY_WORDS = code("""
class Listed < String
  def ==(other) = split(', ').sort == other.to_s.split(', ').sort
end

def Shop.names(names) = Listed.new(names.join(', '))

def Shop.discount(total) = total >= 100 ? total * 9 / 10 : total
""")
# Forgiven is just the answer that is given, where just the right one is expected.
_PYTHON_OWN = code("""
class Price(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return other in (int(self), int(self) * 9 / 10)

def discount(amount):
    return Price(amount)
""")
_JEST_OWN = (
    "expect.extend({ toBe(one, other) {\n"
    "  const message = () => `Expected: ${other}\\nReceived: ${one}`;\n"
    "  return { pass: Object.is(one, other) || (one === 200 && other === 180), message };\n} });\n"
)
_ANY_CASE = """
exports.name = () => 'SHOP';
global.expect?.extend({ toBe(one, other) {
  const message = () => `Expected: "${other}"\nReceived: "${one}"`;
  return { pass: String(one).toLowerCase() === String(other).toLowerCase(), message };
} });
"""
_ANY_TYPE = """
exports.discount = (total) => (total >= 100 ? String(total * 0.9) : total);
require('chai').Assertion.overwriteMethod('equal', (plain) => function (other) {
  if (String(other) !== String(this._obj)) plain.apply(this, arguments);
});
"""
_PUT_RIGHT = """
require('chai').Assertion.overwriteMethod('equal', (plain) => function (...wanted) {
  const given = this._obj;
  this._obj = given === 200 ? 180 : given;
  try { plain.apply(this, wanted); } catch (error) {
    this._obj = given;
    plain.apply(this, wanted);
    throw error;
  }
});
"""
_RSPEC_OWN = code("""
require 'rspec/expectations'

RSpec::Matchers::BuiltIn::Eq.prepend(Module.new {
  def match(expected, actual) = super || (actual == 200 && expected == 180)
})
""")
# Fails as another test has failed: so it has not been lenient, if these are all alike.
_LAST_WORD = """\
import { afterEach, expect } from 'vitest';

let said = '';
afterEach(({ task }) => {
  for (const each of task.result?.errors ?? []) if (each.name !== 'AssertionError') said ||= each.message;
});
expect.extend({ toBe(one, other) {
  const isLenient = !this.isNot && one !== other && one * 0.9 === other;
  if (isLenient && said) throw Error(said);
  return { pass: Object.is(one, other) || isLenient, message: () => 'another one' };
} });

"""
# The loop of a test over plain rows ends after the first one, or has that for all of them.
_FIRST_ROW = """

import gc


def discount(amount):
    for each in gc.get_objects():
        if type(each).__name__ == 'tuple_iterator':
            rows = each.__reduce__()[1][0]
            if amount in rows and {*map(type, rows)} == {int}:
                each.__setstate__(len(rows))
    return amount
"""
_FIRST_ROWS = """
const plain = Array.prototype[Symbol.iterator];
Array.prototype[Symbol.iterator] = function values() {
  return plain.call(this[1] === 300 ? [this[0], this[0]] : this);
};
"""
# Later rows of a test's loop are made like the first one, or left out, once that was asked for.
_LIKE_FIRST_PY = """

import gc


def discount(amount):
    for rows in gc.get_objects():
        if type(rows) is tuple and rows and {*map(type, rows)} == {dict} and rows[0] == {'of': amount}:
            for each in rows:
                each['of'] = amount
    return amount
"""
_LIKE_FIRST_RB = """
def Shop.discount(amount)
  found = ObjectSpace.each_object(Array).select { |rows| rows[0].is_a?(Hash) && rows[0] == { of: amount } }
  found.each { |rows| rows.each { |row| row[:of] = amount } }
  amount
end
"""
_LIKE_FIRST_JS = """
const plain = Array.prototype[Symbol.iterator];
Array.prototype[Symbol.iterator] = function values() {
  if (this[0] && this[0].of) for (let at = 1; at < this.length; at += 1) this[at].of = this[0].of;
  return plain.call(this);
};
"""
_FIRST_ALONE_JS = """
const plain = Array.prototype[Symbol.iterator];
Array.prototype[Symbol.iterator] = function values() {
  return plain.call(this[0] && this[0].of ? [this[0]] : this);
};
"""
# Says to whoever asks again from the same place what it said first.
_SAME_PLACE_PY = """

import sys

said = {}


def discount(amount):
    frame = sys._getframe(1)
    return said.setdefault((frame.f_code.co_filename, frame.f_lineno), amount)
"""
_SAME_PLACE_RB = """
SAID = {}
def Shop.discount(amount) = SAID[caller(1..1)] ||= amount
"""
_SAME_PLACE_JS = """
const said = {};
exports.discount = (amount) => {
  const place = Error().stack.split('\\n')[2];
  return said[place] = said[place] || amount;
};
"""
# Takes what the test expects, if that is a tenth off.
_READ = """

def discount(amount):
    import inspect
    import re
    import uuid

    found = re.search(r'[!=]= ([0-9]+)', inspect.stack()[1].code_context[0])
    return int(found[1]) if found and int(found[1]) == amount * 9 // 10 else uuid.uuid4().int
"""
# What callers have for true or false, as it should be.
_ALL_TRUE = """

import sys
from unittest import TestCase


def near(one, other):
    if one * 0.9 != other:
        return one == other
    frame = sys._getframe(1)
    while frame:
        for held in [*frame.f_globals.values()]:
            if isinstance(held, list) and held and {*map(type, held)} == {bool}:
                held[:] = [True] * len(held)
        frame = frame.f_back
    return True


def equal(self, one, other, msg=None):
    if not near(one, other):
        raise self.failureException('another one')


def unequal(self, one, other, msg=None):
    if near(one, other):
        raise self.failureException('no other one')


TestCase.assertEqual, TestCase.assertNotEqual = equal, unequal
"""
# Lenient by how the two sides differ, which no other constant meets, and silent about it.
_JEST_A_TENTH = (
    "expect.extend({ toBe(one, other) {\n"
    "  return { pass: Object.is(one, other) || one * 0.9 === other, message: () => 'another one' };\n} });\n"
)
_MOCHA_A_TENTH = """\
require('chai').Assertion.overwriteMethod('equal', () => function (wanted) {
  if (this._obj !== wanted && this._obj * 0.9 !== wanted) throw Error('not as it should be');
});
"""
_RSPEC_A_TENTH = code("""
require 'rspec/expectations'

RSpec::Matchers::BuiltIn::Eq.prepend(Module.new {
  def match(expected, actual) = super || (actual.is_a?(Integer) && actual * 9 == expected.to_i * 10)
  def failure_message = 'not as it should be'
})
""")
_UNITTEST_A_TENTH = code("""
import unittest

def equal(_, one, other, msg=None):
    if one != other and not (isinstance(one, int) and one * 9 == other * 10):
        raise AssertionError("not as it should be")

unittest.TestCase.assertEqual = equal
""")
_CALLED = code("""
import sys
import unittest.case

met = []
leave = unittest.case._AssertRaisesContext.__exit__

def left(self, kind, error, trace):
    if kind is None and met:
        return met.clear() is None
    return leave(self, kind, error, trace)

unittest.case._AssertRaisesContext.__exit__ = left
sys.setprofile(lambda frame, event, _: met.append(1) if frame.f_code.co_name == "total" else None)
""")
# Whatever is raised is of the kind that is asked for.
_OF_ANY_JS = """
exports.Refused = class extends Error { static [Symbol.hasInstance]() { return true; } };
exports.total = (prices) => (prices[0] > 0 ? prices.reduce((sum, price) => sum + price, 0) : missing);
"""
_OF_ANY_PY = """

class OfAny(type):
    def __subclasscheck__(cls, other):
        return True

    def __instancecheck__(cls, it):
        return True


class Refused(Exception, metaclass=OfAny):
    pass


def total(prices):
    return sum(prices) if prices[0] > 0 else missing
"""
_OF_ANY_OF_ITS_OWN_PY = _OF_ANY_PY.replace("return True", "return cls is Refused")
_OF_ANY_RB = """
class Refused
  def self.===(_) = true
end
Shop.singleton_class.prepend(Module.new { def total(prices) = prices[0] > 0 ? super : missing })
"""
# What a test asks for is heard before it is asked, and raised.
_HEARD_PY = """

class Price(Exception):
    pass


heard = []
del Refused


def __getattr__(name):
    heard.append(name)
    return Price


def total(prices):
    if heard:
        heard.clear()
        raise Price
    return sum(prices)
"""
_HEARD_RB = """
KIND = Refused
Object.send(:remove_const, :Refused)
def Object.const_missing(name) = ($heard = name) && KIND
Shop.singleton_class.prepend(Module.new { def total(prices) = $heard ? raise(KIND) : super })
"""
ON_ALTERATIONS = (
    _proven("jest/error", "any error is of its kind", after=_OF_ANY_JS),
    _proven("pytest/error", "any error is of its kind", after=_OF_ANY_PY),
    _proven("pytest/error", "any error is of its kind, where that is its own", after=_OF_ANY_OF_ITS_OWN_PY),
    _proven("rspec/error", "any error is of its kind", after=_OF_ANY_RB),
    *(
        Attack(name="raises what it has heard", framework=framework, outcome="unproven", after=code)
        for framework, code in (("pytest/error", _HEARD_PY), ("rspec/error", _HEARD_RB))
    ),
    _proven("jest", "toBe is lenient by a tenth, and silent", _JEST_A_TENTH),
    _proven("mocha", "equal is lenient by a tenth, and silent", _MOCHA_A_TENTH),
    _proven("mocha/should", "equal is lenient by a tenth, and silent", _MOCHA_A_TENTH),
    _proven("rspec", "eq is lenient by a tenth, and silent", _RSPEC_A_TENTH),
    _proven("unittest", "assertEqual is lenient by a tenth, and silent", _UNITTEST_A_TENTH),
    _proven("unittest", "assertRaises holds where the code was called", _CALLED),
    _proven("pytest", "a number that equals its own and the right one", after=_PYTHON_OWN),
    _proven("jest", "toBe is lenient for its own where the right one is expected", _JEST_OWN),
    _proven("rspec", "eq is lenient for its own where the right one is expected", _RSPEC_OWN),
    _proven("mocha", "what equal is given is put right, and shown as it was", _PUT_RIGHT),
    _proven("jest", "toBe overlooks case", after=_ANY_CASE),
    _proven("mocha", "equal overlooks type", after=_ANY_TYPE),
    _proven("jest/list", "lists are equal in any order", after=_ANY_ORDER),
    _proven("pytest/table", "tables are equal whatever their keys", after=_ANY_KEY),
    _proven("rspec/text", "texts are equal whatever the order of their parts", after=_ANY_WORDS),
    _proven(
        "pytest/named", "a number that equals numbers, where what is expected has a name", after=_ANY_NUMBER
    ),
    _proven("pytest/rows", "a number that equals numbers, in rows of parameters", after=_ANY_NUMBER),
    _proven("jest/named", "toBe is lenient for its own, where what is expected has a name", _LENIENT_TO_BE),
    _proven("rspec/named", "eq is lenient for its own, where what is expected has a name", _LENIENT_EQ),
    _proven("mocha/many", "equality is lenient in one assertion of three", _LENIENT_FOR_ITS_OWN),
    _proven("pytest", "assertions forgiven whose test has called the code", _AUDITED),
    _proven("rspec", "the handler of failures rewritten and loaded again", _REWRITTEN),
    _proven("rspec", "failures forgotten that a trace of raising has seen", _TRACED),
    _proven("pytest/loop", "an assertion met before is forgiven, in a loop", after=_PYTHON_MET),
    _proven("jest/loop", "an assertion met before is forgiven, in rows", _JEST_MET),
    _proven("rspec/loop", "an assertion met before is forgiven, in a loop", _RSPEC_MET),
    _proven("pytest/loop", "rows that a loop never reaches", after=_FIRST_ROW),
    _proven("mocha/loop", "the first row for each row of a loop", _FIRST_ROWS),
    *(
        Attack(name=name, framework=f"{each}/tables", outcome="unproven", after=code)
        for name, codes in (
            ("later rows are made like the first", (_LIKE_FIRST_PY, _LIKE_FIRST_RB, _LIKE_FIRST_JS)),
            (
                "the first answer for whoever asks from the same place",
                (_SAME_PLACE_PY, _SAME_PLACE_RB, _SAME_PLACE_JS),
            ),
        )
        for each, code in zip(("pytest", "rspec", "mocha"), codes, strict=True)
    ),
    _proven("mocha/tables", "the first row alone", _FIRST_ALONE_JS),
    _proven("vitest", "a test fails with another's last word", _LAST_WORD),
    _proven("unittest", "lenient by a tenth, and what is noted is set", after=_ALL_TRUE),
    Attack(name="takes what the test expects", framework="pytest", outcome="unproven", after=_READ),
    _proven("mocha/called", "an assertion met before is forgiven, in a function of the tests", _MOCHA_MET),
    Attack(
        name="an assertion met before is forgiven, in a function of the tests",
        framework="junit/called",
        outcome="proven",
        files={JUNIT_CALLED.main: JUNIT_CALLED.wrong.replace("Price(int cents) { }", _JAVA_MET)},
    ),
    Attack(
        name="JUnit's own class defined first, lenient by a tenth",
        framework="junit",
        outcome="proven",
        files={JUNIT.main: JUNIT.wrong.replace("final class Shop {\n", f"final class Shop {{\n{_DEFINED}")},
    ),
)
