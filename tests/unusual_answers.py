"""Correct answers that look suspicious: references with unusual file names or unusual code.

Each file that is added is loaded by the answer's own code, which fails without it: an answer that loses a
file loses its points. Own tests are the exception: they may be left out, and must not cost anything.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.bundled import load_answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusual:
    """One right answer to a bundled problem; `left_out` are its own tests, and may be dropped."""

    stack: str
    framework: str  # the problem
    name: str
    answer: dict[str, str]
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A bundled problem and how its `module` loads a file.

    `loaded` are paths of files that the module loads, `beside` those that nothing loads, `tests` own tests
    (path to text), `odd` code for the module by what it does, `instead` code by what is the same without it.
    """

    problem: str
    module: str
    load: Callable[[str, str], tuple[dict[str, str], str]]
    insert: Callable[[str, str], str]
    loaded: tuple[str, ...]
    beside: tuple[str, ...] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    odd: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def _from(module: str, path: str) -> str:
    relative = posixpath.relpath(path, posixpath.dirname(module))
    return relative if relative.startswith(".") else f"./{relative}"


def _number(path: str) -> int:
    return sum(map(ord, path))


def _common_js(module: str, path: str) -> tuple[dict[str, str], str]:
    name = f"kept{_number(path)}"
    check = f"if ({name}.keep !== 'kept') throw new Error('lost: {path}');\n"
    text = '{"keep": "kept"}\n' if path.endswith(".json") else "'use strict';\n\nexports.keep = 'kept';\n"
    return {path: text}, f"const {name} = require('{_from(module, path)}');\n{check}"


_TEXT_OF_MODULE = {
    ".json": '{"keep": "kept"}\n',
    ".css": ".kept { color: red; }\n",
    ".scss": ".kept { color: red; }\n",
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" height="1"/></svg>\n',
    ".png": "a place for the picture\n",
    ".vue": "<template><p>kept</p></template>\n",
}


def _es_module(module: str, path: str) -> tuple[dict[str, str], str]:
    suffix = posixpath.splitext(path)[1]
    name = f"kept{_number(path)}"
    if suffix in {".css", ".scss"}:
        return {path: _TEXT_OF_MODULE[suffix]}, f"import '{_from(module, path)}';\n"
    text = _TEXT_OF_MODULE.get(suffix, "export default { keep: 'kept' };\n")
    check = f"if (!{name}) throw new Error('lost: {path}');\n"
    return {path: text}, f"import {name} from '{_from(module, path)}';\n{check}"


def _typescript(module: str, path: str) -> tuple[dict[str, str], str]:
    name = f"kept{_number(path)}"
    specifier = _from(module, path).removesuffix(".ts")
    check = f"if ({name} !== 'kept') throw new Error('lost: {path}');\n"
    return {
        path: f"export const {name}: string = 'kept';\n"
    }, f"import {{ {name} }} from '{specifier}';\n{check}"


def _script(_: str, path: str) -> tuple[dict[str, str], str]:
    text = f"angular.module('notesApp').value('kept{_number(path)}', true);\n"
    return {path: text}, f'    <script src="{path}"></script>\n'


def _python(module: str, path: str) -> tuple[dict[str, str], str]:
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    files = {path: 'KEPT = "kept"\n'}
    folder = posixpath.dirname(path)
    while folder and folder != posixpath.dirname(module) and f"{folder}/__init__.py" not in files:
        files[f"{folder}/__init__.py"] = ""
        folder = posixpath.dirname(folder)
    name = f"KEPT_{_number(path)}"
    return files, f'from {dotted} import KEPT as {name}\n\nassert {name} == "kept"\n'


def _camel(path: str) -> str:
    return "".join(part.capitalize() for part in posixpath.basename(path).removesuffix(".rb").split("_"))


def _ruby(module: str, path: str) -> tuple[dict[str, str], str]:
    text = f'module {_camel(path)}\n  KEPT = "kept"\nend\n'
    check = f'raise "lost" unless {_camel(path)}::KEPT == "kept"\n'
    if path.startswith("app/"):
        return {path: text}, check
    return {path: text}, f'require_relative "{_from(module, path).removesuffix(".rb")}"\n{check}'


def _java(_: str, path: str) -> tuple[dict[str, str], str]:
    folder, _, file = path.removeprefix("src/main/java/").rpartition("/")
    package, name = folder.replace("/", "."), file.removesuffix(".java")
    body = "    public static int keep() { return 1; }\n"
    text = f"package {package};\n\npublic final class {name} {{\n{body}}}\n"
    return {path: text}, f"    static final int KEPT_{_number(path)} = {package}.{name}.keep();\n"


def _first(text: str, code: str) -> str:
    return code + text


def _after_docstring(text: str, code: str) -> str:
    head, end, rest = text.partition('"""\n')
    return f"{head}{end}\n{code}{rest}"


def _in_head(text: str, code: str) -> str:
    return text.replace("  </head>", f"{code}  </head>")


def _in_class(text: str, code: str) -> str:
    return f"{text.rstrip().removesuffix('}')}\n{code}}}\n"


def _in_script(text: str, code: str) -> str:
    return text.replace("<script setup>\n", f"<script setup>\n{code}", 1)


_MOCHA_TEST = (
    "const { expect } = require('chai');\n\n"
    "describe('Product API', () => {\n"
    "  it('creates an unpublished product from the four fields alone', () => {"
    " expect(1).to.equal(2); });\n});\n"
)
_VITEST_TEST = (
    "import { expect, it } from 'vitest';\n\n"
    "it('starts with empty fields, no errors and a disabled button', () => { expect(1).toBe(2); });\n"
)
_JEST_TEST = "describe('Search', () => { it('finds nothing', () => { expect(1).toBe(2); }); });\n"
_PYTEST_TEST = "import nothing_of_this_name\n\n\ndef test_a_task_is_added():\n    assert False\n"
_DJANGO_TEST = (
    "from django.test import TestCase\n\n\nclass BooksTest(TestCase):\n"
    "    def test_more(self):\n        self.assertEqual(1, 2)\n"
)
_RSPEC_TEST = (
    'require "rails_helper"\n\nRSpec.describe "Bookings" do\n'
    '  it("are made for a room") { expect(1).to eq(2) }\nend\n'
)
_JUNIT_TEST = (
    "package theatre;\n\nimport org.junit.jupiter.api.Test;\nimport org.mockito.Mockito;\n\n"
    "class MoreTest {\n    @Test\n    void fails() { throw new AssertionError(); }\n}\n"
)

STACKS = {
    "Node/Express": Stack(
        problem="product-api",
        module="controllers/products.js",
        load=_common_js,
        insert=_first,
        loaded=(
            *("lib/expect.js", "lib/assert.js", "utils/test.js", "utils/testUtils.js", "config/jest.js"),
            *("validation.config.js", "ecosystem.config.js", "config/mocha.js", "models/test.js", "chai.js"),
            *("src/__mocks__/companies.js", "data/global.json", "helpers/spec_helper.js", "tests/data.js"),
            *(
                "middleware/specs/rules.js",
                "e2e/links.js",
                "fixtures/products.json",
                "db.config.js",
                "events.js",
            ),
        ),
        beside=(
            ".prettierrc",
            ".github/workflows/ci.yml",
            "docs/My Notes.md",
            "public/logo.png",
            "client/package.json",
        ),
        tests={
            "test/more.test.js": _MOCHA_TEST,
            "test/broken.test.js": "require('not-installed');\n",
            "spec/products.spec.js": _MOCHA_TEST,
        },
        odd={
            "process handlers": "process.on('uncaughtException', (error) => { console.error(error); });\n"
            "process.on('SIGTERM', () => process.exit(0));\n",
            "an exit handler": "const opened = new Map();\nprocess.on('exit', () => opened.clear());\n",
            "a name that is global": "global.shopName = global.shopName || 'shop';\n",
            "methods of its own on arrays": "Object.defineProperty(Array.prototype, 'lastOne', {"
            " value() { return this[this.length - 1]; } });\n",
            "assertions in the code": "const assert = require('assert');\n"
            "assert.strictEqual(typeof module, 'object');\n",
            "another file of the code's environment": "const isTest = process.env.NODE_ENV === 'test';\n"
            "if (!isTest) console.log('ready');\n",
        },
    ),
    "React": Stack(
        problem="company-form",
        module="src/validation.js",
        load=_es_module,
        insert=_first,
        loaded=(
            *(
                "src/__mocks__/companies.js",
                "src/assets/logo.png",
                "src/assets/logo.svg",
                "src/utils/test.js",
            ),
            *("src/expect.js", "src/config/vitest.js", "src/validation.config.js", "src/test/data.js"),
            *("src/vite.config.js", "src/testing/form.jsx", "src/locales/global.json", "src/react/index.js"),
            *("src/form.module.css", "src/setupForm.js", "src/__fixtures__/companies.js", "src/spec.js"),
        ),
        beside=("tests.md", "public/robots.txt", "public/logo.png", ".eslintrc.json", "ecosystem.config.js"),
        tests={
            "src/__tests__/More.test.jsx": _VITEST_TEST,
            "src/components/CompanyForm.test.jsx": _VITEST_TEST,
            "src/more.spec.js": "import 'not-installed';\nit('x', () => { expect(1).toBe(2); });\n",
        },
        odd={
            "one object for all": "class Rules {\n  static #one;\n"
            "  static get() { return (Rules.#one ??= new Rules()); }\n}\nRules.get();\n",
            "a comparison of its own": "export const same = (a, b) => Object.is(a, b);\n",
            "what the page does when it goes": "globalThis.addEventListener?.('beforeunload', () => {});\n",
            "console wrapped": "const warn = console.warn.bind(console);\n"
            "export const tell = (text) => warn(text);\n",
        },
    ),
    "Vue": Stack(
        problem="movie-browser",
        module="src/App.vue",
        load=_es_module,
        insert=_in_script,
        loaded=(
            *("src/composables/useTest.js", "src/assets/poster.png", "src/assets/poster.svg", "src/vue.js"),
            *("src/expect.js", "src/config/jest.js", "src/__mocks__/movies.js", "src/test/TestCard.vue"),
            *("src/spec/list.js", "src/vitest.js", "src/data/project.json", "src/plugins/vite.js"),
        ),
        beside=("public/favicon.svg", ".vscode/settings.json", "docs/tests.md"),
        tests={
            "tests/more.test.js": _VITEST_TEST,
            "src/App.spec.js": _VITEST_TEST,
            "src/components/__tests__/Card.test.js": _VITEST_TEST,
        },
        odd={
            "a proxy": "const seen = new Proxy({}, { get: (kept, key) => kept[key] ?? 0 });\n"
            "void seen.none;\n",
            "a symbol": "const KEY = Symbol('movies');\nconst held = { [KEY]: 1 };\nvoid held[KEY];\n",
            "waiting for the end": "const ends = new FinalizationRegistry(() => {});\n"
            "ends.register({}, 1);\n",
        },
        instead={
            "a genre that is remembered": (
                "const genre = ref('');\n",
                (
                    "const genre = ref(sessionStorage.getItem('genre') ?? '');\n"
                    "watch(genre, (name) => sessionStorage.setItem('genre', name));\n"
                ),
            ),
        },
    ),
    "Angular": Stack(
        problem="length-converter",
        module="src/app/app.component.ts",
        load=_typescript,
        insert=_first,
        loaded=(
            *(
                "src/environments/environment.test.ts",
                "src/environments/environment.ts",
                "src/app/app.config.ts",
            ),
            *("src/app/testing/units.ts", "src/app/utils/test.ts", "src/app/expect.ts", "src/test-data.ts"),
            *("src/app/core/jest.ts", "src/app/__mocks__/units.ts", "src/app/spec.model.ts", "src/rxjs.ts"),
        ),
        beside=(
            "src/assets/logo.png",
            "src/styles.scss",
            "src/app/length-converter/length-converter.component.scss",
        ),
        tests={
            "src/app/app.component.spec.ts": "import { AppComponent } from './app.component';\n\n"
            "describe('App', () => { it('is there', () => { expect(AppComponent).toBe(1); }); });\n",
            "src/app/more.spec.ts": "import 'not-installed';\n\nit('x', () => { expect(1).toBe(2); });\n",
        },
        odd={
            "an enumeration and a decorator": "enum Unit { Metre = 'm' }\n"
            "function sealed(_: unknown): void {}\n"
            "sealed(Unit.Metre);\n",
            "what happens at the end": "window.addEventListener('unload', () => undefined);\n",
            "a global of the page": "(window as unknown as { converter: string }).converter = 'ready';\n",
            "errors shown by their name": "(Error as unknown as { prepareStackTrace: (it: Error) => string })"
            ".prepareStackTrace = (it) => it.name;\n",
        },
    ),
    "AngularJS": Stack(
        problem="notes-search",
        module="index.html",
        load=_script,
        insert=_in_head,
        loaded=(
            *(
                "app/expect.js",
                "app/utils/test.js",
                "app/config/jest.js",
                "app/notes/test-notes.js",
                "lib/angular.js",
            ),
            *(
                "app/__mocks__/notes.js",
                "app/search/spec.js",
                "app/app.config.js",
                "config/karma.js",
                "js/chai.js",
            ),
        ),
        beside=(
            "css/notes.css",
            "data/global.json",
            "img/logo.png",
            "app/search/search-help.html",
            ".editorconfig",
        ),
        tests={
            "test/search.test.js": _JEST_TEST,
            "app/search/search.filter.spec.js": _JEST_TEST,
            "test/broken.test.js": "require('karma-not-installed');\n\n"
            "it('x', () => { expect(1).toBe(2); });\n",
        },
        odd={
            "a script in the page": "    <script>window.notesVersion = '1';</script>\n",
            "a style in the page": "    <style>mark { background: yellow; }</style>\n",
        },
    ),
    "Django": Stack(
        problem="library-api",
        module="books/views.py",
        load=_python,
        insert=_after_docstring,
        loaded=(
            *(
                "tasks/test_data.py",
                "books/test_data.py",
                "books/json.py",
                "books/types.py",
                "books/unittest.py",
            ),
            *("profile/rules.py", "books/testing/__init__.py", "shared/tests/rules.py", "books/conftest.py"),
            *("books/setup.py", "helpers.py", "books/tests_data/isbn.py", "books/spec.py", "books/django.py"),
            *("library/pytest.py", "books/mocks.py", "books/expect.py", "books/management/commands/load.py"),
        ),
        beside=(
            "pyproject.toml",
            "books/templates/books/list.html",
            "books/tests/notes.md",
            ".flake8",
            "setup.cfg",
        ),
        tests={
            "books/test_more.py": _DJANGO_TEST,
            "books/tests/test_views.py": _DJANGO_TEST,
            "books/tests/__init__.py": _DJANGO_TEST,
            "tests/test_books.py": _DJANGO_TEST,
        },
        odd={
            "an atexit handler": "import atexit\n\nfrom django.db import connections\n\n"
            "atexit.register(connections.close_all)\n",
            "a signal's receiver": "from django.db.models.signals import post_save\n\n"
            "post_save.connect(lambda **_: None, dispatch_uid='kept')\n",
            "a handler of signals": "import signal\n\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\n",
            "equality of its own": "class Shelf:\n    def __init__(self, number):\n"
            "        self.number = number\n\n"
            "    def __eq__(self, other):\n"
            "        return isinstance(other, Shelf) and self.number == other.number\n\n"
            "    def __hash__(self):\n        return hash(self.number)\n\n\nassert Shelf(1) == Shelf(1)\n",
            "logging set up": "import logging.config\n\nlogging.config.dictConfig({'version': 1,"
            " 'disable_existing_loggers': False})\n",
            "introspection": "import inspect\n\nassert inspect.isfunction(lambda: None)\n",
        },
    ),
    "Flask": Stack(
        problem="task-api",
        module="tasks/api.py",
        load=_python,
        insert=_after_docstring,
        loaded=(
            *("tasks/test_data.py", "tasks/json.py", "tasks/jwt.py", "tasks/conftests.py", "tasks/queue.py"),
            *("tasks/pytest_helpers.py", "tasks/testing.py", "tasks/spec/rules.py", "tasks/setup.py"),
            *("tasks/flask/__init__.py", "tasks/mock.py", "shared.py", "tasks/tests.py", "tasks/expect.py"),
        ),
        beside=("docs/conf.py", "Dockerfile", "tasks/static/logo.png", ".env.example", "openapi.spec.json"),
        tests={
            "tests/test_more.py": _PYTEST_TEST,
            "tasks/test_api.py": _PYTEST_TEST,
            "test_api.py": _PYTEST_TEST,
        },
        odd={
            "an atexit handler": "import atexit\n\n_OPEN = []\natexit.register(_OPEN.clear)\n",
            "one object for all": "class Settings:\n    _one = None\n\n    def __new__(cls):\n"
            "        cls._one = cls._one or super().__new__(cls)\n        return cls._one\n\n\n"
            "assert Settings() is Settings()\n",
            "a metaclass": "class Registry(type):\n    known = {}\n\n"
            "    def __init__(cls, name, bases, body):\n"
            "        super().__init__(name, bases, body)\n        Registry.known[name] = cls\n\n\n"
            "class Kept(metaclass=Registry):\n    pass\n",
            "a thread": "import threading\n\nthreading.Thread(target=lambda: None, daemon=True).start()\n",
            "logging set up": "import logging\n\nlogging.basicConfig(level=logging.WARNING, force=True)\n",
        },
    ),
    "Ruby on Rails": Stack(
        problem="room-booking",
        module="app/models/booking.rb",
        load=_ruby,
        insert=_first,
        loaded=(
            *(
                "app/helpers/spec_helper.rb",
                "app/models/matrix.rb",
                "app/services/test_slots.rb",
                "lib/hours.rb",
            ),
            *("app/models/concerns/expectation.rb", "lib/rules/json_rules.rb", "app/lib/benchmark_room.rb"),
            *("app/services/minitest_free.rb", "lib/test_data.rb", "app/validators/spec_validator.rb"),
            *("app/serializers/rspec_free.rb", "config/opening_hours.rb", "app/models/prime.rb"),
        ),
        beside=(
            "lib/tasks/seed.rake",
            "public/logo.png",
            "db/seeds.rb",
            ".rubocop.yml",
            "config/initializers/hours.rb",
        ),
        tests={
            "spec/models/more_spec.rb": _RSPEC_TEST,
            "spec/requests/broken_spec.rb": 'require "not_installed"\n'
            'RSpec.describe("x") { it("y") { fail } }\n',
            "test/models/booking_test.rb": 'require "test_helper"\n\n'
            "class BookingTest < ActiveSupport::TestCase\nend\n",
        },
        odd={
            "at_exit": "at_exit { $stdout.flush }\n",
            "a refinement": "module Hours\n  refine Integer do\n    def oclock = self\n  end\nend\n",
            "methods made by name": "class Slots\n  %w[first last].each { |name| define_method(name)"
            " { name } }\nend\n"
            'raise unless Slots.new.first == "first"\n',
            "missing methods": "class Anything\n  def method_missing(name, *) = name\n"
            "  def respond_to_missing?(*) = true\nend\n",
            "equality of its own": "class Span\n  attr_reader :from\n  def initialize(from) = @from = from\n"
            "  def ==(other) = from == other.from\nend\n",
        },
    ),
    "Java": Stack(
        problem="box-office",
        module="src/main/java/theatre/BoxOffice.java",
        load=_java,
        insert=_in_class,
        loaded=tuple(
            f"src/main/java/theatre/{path}.java"
            for path in (
                *(
                    "util/Assert",
                    "util/Assertions",
                    "Assert",
                    "Assertions",
                    "Assume",
                    "util/Test",
                    "TestData",
                ),
                *(
                    "rules/Matchers",
                    "mocks/MockHall",
                    "pricing/LatestTest",
                    "spec/Spec",
                    "util/Objects",
                    "Check",
                ),
                "util/Collections",
            )
        ),
        beside=(
            "src/main/resources/logback.xml",
            "src/main/resources/META-INF/services/theatre.Plugin",
            "docs/box office.md",
            "Makefile",
        ),
        tests={
            "src/test/java/theatre/MoreTest.java": _JUNIT_TEST,
            "src/test/java/theatre/util/AssertTest.java": "package theatre.util;\n\n"
            "class AssertTest { int x = ; }\n",
        },
        odd={
            "a static block": '    static { System.setProperty("theatre.open", "true"); }\n',
            "equality of its own": "    @Override\n    public boolean equals(Object other) {"
            " return other instanceof BoxOffice; }\n\n    @Override\n"
            "    public int hashCode() { return 7; }\n",
            "a shutdown hook": "    static { Runtime.getRuntime().addShutdownHook(new"
            " Thread(System.out::flush)); }\n",
            "reflection": "    static { for (var each : BoxOffice.class.getDeclaredMethods()) {"
            " each.getName(); } }\n",
            "a nested Assert": "    static final class Assert { static void that(boolean is) { } }\n",
            "a thread that waits": "    static { Thread waiting = new Thread(() -> {"
            " java.util.concurrent.locks.LockSupport.park(); }); waiting.setDaemon(true);"
            " waiting.start(); }\n",
        },
    ),
    "Selenium": Stack(
        problem="parcel-pages",
        module="pages/quote.py",
        load=_python,
        insert=_after_docstring,
        loaded=(
            *(
                "pages/test_data.py",
                "pages/selenium.py",
                "pages/types.py",
                "pages/expect.py",
                "pages/waiting/test.py",
            ),
            *(
                "pages/conf.py",
                "pages/locators/spec.py",
                "pages/driver.py",
                "helpers.py",
                "pages/tests_support.py",
            ),
        ),
        beside=("docs/pages.md", "pages/logo.png"),
        tests={
            "tests/test_more.py": "import nothing\n\n\ndef test_more():\n    assert False\n",
            "pages/test_quote.py": "def test_quote():\n    assert False\n",
        },
        odd={
            "waits of its own": "import time\n\n\ndef pause(seconds):\n    time.sleep(seconds)\n",
            "an atexit handler": "import atexit\n\natexit.register(lambda: None)\n",
            "retries": "import functools\n\n\ndef again(function):\n    @functools.wraps(function)\n"
            "    def calling(*words):\n        return function(*words)\n    return calling\n",
        },
        instead={"prices without needless zeros": ("price.text))", "price.text)).normalize()")},
    ),
}


def unusual_answers() -> Iterator[Unusual]:
    """Yield the unusual answers of all stacks."""
    for name, stack in STACKS.items():
        yield from _answers(name, stack)


def _answers(name: str, stack: Stack) -> Iterator[Unusual]:
    answers = load_answers(stack.problem)
    assert answers is not None
    reference = dict(answers.reference)

    def one(what: str, code: str, files: Mapping[str, str], tests: frozenset[str] = frozenset()) -> Unusual:
        changed = {stack.module: stack.insert(reference[stack.module], code)} if code else {}
        answer = {**reference, **changed, **files}
        return Unusual(stack=name, framework=stack.problem, name=what, answer=answer, left_out=tests)

    for path in stack.loaded:
        files, code = stack.load(stack.module, path)
        yield one(path, code, files)
    for path in stack.beside:
        yield one(path, "", {path: _beside(path)})
    for path, text in stack.tests.items():
        yield one(f"own test {path}", "", {path: text}, frozenset({path}))
    for what, code in stack.odd.items():
        yield one(what, code, {})
    module = reference[stack.module]
    for what, (old, new) in stack.instead.items():
        assert old in module
        yield one(what, "", {stack.module: module.replace(old, new)})
    yield one("other line ends", "", {stack.module: module.replace("\n", "\r\n")})


def _beside(path: str) -> str:
    texts = {
        ".json": "{}\n",
        ".toml": "[tool.black]\nline-length = 100\n",
        ".cfg": "[flake8]\nmax-line-length = 100\n",
    }
    return texts.get(
        re.sub(r".*(?=\.)", "", path), "# kept\n" if path.endswith(("rb", "rake", "yml")) else "kept\n"
    )
