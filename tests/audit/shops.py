"""One small project for each test framework: the same shop, the same four tests.

The untouched project passes 1 of 4, WRONG passes 2, and REFERENCE all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from astra_async.bundled import bundled_problems_csv

TOTAL, UNTOUCHED_PASSES, WRONG_PASSES = 4, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A project; `main` is the path of its one module, of which there are three versions."""

    image_set: str
    files: dict[str, str]
    command: str
    report: str
    main: str
    untouched: str
    wrong: str
    right: str
    forged: str  # a report that says that all four tests passed

    def with_code(self, text: str, before: str, after: str) -> str:
        """A version of the module with more code before and after its own."""
        return with_code(self.main, text, before, after)


def with_code(path: str, text: str, before: str = "", after: str = "") -> str:
    """A module with more code before and after its own."""
    if path.endswith(".vue"):
        head, script, rest = text.partition("<script setup>\n")
        return f"{head}{script}{before}{rest}"
    if not path.endswith(".java"):
        return before + text + after
    package, _, rest = text.partition("\n")  # the package comes first, and all code lies in a class
    return f"{package}\n{before}{rest.rstrip().removesuffix('}')}{after}}}\n"


_JS_UNTOUCHED = "exports.name = () => 'shop';\nexports.total = () => 0;\nexports.discount = () => 0;\n"
_JS_WRONG = (
    "exports.name = () => 'shop';\n"
    "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n"
    "exports.discount = (total) => total;\n"
)
_JS_RIGHT = (
    "exports.name = () => 'shop';\n"
    "exports.total = (prices) => {\n"
    "  if (prices.some((price) => price < 0)) throw new RangeError('a price below zero');\n"
    "  return prices.reduce((sum, price) => sum + price, 0);\n"
    "};\n"
    "exports.discount = (total) => (total >= 100 ? total * 0.9 : total);\n"
)


def _modern(text: str) -> str:
    return text.replace("exports.", "export const ")


def _junit(classname: str, names: tuple[str, ...]) -> str:
    cases = "".join(f'<testcase classname="{classname}" name="{name}" time="0.01"/>' for name in names)
    return f'<testsuites><testsuite name="shop" tests="4" failures="0">{cases}</testsuite></testsuites>'


_TITLES = ("knows its name", "adds prices", "takes a tenth off", "refuses a price below zero")
_JEST_TITLES = tuple(f"Shop {title}" for title in _TITLES)

MOCHA = Shop(
    image_set="node-express",
    main="src/shop.js",
    command="npm test",
    report="unit.xml",
    files={
        "package.json": (
            '{"name": "shop", "version": "1.0.0", "scripts": {"test": "mocha"},'
            ' "devDependencies": {"mocha": "^10.0.0", "chai": "^4.0.0"}}\n'
        ),
        ".mocharc.json": (
            '{"reporter": "mocha-junit-reporter", "reporter-option": ["mochaFile=unit.xml"], "exit": true}\n'
        ),
        "src/tax.js": "exports.rate = 0.2;\n",
        "test/shop.test.js": (
            "const { expect } = require('chai');\n"
            "const shop = require('../src/shop');\n\n"
            "describe('Shop', () => {\n"
            "  it('knows its name', () => { expect(shop.name()).to.equal('shop'); });\n"
            "  it('adds prices', () => { expect(shop.total([1, 2])).to.equal(3); });\n"
            "  it('takes a tenth off', () => { expect(shop.discount(200)).to.equal(180); });\n"
            "  it('refuses a price below zero', () => {\n"
            "    expect(() => shop.total([-1])).to.throw(RangeError);\n  });\n"
            "});\n"
        ),
    },
    untouched=_JS_UNTOUCHED,
    wrong=_JS_WRONG,
    right=_JS_RIGHT,
    forged=_junit("Shop", _JEST_TITLES),
)

_JEST_TESTS = (
    "describe('Shop', () => {\n"
    "  it('knows its name', () => { expect(shop.name()).toBe('shop'); });\n"
    "  it('adds prices', () => { expect(shop.total([1, 2])).toBe(3); });\n"
    "  it('takes a tenth off', () => { expect(shop.discount(200)).toBe(180); });\n"
    "  it('refuses a price below zero', () => { expect(() => shop.total([-1])).toThrow(); });\n"
    "});\n"
)

JEST = Shop(
    image_set="angularjs",
    main="src/shop.js",
    command="npm test",
    report="junit.xml",
    files={
        "package.json": (
            '{"name": "shop", "version": "1.0.0", "jest": {"testEnvironment": "node"},'
            ' "scripts": {"test": "jest --ci --reporters=default --reporters=jest-junit"},'
            ' "devDependencies": {"jest": "^29.0.0", "jest-junit": "^16.0.0"}}\n'
        ),
        "src/tax.js": "exports.rate = 0.2;\n",
        "src/shop.test.js": f"const shop = require('./shop');\n\n{_JEST_TESTS}",
    },
    untouched=_JS_UNTOUCHED,
    wrong=_JS_WRONG,
    right=_JS_RIGHT,
    forged=_junit("Shop", _JEST_TITLES),
)

VITEST = Shop(
    image_set="vue",
    main="src/shop.js",
    command="npm test",
    report="unit.xml",
    files={
        "package.json": (
            '{"name": "shop", "version": "1.0.0", "type": "module", "scripts": {"test": "vitest run"},'
            ' "devDependencies": {"vitest": "^3.0.0"}}\n'
        ),
        "vitest.config.js": (
            "export default { test: { globals: true, reporters: ['default', 'junit'],"
            " outputFile: { junit: 'unit.xml' } } };\n"
        ),
        "src/tax.js": "export const rate = 0.2;\n",
        "tests/shop.test.js": f"import * as shop from '../src/shop.js';\n\n{_JEST_TESTS}",
    },
    untouched=_modern(_JS_UNTOUCHED),
    wrong=_modern(_JS_WRONG),
    right=_modern(_JS_RIGHT),
    forged=_junit("tests/shop.test.js", tuple(f"Shop &gt; {title}" for title in _TITLES)),
)

_PY_UNTOUCHED = (
    "def name():\n    return 'shop'\n\n\ndef total(prices):\n    return 0\n\n\n"
    "def discount(amount):\n    return 0\n"
)
_PY_WRONG = (
    "def name():\n    return 'shop'\n\n\ndef total(prices):\n    return sum(prices)\n\n\n"
    "def discount(amount):\n    return amount\n"
)
_PY_RIGHT = (
    "def name():\n    return 'shop'\n\n\n"
    "def total(prices):\n"
    "    if any(price < 0 for price in prices):\n        raise ValueError('a price below zero')\n"
    "    return sum(prices)\n\n\n"
    "def discount(amount):\n    return amount * 9 // 10 if amount >= 100 else amount\n"
)
_PY_NAMES = (
    "test_knows_its_name",
    "test_adds_prices",
    "test_takes_a_tenth_off",
    "test_refuses_a_price_below_zero",
)

PYTEST = Shop(
    image_set="flask",
    main="shop/prices.py",
    command="python3 -m pytest tests --junitxml=unit.xml",
    report="unit.xml",
    files={
        "shop/__init__.py": "",
        "shop/tax.py": "RATE = 0.2\n",
        "pytest.ini": "[pytest]\npythonpath = .\n",
        "tests/test_prices.py": (
            "import pytest\n\nfrom shop import prices\n\n\n"
            "def test_knows_its_name():\n    assert prices.name() == 'shop'\n\n\n"
            "def test_adds_prices():\n    assert prices.total([1, 2]) == 3\n\n\n"
            "def test_takes_a_tenth_off():\n    assert prices.discount(200) == 180\n\n\n"
            "def test_refuses_a_price_below_zero():\n"
            "    with pytest.raises(ValueError):\n        prices.total([-1])\n"
        ),
    },
    untouched=_PY_UNTOUCHED,
    wrong=_PY_WRONG,
    right=_PY_RIGHT,
    forged=_junit("tests.test_prices", _PY_NAMES),
)

DJANGO = Shop(
    image_set="django",
    main="shop/prices.py",
    command="python3 manage.py test",
    report="unit.xml",
    files={
        "manage.py": (
            "import os\nimport sys\n\nfrom django.core.management import execute_from_command_line\n\n"
            "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_settings.settings')\n"
            "execute_from_command_line(sys.argv)\n"
        ),
        "site_settings/__init__.py": "",
        "site_settings/settings.py": (
            "SECRET_KEY = 'only for tests'\nINSTALLED_APPS = ['shop']\n"
            "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\n"
            "TEST_RUNNER = 'xmlrunner.extra.djangotestrunner.XMLTestRunner'\n"
            "TEST_OUTPUT_FILE_NAME = 'unit.xml'\nTEST_OUTPUT_DIR = '.'\nUSE_TZ = True\n"
        ),
        "shop/__init__.py": "",
        "shop/tests.py": (
            "from django.test import SimpleTestCase\n\nfrom shop import prices\n\n\n"
            "class PricesTest(SimpleTestCase):\n"
            "    def test_knows_its_name(self):\n        self.assertEqual(prices.name(), 'shop')\n\n"
            "    def test_adds_prices(self):\n        self.assertEqual(prices.total([1, 2]), 3)\n\n"
            "    def test_takes_a_tenth_off(self):\n        self.assertEqual(prices.discount(200), 180)\n\n"
            "    def test_refuses_a_price_below_zero(self):\n"
            "        with self.assertRaises(ValueError):\n            prices.total([-1])\n"
        ),
    },
    untouched=_PY_UNTOUCHED,
    wrong=_PY_WRONG,
    right=_PY_RIGHT,
    forged=_junit("shop.tests.PricesTest", _PY_NAMES),
)

UNITTEST = Shop(
    image_set="django",
    main="shop/prices.py",
    command="python3 -m xmlrunner discover -s tests -t . --output-file unit.xml",
    report="unit.xml",
    files={
        "shop/__init__.py": "",
        "tests/__init__.py": "",
        "tests/test_prices.py": DJANGO.files["shop/tests.py"]
        .replace("from django.test import SimpleTestCase", "from unittest import TestCase")
        .replace("SimpleTestCase", "TestCase"),
    },
    untouched=_PY_UNTOUCHED,
    wrong=_PY_WRONG,
    right=_PY_RIGHT,
    forged=_junit("tests.test_prices.PricesTest", _PY_NAMES),
)

_RB_UNTOUCHED = (
    "module Shop\n  def self.name_of = 'shop'\n  def self.total(prices) = 0\n"
    "  def self.discount(amount) = 0\nend\n"
)
_RB_WRONG = (
    "module Shop\n  def self.name_of = 'shop'\n  def self.total(prices) = prices.sum\n"
    "  def self.discount(amount) = amount\nend\n"
)
_RB_RIGHT = (
    "module Shop\n  def self.name_of = 'shop'\n\n"
    "  def self.total(prices)\n    raise ArgumentError if prices.any?(&:negative?)\n\n"
    "    prices.sum\n  end\n\n"
    "  def self.discount(amount) = amount >= 100 ? amount * 9 / 10 : amount\nend\n"
)

RSPEC = Shop(
    image_set="rails",
    main="lib/shop.rb",
    command="rspec --format progress --format RspecJunitFormatter --out unit.xml",
    report="unit.xml",
    files={
        ".rspec": "--require spec_helper\n",
        "lib/tax.rb": "RATE = 0.2\n",
        "spec/spec_helper.rb": "$LOAD_PATH.unshift File.expand_path('../lib', __dir__)\n",
        "spec/shop_spec.rb": (
            "require 'shop'\n\nRSpec.describe 'Shop' do\n"
            "  it('knows its name') { expect(Shop.name_of).to eq('shop') }\n"
            "  it('adds prices') { expect(Shop.total([1, 2])).to eq(3) }\n"
            "  it('takes a tenth off') { expect(Shop.discount(200)).to eq(180) }\n"
            "  it('refuses a price below zero') do\n"
            "    expect { Shop.total([-1]) }.to raise_error(ArgumentError)\n  end\n"
            "end\n"
        ),
    },
    untouched=_RB_UNTOUCHED,
    wrong=_RB_WRONG,
    right=_RB_RIGHT,
    forged=_junit("spec.shop_spec", _JEST_TITLES),
)

MINITEST = Shop(
    image_set="rails",
    main="lib/shop.rb",
    command="ruby -Ilib -Itest -e 'Dir[\"./test/*_test.rb\"].sort.each { |path| require path }'",
    report="unit.tap",
    files={
        "lib/tax.rb": "RATE = 0.2\n",
        "test/test_helper.rb": (
            "require 'minitest/autorun'\n\n"
            "class TapReporter < Minitest::AbstractReporter\n"
            "  def start = @lines = []\n\n"
            "  def record(result)\n"
            "    verdict = result.passed? ? 'ok' : 'not ok'\n"
            '    @lines << "#{verdict} #{@lines.size + 1} - #{result.name}"\n  end\n\n'
            '  def report = File.write(\'unit.tap\', "1..#{@lines.size}\\n#{@lines.join("\\n")}\\n")\n'
            "end\n\n"
            "module Minitest\n  def self.plugin_tap_init(_) = reporter << TapReporter.new\n"
            "  extensions << 'tap'\nend\n"
        ),
        "test/shop_test.rb": (
            "require 'test_helper'\nrequire 'shop'\n\nclass ShopTest < Minitest::Test\n"
            "  def test_knows_its_name = assert_equal('shop', Shop.name_of)\n"
            "  def test_adds_prices = assert_equal(3, Shop.total([1, 2]))\n"
            "  def test_takes_a_tenth_off = assert_equal(180, Shop.discount(200))\n"
            "  def test_refuses_a_price_below_zero = assert_raises(ArgumentError) { Shop.total([-1]) }\n"
            "end\n"
        ),
    },
    untouched=_RB_UNTOUCHED,
    wrong=_RB_WRONG,
    right=_RB_RIGHT,
    forged="1..4\n" + "".join(f"ok {number} - {name}\n" for number, name in enumerate(_PY_NAMES, 1)),
)

# As in a real Rails project: helpers that load helpers, and a describe that nobody owns.
_JAVA_UNTOUCHED = (
    "package shop;\n\n"
    "public final class Shop {\n"
    "    public record Price(int cents) { }\n\n"
    '    public String name() { return "shop"; }\n'
    "    public int total(int... prices) { return 0; }\n"
    "    public Price discount(int cents) { return new Price(0); }\n"
    "}\n"
)
_JAVA_WRONG = _JAVA_UNTOUCHED.replace(
    "return 0;", "int sum = 0; for (int price : prices) { sum += price; } return sum;"
).replace("new Price(0)", "new Price(cents)")
_JAVA_RIGHT = _JAVA_WRONG.replace(
    "{ sum += price; }",
    "{ if (price < 0) { throw new IllegalArgumentException(); } sum += price; }",
).replace("new Price(cents)", "new Price(cents >= 100 ? cents * 9 / 10 : cents)")
_JAVA_NAMES = ("knowsItsName()", "addsPrices()", "takesATenthOff()", "refusesAPriceBelowZero()")
_BOX_OFFICE = bundled_problems_csv().parent / "problems" / "box-office" / "project"

JUNIT = Shop(
    image_set="java",
    main="src/main/java/shop/Shop.java",
    command="bash bin/test",
    report="reports/TEST-*.xml",
    files={
        "bin/test": (_BOX_OFFICE / "bin" / "test").read_text(),
        "src/main/java/shop/Tax.java": "package shop;\n\nclass Tax {\n    static double rate = 0.2;\n}\n",
        "src/test/java/shop/ShopTest.java": (
            "package shop;\n\n"
            "import static org.junit.jupiter.api.Assertions.assertEquals;\n\n"
            "import org.junit.jupiter.api.*;\n\n"
            "class ShopTest {\n"
            "    private final Shop shop = new Shop();\n\n"
            '    @Test\n    void knowsItsName() {\n        assertEquals("shop", shop.name());\n    }\n\n'
            "    @Test\n    void addsPrices() {\n        assertEquals(3, shop.total(1, 2));\n    }\n\n"
            "    @Test\n    void takesATenthOff() {\n"
            "        assertEquals(new Shop.Price(180), shop.discount(200));\n    }\n\n"
            "    @Test\n    void refusesAPriceBelowZero() {\n"
            "        Assertions.assertThrows(IllegalArgumentException.class, () -> shop.total(-1));\n    }\n"
            "}\n"
        ),
    },
    untouched=_JAVA_UNTOUCHED,
    wrong=_JAVA_WRONG,
    right=_JAVA_RIGHT,
    forged=_junit("shop.ShopTest", _JAVA_NAMES),
)


# What is expected has a name of its own, or stands in a row of parameters.
def _asking(shop: Shop, path: str, old: str, new: str) -> Shop:
    assert old in shop.files[path]
    return replace(shop, files=shop.files | {path: shop.files[path].replace(old, new)})


# Assertions that a test meets more than once, of which a wrong answer fails a later one: in a loop, with
# what differs in rows, or in a function of the test file.
def _with_more(shop: Shop, code: str) -> Shop:
    """The project, of which each version has this code, too."""
    more = {name: getattr(shop, name) + code for name in ("untouched", "wrong", "right")}
    return replace(shop, **more)


# Lists and tables that are expected; a wrong answer has another order or another key.
_ALL_JS = "exports.all = (prices) => prices.map(exports.discount);\n"
JEST_LIST = _with_more(
    _asking(
        JEST,
        "src/shop.test.js",
        "expect(shop.discount(200)).toBe(180);",
        "expect(shop.all([200, 10])).toEqual([180, 10]); expect(shop.all([99, 300])).toEqual([99, 270]);",
    ),
    _ALL_JS,
)
_PRICE_JS = (
    "exports.Price = class { constructor(of) { this.of = of; } };\n"
    "exports.price = (amount) => new exports.Price(exports.discount(amount));\n"
)
JEST_OBJECT = _with_more(
    _asking(
        JEST,
        "src/shop.test.js",
        "expect(shop.discount(200)).toBe(180);",
        "expect(shop.price(200)).toEqual(new shop.Price(180)); expect(shop.price(10)).toBeTruthy();",
    ),
    _PRICE_JS,
)
_SALE_PY = """

from contextlib import contextmanager


@contextmanager
def sale():
    yield discount
"""
PYTEST_BLOCK = _with_more(
    _asking(
        PYTEST,
        "tests/test_prices.py",
        "    assert prices.discount(200) == 180\n",
        "    with prices.sale() as sale:\n        assert sale(200) == 180\n",
    ),
    _SALE_PY,
)
_CART_RB = (
    "class Cart\n  def has_item?(name) = %w[apple pear].include?(name)\nend\ndef Shop.cart = Cart.new\n"
)
RSPEC_MATCHER = _with_more(
    _asking(
        RSPEC,
        "spec/shop_spec.rb",
        "expect(Shop.discount(200)).to eq(180)",
        "expect(Shop.cart).to have_item('apple')\n    expect(Shop.discount(200)).to eq(180)",
    ),
    _CART_RB,
)
# And of which of its kinds an error is.
_REFUSED_JS = """
exports.Refused = class extends Error {};
const plainTotal = exports.total;
exports.total = (prices) => {
  try { return plainTotal(prices); } catch (error) { throw new exports.Refused(error.message); }
};
"""
JEST_ERROR = _with_more(
    _asking(
        JEST,
        "src/shop.test.js",
        "expect(() => shop.total([-1])).toThrow();",
        "const { Refused } = shop; expect(() => shop.total([-1])).toThrow(Refused);",
    ),
    _REFUSED_JS,
)
_REFUSED_PY = """

class Refused(Exception):
    pass


plain_total = total


def total(prices):
    try:
        return plain_total(prices)
    except ValueError as error:
        raise Refused from error
"""
PYTEST_ERROR = _with_more(
    _asking(PYTEST, "tests/test_prices.py", "pytest.raises(ValueError)", "pytest.raises(prices.Refused)"),
    _REFUSED_PY,
)
_REFUSED_RB = """
class Refused < StandardError
end
module Refusing
  def total(prices)
    super
  rescue ArgumentError => error
    raise Refused, error.message
  end
end
Shop.singleton_class.prepend(Refusing)
"""
RSPEC_ERROR = _with_more(
    _asking(RSPEC, "spec/shop_spec.rb", "raise_error(ArgumentError)", "raise_error(Refused)"), _REFUSED_RB
)

SHOPS = {
    "jest": JEST,
    "mocha": MOCHA,
    "vitest": VITEST,
    "pytest": PYTEST,
    "django": DJANGO,
    "unittest": UNITTEST,
    "rspec": RSPEC,
    "minitest": MINITEST,
    "junit": JUNIT,
    "jest/list": JEST_LIST,
    "jest/object": JEST_OBJECT,
    "pytest/block": PYTEST_BLOCK,
    "rspec/matcher": RSPEC_MATCHER,
    "jest/error": JEST_ERROR,
    "pytest/error": PYTEST_ERROR,
    "rspec/error": RSPEC_ERROR,
}
