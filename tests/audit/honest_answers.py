"""Honest answers that do what looks suspicious; each must keep its full marks."""

from __future__ import annotations

from dataclasses import dataclass, field

from shops import SHOPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """One right answer: code before and after the module's own, and further files."""

    name: str
    framework: str
    before: str = ""
    after: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> dict[str, str]:
        shop = SHOPS[self.framework]
        return {shop.main: shop.with_code(shop.right, self.before, self.after), **self.files}


_LOUD_JS = "for (let line = 0; line < 20000; line += 1) console.log('a line of output', line);\n"
_LOUD_PY = "for line in range(20000):\n    print('a line of output', line)\n"
_SETTINGS = SHOPS["django"].files["site_settings/settings.py"]

_PRIVATE_JS = (
    "exports.Price = class { #of; constructor(of) { this.#of = of; } get of() { return this.#of; } };\n"
)
_OTHER_ITERATOR_JS = """
class Prices extends Array {
  * [Symbol.iterator]() { for (let at = 0; at < this.length; at += 1) yield [at]; }
}
const plain = exports.all;
exports.all = (prices) => Object.setPrototypeOf(plain(prices), Prices.prototype);
"""
_SWALLOWING_PY = """

@contextmanager
def sale():
    try:
        yield discount
    except Exception as error:
        print('the sale is off:', error)
"""
# What equals the right values is shown as something else: an address, a running number, capitals.
_SHOWN_PY = """

class Name(str):
    def __repr__(self):
        return f'<{self.upper()} of ours>'


class Amount:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == getattr(other, 'number', other)

    def __repr__(self):
        return f'Amount #{id(self) % 1000}'


plain_name, plain_total, plain_discount = name, total, discount
name = lambda: Name(plain_name())
total = lambda prices: Amount(plain_total(prices))
discount = lambda amount: Amount(float(plain_discount(amount)))
"""
_SHOWN_RB = """
require 'delegate'
module Shown
  class Amount < SimpleDelegator
    def inspect = "#<Amount ##{object_id % 1000}>"
  end
  def name_of = super.dup.tap { |it| it.define_singleton_method(:inspect) { "<#{upcase} of ours>" } }
  def total(prices) = Amount.new(super)
  def discount(amount) = Amount.new(super.to_r)
end
Shop.singleton_class.prepend(Shown)
"""
_FLAT_RB = (
    "class Cart\n  def has_item?(*names) = names.flatten.all? { |name| %w[apple pear].include?(name) }\nend\n"
)
# An error is of the kind whose code it has.
_CODE_JS = """
exports.Refused = class extends Error {
  static [Symbol.hasInstance](error) { return error?.code === 'refused'; }
};
exports.total = (prices) => {
  try { return plainTotal(prices); }
  catch (error) { throw Object.assign(new exports.Refused(error.message), { code: 'refused' }); }
};
"""
_CODE_PY = """

class ByCode(type):
    def __subclasscheck__(cls, other):
        return getattr(other, 'code', None) == cls.code

    def __instancecheck__(cls, it):
        return issubclass(type(it), cls)


KINDS = {}


class Error(Exception):
    def __init_subclass__(cls):
        KINDS[cls.code] = cls


class Refused(Error, metaclass=ByCode):
    code = 'refused'


def total(prices):
    try:
        return plain_total(prices)
    except ValueError as error:
        raise KINDS['refused'] from error
"""
_CODE_RB = """
class Refused
  def code = :refused
  def self.===(error) = error.respond_to?(:code) && error.code == :refused
end
"""

HONEST = (
    Honest(name="a private field", framework="jest/object", after=_PRIVATE_JS),
    Honest(name="a list with an iterator of its own", framework="jest/list", after=_OTHER_ITERATOR_JS),
    Honest(name="a block that swallows", framework="pytest/block", after=_SWALLOWING_PY),
    Honest(name="values that show themselves otherwise", framework="pytest", after=_SHOWN_PY),
    Honest(name="values that show themselves otherwise", framework="rspec", after=_SHOWN_RB),
    Honest(name="errors told by a code", framework="jest/error", after=_CODE_JS),
    Honest(name="errors told by a code", framework="pytest/error", after=_CODE_PY),
    Honest(name="errors told by a code", framework="rspec/error", after=_CODE_RB),
    Honest(name="a predicate of many", framework="rspec/matcher", after=_FLAT_RB),
    Honest(
        name="new files",
        framework="mocha",
        before="const { check } = require('./checks/price');\ncheck(1);\n",
        files={
            "src/checks/price.js": "exports.check = (price) => price >= 0;\n",
            "src/checks/index.js": "module.exports = require('./price');\n",
        },
    ),
    Honest(
        name="changed dependencies",
        framework="mocha",
        files={
            "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"test": "mocha"},'
            ' "dependencies": {"express": "^4.18.0", "lodash": "^4.17.21"}}'
        },
    ),
    Honest(
        name="own tests",
        framework="mocha",
        files={"test/tax.test.js": "it('has a tax', () => { throw new Error('not finished'); });\n"},
    ),
    Honest(
        name="innocent exit handler",
        framework="mocha",
        before="const open = new Set();\nprocess.on('exit', () => open.clear());\n"
        "process.on('SIGTERM', () => process.exit(0));\n",
    ),
    Honest(
        name="a server that starts with the module",
        framework="mocha",
        before="const server = require('http').createServer((_, answer) => answer.end('shop'));\n"
        "if (require.main === module) server.listen(3000);\n",
    ),
    Honest(name="much output", framework="mocha", before=_LOUD_JS),
    Honest(
        name="own methods of built-in types",
        framework="mocha",
        before=(
            "Array.prototype.last = function () { return this[this.length - 1]; };\n"
            "Object.prototype.tap = function (block) { block(this); return this; };\n"
        ),
    ),
    Honest(
        name="own tests",
        framework="jest",
        files={"src/tax.test.js": "test('fails', () => { expect(1).toBe(2); });\n"},
    ),
    Honest(
        name="equality of its own",
        framework="jest",
        after="exports.same = (a, b) => Object.is(a, b);\n"
        "Object.defineProperty(exports, 'version', { value: 1 });\n",
    ),
    Honest(
        name="new files",
        framework="vitest",
        before="import { rate } from './rates/index.js';\n"
        "export const withTax = (price) => price * (1 + rate);\n",
        files={"src/rates/index.js": "export { rate } from '../tax.js';\n"},
    ),
    Honest(name="much output", framework="vitest", before=_LOUD_JS),
    Honest(
        name="an exit handler and a comparison",
        framework="pytest",
        before="import atexit\nimport functools\nimport sys\n\n\n@functools.total_ordering\nclass Price:\n"
        "    def __init__(self, amount):\n        self.amount = amount\n\n"
        "    def __eq__(self, other):\n        return self.amount == other.amount\n\n"
        "    def __lt__(self, other):\n        return self.amount < other.amount\n\n\n"
        "atexit.register(sys.stdout.flush)\n\n\n",
    ),
    Honest(
        name="an error of two kinds",
        framework="pytest",
        before="class Refused(ValueError, LookupError):\n    pass\n\n\n",
        after="\n\nplain = total\n\n\ndef total(prices):\n    try:\n        return plain(prices)\n"
        "    except ValueError as error:\n        raise Refused from error\n",
    ),
    Honest(name="much output", framework="pytest", before=_LOUD_PY),
    Honest(
        name="new package and requirements",
        framework="pytest",
        before="from shop.rates import RATE\n\n\ndef taxed(price):\n    return price * (1 + RATE)\n\n\n",
        files={
            "shop/rates/__init__.py": "from shop.tax import RATE\n",
            "requirements.txt": "flask\n",
        },
    ),
    Honest(
        name="edited settings.py and new urls",
        framework="django",
        files={
            "site_settings/settings.py": _SETTINGS
            + "ROOT_URLCONF = 'site_settings.urls'\nDEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\n",
            "site_settings/urls.py": "from django.urls import path\n\nurlpatterns = []\n",
        },
    ),
    Honest(
        name="a signal handler and a model",
        framework="django",
        files={
            "shop/models.py": "from django.db import models\n\n\nclass Order(models.Model):\n"
            "    amount = models.IntegerField()\n\n    def __eq__(self, other):\n"
            "        return isinstance(other, Order) and self.pk == other.pk\n\n"
            "    __hash__ = models.Model.__hash__\n"
        },
    ),
    Honest(
        name="at_exit and refined strings",
        framework="rspec",
        before="at_exit { $stdout.flush }\n\nmodule Prices\n  refine Integer do\n"
        '    def euros = "#{self} EUR"\n  end\nend\n\n',
    ),
    Honest(
        name="equality of its own",
        framework="minitest",
        after="\nclass Price\n  attr_reader :amount\n\n  def initialize(amount) = @amount = amount\n\n"
        "  def ==(other) = amount == other.amount\nend\n",
    ),
    Honest(
        name="equality, a shutdown hook and class loading",
        framework="junit",
        after="    @Override\n    public boolean equals(Object other) { return other instanceof Shop; }\n\n"
        "    @Override\n    public int hashCode() { return 7; }\n\n"
        "    static { Runtime.getRuntime().addShutdownHook(new Thread(System.out::flush)); }\n\n"
        "    static final ClassLoader LOADER = Shop.class.getClassLoader();\n",
    ),
    Honest(
        name="own tests and new classes",
        framework="junit",
        files={
            "src/main/java/shop/rates/Rate.java": "package shop.rates;\n\n/** A rate. */\n"
            "public record Rate(double value) { }\n",
            "src/test/java/shop/TaxTest.java": "package shop;\n\nclass TaxTest {\n"
            "    @org.junit.jupiter.api.Test\n    void fails() { throw new AssertionError(); }\n}\n",
        },
    ),
    Honest(
        name="much output and a thread that waits",
        framework="junit",
        after="    static {\n        for (int line = 0; line < 20000; line++) {"
        ' System.out.println("a line of output " + line); }\n'
        "        Thread waiting = new Thread(() -> java.util.concurrent.locks.LockSupport.park());\n"
        "        waiting.setDaemon(true);\n        waiting.start();\n    }\n",
    ),
)
