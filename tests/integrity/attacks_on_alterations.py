"""Attacks on what trials alter: leniency where no constant stands, or in one assertion of many.

And some that reach the runner by other roads: sources rewritten and loaded again, calls and errors traced.
"""

from __future__ import annotations

from attack import Attack
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
ON_ALTERATIONS = (
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
)
