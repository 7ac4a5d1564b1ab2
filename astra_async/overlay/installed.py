"""What can be loaded in an image without the project, and what is taken for it where no image was asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Of Python's own library what neither test runners nor frameworks load: a project may have a `profile` of its
# own. Counted in runs of pytest, Django's and selenium's tests with `-X importtime`.
_NEVER_LOADED = frozenset({
    "aifc", "antigravity", "audioop", "cgitb", "chunk", "colorsys", "crypt", "curses", "dbm", "ensurepip",
    "filecmp", "ftplib", "getopt", "idlelib", "imaplib", "imghdr", "lib2to3", "mailbox", "mailcap",
    "modulefinder", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "poplib", "profile", "pstats", "pty",
    "pyclbr", "rlcompleter", "sched", "shelve", "sndhdr", "spwd", "sunau", "symtable", "tabnanny",
    "telnetlib", "test", "this", "timeit", "tkinter", "trace", "turtle", "turtledemo", "uu", "venv", "wave",
    "webbrowser", "winsound", "xdrlib", "zipapp",
})  # fmt: skip
# Names that careless distributions install beside their own, and that projects use for themselves.
_NOBODYS = frozenset(
    {"tests", "docs", "doc", "examples", "example", "scripts", "benchmarks", "samples", "src"}
)

_USUAL_PYTHON = (sys.stdlib_module_names - _NEVER_LOADED) | {
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "xmlrunner", "nose", "nose2", "coverage",
    "xdist", "execnet", "pytest_django", "pytest_flask", "pytest_asyncio", "pytest_mock", "pytest_cov",
    "django", "rest_framework", "rest_framework_simplejwt", "corsheaders", "django_filters", "sqlparse",
    "asgiref", "flask", "flask_sqlalchemy", "flask_cors", "flask_login", "flask_migrate",
    "flask_jwt_extended",
    "itsdangerous", "blinker", "markupsafe", "fastapi", "starlette", "werkzeug", "sqlalchemy", "alembic",
    "pydantic", "pydantic_core", "requests", "urllib3", "certifi", "idna", "chardet", "charset_normalizer",
    "httpx", "httpcore", "h11", "mock", "hypothesis", "freezegun", "factory", "faker", "parameterized",
    "selenium", "trio", "outcome", "tomli", "exceptiongroup", "colorama", "six", "attr", "attrs", "lxml",
    "yaml", "numpy", "pandas", "anyio", "sniffio", "junitxml", "junit_xml", "junitparser", "testtools",
    "assertpy", "jinja2", "click", "pygments", "jwt", "setuptools", "pkg_resources", "pip", "wheel",
    "_distutils_hack", "typing_extensions", "pytz", "dateutil", "tzdata", "greenlet", "cryptography", "cffi",
    "dotenv", "celery", "redis", "marshmallow", "gunicorn", "sitecustomize", "usercustomize",
}  # fmt: skip
_USUAL_NODE = frozenset({
    "jest", "expect", "chai", "mocha", "vitest", "vite", "vite-node", "jasmine", "jasmine-core", "karma",
    "sinon", "supertest", "superagent", "enzyme", "nock", "jsdom", "power-assert", "should", "ava", "tape",
    "babel-jest", "ts-jest", "jest-junit", "jest-circus", "jest-environment-jsdom", "mocha-junit-reporter",
    "mocha-multi-reporters", "react-test-renderer", "chai-http", "react", "react-dom", "react-redux", "redux",
    "react-router", "react-router-dom", "vue", "vue-router", "vuex", "pinia", "zone.js", "rxjs", "axios",
    "angular", "angular-mocks", "typescript", "tslib", "core-js", "webpack", "express", "lodash", "moment",
    "mongoose", "mongodb", "sequelize", "body-parser", "prop-types", "jquery",
})  # fmt: skip
_NODE_SCOPES = frozenset({"@testing-library", "@jest", "@vitest", "@babel", "@angular", "@vue", "@types"})
_NODE_CORE = frozenset({
    "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
    "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os", "path",
    "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder", "sys",
    "timers", "tls", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip
_USUAL_RUBY = frozenset({
    "minitest", "rspec", "rspec_junit_formatter", "test-unit", "json", "set", "time", "date", "optparse",
    "erb", "pp", "stringio", "tempfile", "tmpdir", "fileutils", "ostruct", "securerandom", "delegate",
    "singleton", "forwardable", "bundler", "rubygems", "rake", "rails", "logger", "yaml", "psych", "uri",
    "socket", "open3", "benchmark", "tsort", "monitor", "timeout", "weakref", "shellwords", "English", "rack",
    "capybara", "active_support", "active_record", "digest", "pathname", "csv", "bigdecimal", "strscan",
    "observer", "find", "zlib", "openssl", "i18n", "tzinfo", "nokogiri", "loofah", "sqlite3", "bootsnap",
})  # fmt: skip
_USUAL_RUBY_FOLDERS = frozenset({
    "minitest", "rspec", "test", "rubygems", "bundler", "rexml", "rack", "net", "rake", "active_support",
})  # fmt: skip
_USUAL_JAVA_PACKAGES = (
    "org.junit", "org.hamcrest", "org.mockito", "org.assertj", "org.opentest4j", "org.apiguardian",
    "org.testng", "org.springframework", "org.gradle", "org.apache", "org.xmlunit", "junit", "com.google",
    "org.slf4j", "com.fasterxml", "net.bytebuddy", "org.objenesis",
)  # fmt: skip
_PLATFORM_PACKAGES = ("java", "javax", "jakarta", "jdk", "sun", "com.sun", "kotlin", "scala", "groovy")
_JAVA_LANG = frozenset({
    "Object", "String", "StringBuilder", "StringBuffer", "CharSequence", "Character", "Boolean", "Byte",
    "Short", "Integer", "Long", "Float", "Double", "Number", "Math", "StrictMath", "System", "Runtime",
    "Thread", "ThreadLocal", "Runnable", "Iterable", "Comparable", "Cloneable", "AutoCloseable", "Class",
    "ClassLoader", "Enum", "Record", "Void", "Process", "ProcessBuilder", "StackTraceElement", "Throwable",
    "Exception", "RuntimeException", "Error", "AssertionError", "IllegalArgumentException",
    "IllegalStateException", "NullPointerException", "IndexOutOfBoundsException", "ArithmeticException",
    "ClassCastException", "UnsupportedOperationException", "NumberFormatException", "InterruptedException",
    "ArrayIndexOutOfBoundsException", "CloneNotSupportedException", "SecurityException", "Override",
    "Deprecated", "FunctionalInterface", "SafeVarargs", "SuppressWarnings", "Package", "Module", "Appendable",
})  # fmt: skip
# By package, what tests use of a package that they import whole.
_USUAL_JAVA_TYPES = {
    package: frozenset(names.split())
    for package, names in {
        "org.junit": "Assert Assume Test Before After BeforeClass AfterClass Ignore Rule",
        "org.junit.jupiter.api": (
            "Assertions Assumptions Test BeforeEach AfterEach BeforeAll AfterAll Disabled DisplayName Nested"
            " RepeatedTest TestFactory DynamicTest Tag Timeout Order"
        ),
        "org.hamcrest": "MatcherAssert Matchers CoreMatchers Matcher BaseMatcher Description",
        "org.assertj.core.api": "Assertions Assert BDDAssertions SoftAssertions",
        "org.mockito": "Mockito ArgumentMatchers BDDMockito Mock InjectMocks Spy",
        "org.testng": "Assert Reporter",
        "org.testng.annotations": "Test BeforeMethod AfterMethod BeforeClass AfterClass",
        "java.util": (
            "List ArrayList LinkedList Map HashMap TreeMap LinkedHashMap Set HashSet TreeSet LinkedHashSet"
            " Collection Collections Arrays Objects Optional Iterator Comparator Queue Deque ArrayDeque"
            " PriorityQueue Stack Vector Random Scanner UUID Date Calendar Locale StringJoiner EnumMap"
        ),
        "java.util.function": "Function Supplier Consumer Predicate BiFunction UnaryOperator",
        "java.util.stream": "Stream IntStream LongStream DoubleStream Collectors StreamSupport",
        "java.util.concurrent": "TimeUnit ExecutorService Executors CompletableFuture CountDownLatch",
        "java.time": "LocalDate LocalDateTime LocalTime Instant Duration Period Clock ZoneId",
        "java.math": "BigDecimal BigInteger RoundingMode MathContext",
        "java.io": "File IOException InputStream OutputStream PrintStream",
        "java.nio.file": "Path Paths Files",
    }.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an image holds beside the project; None where that is not known, and the usual is assumed.

    `python` are top-level modules (without those that every interpreter has loaded before its path is
    known), `node` packages, `ruby` features as `require` names them (without those that are loaded before
    the project's folders come into the load path), `java` top-level types by package.
    """

    python: frozenset[str] | None = None
    node: frozenset[str] | None = None
    ruby: frozenset[str] | None = None
    java: Mapping[str, Collection[str]] | None = None

    def has_python(self, module: str) -> bool:
        """Whether a top-level module of this name can be imported without the project."""
        if self.python is None:
            return module in _USUAL_PYTHON
        return module in self.python and module not in _NEVER_LOADED and module not in _NOBODYS

    def has_node(self, name: str) -> bool:
        """Whether a bare specifier (`chai`, `@scope/name/sub`) finds a package or a core module."""
        first, _, rest = name.partition("/")
        package = f"{first}/{rest.partition('/')[0]}" if first.startswith("@") else first
        if package in _NODE_CORE:
            return True
        if self.node is None:
            return package in _USUAL_NODE or first in _NODE_SCOPES
        return package in self.node

    def has_ruby(self, feature: str) -> bool:
        """Whether `require` of this feature finds a file of Ruby's library or of a gem."""
        if self.ruby is None:
            return feature in _USUAL_RUBY or feature.partition("/")[0] in _USUAL_RUBY_FOLDERS
        return feature in self.ruby

    def has_java_package(self, package: str) -> bool:
        """Whether a library or the platform has types in this package."""
        if self.java is not None and package in self.java:
            return True
        roots = _PLATFORM_PACKAGES if self.java else (*_PLATFORM_PACKAGES, *_USUAL_JAVA_PACKAGES)
        return package.startswith(tuple(f"{root}." for root in roots)) or package in roots

    def has_java_type(self, package: str, name: str) -> bool:
        """Whether `package` offers a type of this simple name to who imports it whole."""
        if self.java is not None and package in self.java:
            return name in self.java[package]
        return name in (_JAVA_LANG if package == "java.lang" else _USUAL_JAVA_TYPES.get(package, ()))


def is_core(name: str) -> bool:
    """Whether a specifier names a module of Node.js itself, which comes before any file."""
    return name.removeprefix("node:").partition("/")[0] in _NODE_CORE
