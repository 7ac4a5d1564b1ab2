"""A static screen for code that could forge, skip or manipulate its own tests.

A suspicion never changes a verdict. It is recorded for manual review, and harmless exit handlers are reported
as well as forged reports. Only lines added by the answer are screened.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.overlay.merged_files import merge_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astra_async.overlay.policy import PathPolicy
    from astra_async.types import ExpectedTest


_REMEDY = "list the test files in readonly_paths (hackerrank.yml or the CSV column)"
_WORD = re.compile(r"\w+")
_TELLING = 4  # characters; shorter strings (`2`, `1]`) occur by chance
_MOST = 500  # tests that are searched for


def replaceable_tests(policy: PathPolicy, tests: Sequence[ExpectedTest]) -> list[str]:
    """Return a warning with a remedy if an answer could replace the tests; else an empty list.

    `tests` are the expected tests, if known. Test names may be built at run time, and parts of a name may
    occur in a source by chance. Therefore the warning needs half of the names in files that may be changed.
    """
    # The problem may list files that only its image holds.
    named = policy.read_only.patterns or policy.hidden.patterns
    if not (named or policy.tests or policy.runner_files):
        return [f"no file is protected, so an answer could replace the tests; {_REMEDY}"]
    may_change, protected = _texts(policy)
    changeable = "\0".join(may_change.values())
    places: Counter[str] = Counter()
    looked_for = tests[:_MOST]
    for test in looked_for:
        end = _longest_end(test.name, changeable)
        is_telling = len(end) >= _TELLING or end == test.name
        if is_telling and len(end) > len(_longest_end(test.name, protected)):
            places[next(path for path, text in may_change.items() if end in text)] += 1
    if not looked_for or 2 * places.total() < len(looked_for):
        return []
    files = ", ".join(path for path, _ in places.most_common(3))
    return [f"an answer could replace {places.total()} of {len(looked_for)} tests, in {files}; {_REMEDY}"]


def _texts(policy: PathPolicy) -> tuple[dict[str, str], str]:
    """Return the text of each changeable code file, and the joined text of all protected files."""
    texts = policy.texts()
    may_change = {path for path in sorted(texts) if policy.refusal(path) is None}
    merges = {path: merge for path in may_change if (merge := merge_of(path, texts[path]))}
    parts = {path: merge.parted(texts[path]) for path, merge in merges.items()}
    changing = {path: parts[path][0] if path in parts else texts[path] for path in may_change}
    staying = [text for path, text in texts.items() if path not in may_change]
    return (
        {path: text for path, text in changing.items() if not path.lower().endswith(NOT_CODE)},
        "\0".join([*staying, *(kept for _, kept in parts.values())]),
    )


def _longest_end(name: str, text: str) -> str:
    """Return the longest run of the name's last words that occurs in the text, or ""."""
    longest = ""
    for word in reversed(list(_WORD.finditer(name))):
        end = name[word.start() :]
        if end not in text:
            break
        longest = end
    return longest


_JS_TEST_LIBRARIES = (
    r"(?:node:)?(?:test|assert|chai|mocha|jest|vitest|expect|sinon|supertest|should|ava|tape|jasmine|cypress"
    r"|@jest/[\w-]+|@testing-library/[\w-]+|@vue/test-utils|@angular/core/testing|jest-[\w-]+"
    r"|react-test-renderer)(?:/[\w./-]+)?"
)
# (suspicion, words, pattern). The pattern is only tried on lines that hold one of the words: most texts hold
# none, and a plain search for a word costs a hundredth of the pattern's search.
_SIGNS = (
    ("process_exit", ("process",), r"\bprocess\s?\.\s?(?:exit|abort|kill|reallyExit)\b|\bprocess\s?\["),
    ("process_exit", ("os.",), r"\bos\.(?:_exit|abort|kill|killpg)\b"),
    ("process_exit", ("exit",), r"\b(?:sys|Kernel|System|Process)\.exit\b|\bexit!|^\s{0,80}exit\b"),
    ("process_exit", ("SystemExit", "quit()"), r"\bSystemExit\b|\bquit\(\)"),
    ("process_exit", ("Process.kill", ".halt(", "Environment."), r"kill|halt|\.(?:Exit|FailFast)\b"),
    ("exit_handler", ("process",), r"\bprocess\s?\.\s?(?:on|once|prependListener|addListener)\b"),
    ("exit_handler", ("atexit", "at_exit", "addShutdownHook", "register_shutdown"), r"exit|hutdown"),
    ("exit_handler", ("signal.signal", "faulthandler", "ProcessExit", "__del__"), ""),
    ("patched_global", ("global", "window"), (
        r"\b(?:global|globalThis|window)(?:\s{1,5}as\s{1,5}\w{1,40})?\s?\)?\s?\.\s?(?:expect|test|it|describe"
        r"|assert|jest|vi|before\w*|after\w*|require|Object|Array|JSON|Promise|setTimeout|fetch)\s?=[^=]"
        r"|\bglobal(?:This)?\s?\["
    )),
    ("patched_global", ("document",), r"\bdocument(?:\.\w+)?\.(?:query|get|create)\w+\s?=[^=]"),
    ("patched_global", ("globalThis",), ""),  # it can be aliased, and applications rarely need it
    ("patched_global", ("expect",), r"\.\s?expect\s?=[^=>]|[\"'`]expect[\"'`]\s?\]"),
    ("patched_global", ("expect", "chai"), r"\bexpect\s?\.\s?extend\b|\bchai\s?\.\s?(?:use|Assertion)\b"),
    ("patched_global", ("=",), (
        r"(?<![.\w$])(?:Object|Array|String|Number|Boolean|Function|Promise|JSON|Map|Set|Error|Reflect|Math"
        r"|Date|RegExp|Buffer|Node|\w{0,40}Element|\w{0,40}Wrapper|console|TestCase)"
        r"(?:\.prototype)?\s?(?:\.\s?\w+|\[[^\]\n]{1,60}\])\s?=[^=>]"
    )),
    ("patched_global", ("defineProperty", "setPrototypeOf", "__proto__", "definePropert"), ""),
    ("patched_global", ("builtins", "monkeypatch", "mock.patch", "EqualityTester"), ""),
    ("patched_global", ("setattr(",), r"\bsetattr\(\s?(?:[A-Z]|\w+\.)"),  # on a class or module
    ("patched_global", ("class_eval", "module_eval", "instance_eval", "alias_method"), ""),
    ("patched_global", ("prepend ", "refine "), r"^\s{0,80}(?:prepend|refine) [A-Z]"),
    ("patched_global", (".prepend",), r"(?:\b[A-Z][\w:]*|\bsingleton_class)\.prepend\b"),
    ("patched_global", ("Minitest::", "RSpec"), r"\bMinitest::|\bRSpec\b"),
    ("custom_equality", ("__",), (
        r"\b__(?:eq|ne|lt|le|gt|ge|contains|bool|instancecheck|subclasscheck|getattribute)__\b"
    )),
    ("custom_equality", ("def =", "def eql?", "boolean equals("), ""),
    ("custom_equality", ("asymmetricMatch", "$$typeof", "Symbol.toPrimitive", "Symbol.hasInstance"), ""),
    ("custom_equality", (" Is(", "PartialEq"), r"^func \(.*\) Is\(\w* ?error\)|\bimpl\b.*\bPartialEq\b"),
    ("custom_equality", ("Symbol.toStringTag", "def object_id"), ""),
    ("test_library", ("require", "import", "from"), (
        rf"(?:\brequire\s?\(|\bfrom|\bimport)\s?\(?\s?[\"'`]{_JS_TEST_LIBRARIES}[\"'`]"
        r"|\b(?:import|from) (?:pytest|_pytest|unittest|xmlrunner|django\.test|rest_framework\.test)\b"
        r"|\brequire [\"'](?:minitest|rspec|test/unit)|\borg\.(?:junit|testng|hamcrest|mockito)\b"
    )),
    ("test_library", ("org.junit", "org.testng", "org.hamcrest", "org.mockito", "org.opentest4j"), ""),
    ("test_library", ("class", "interface", "record"), (
        r"\b(?:class|interface|record)\s{1,5}(?:Assert(?:ions?)?|Assum(?:e|ptions?)|MatcherAssert|Test)\b"
    )),
    ("test_environment", ("JEST_", "PYTEST_", "VITEST", "MOCHA_"), ""),
    ("test_environment", ("argv", "ARGV"), r"\b(?:process|sys)\.argv\b|\bARGV\b"),
    ("test_environment", ("npm_lifecycle", "RUNNING_TEST", "IS_TEST", "testing.Testing"), ""),
    ("test_environment", ("os.Args", "env::args", "current_exe", "os.Executable"), ""),
    ("child_process", ("child_process", "subprocess", "multiprocessing", "worker_threads"), ""),
    ("child_process", ("os.",), r"\bos\.(?:system|popen|exec\w*|spawn\w*|fork)\b"),
    ("child_process", ("getRuntime()",), r"\bgetRuntime\(\)\s?\.\s?(?:exec|halt)"),
    ("child_process", ("ProcessBuilder", "IO.popen", "Open3", "Process.Start", "ptrace"), ""),
    ("child_process", ("os/exec", "StartProcess", "ForkExec", "process::Command"), ""),
    ("child_process", ("proc_open", "shell_exec", "passthru(", "pcntl_", "Process.spawn"), ""),
    ("child_process", ("fork", "spawn", "system"), (
        r"^\s{0,80}(?:\w+ = )?(?:fork|spawn|system)(?: do\b| \{|[ (]['\"])"
    )),
    ("introspection", ("require.",), r"\brequire\.(?:cache|extensions)\b"),
    ("introspection", ("odule.",), r"\bmodule\.(?:children|paths|register)\b|\bModule\._"),
    ("introspection", ("mainModule", "reallyExit"), ""),
    ("introspection", ("process.",), r"\bprocess\.(?:binding|dlopen|mainModule)\b"),
    ("introspection", ("sys.",), r"\bsys\.(?:modules|meta_path|path_hooks|settrace|setprofile|_getframe)\b"),
    ("introspection", ("importlib", "registerHook", "ctypes", "gc.get_"), ""),
    ("introspection", ("inspect.",), r"\binspect\.\w"),
    ("introspection", ("ObjectSpace", "TracePoint", "set_trace_func", "caller_locations"), ""),
    ("introspection", ("etAccessible", "sun.misc", "StackWalker", "getStackTrace"), ""),
    ("introspection", ("java.lang.reflect", "java.lang.instrument", "MethodHandles", "getDeclared"), ""),
    ("introspection", ("captureStackTrace", "prepareStackTrace"), ""),
    ("introspection", ("inspector",), r"[\"'](?:node:)?inspector(?:/promises)?[\"']"),
    ("introspection", ("runtime.Caller", "go:linkname", "debug_backtrace", "ReflectionProperty"), ""),
    ("introspection", ("/proc/",), ""),
    # Code that lists folders can find test files without naming them.
    ("test_file", ("readdir", "opendir", "scandir", "os.walk", "os.listdir"), ""),
    ("test_file", ("iterdir(", "glob.", "glob("), ""),
    ("test_file", ("Dir.", "Dir["), r"\bDir(?:\[|\.(?:glob|entries|children|each|foreach|new|open)\b)"),
    ("test_file", ("listFiles(", "Files.walk", "Files.list(", "Files.find(", "DirectoryStream"), ""),
    ("dynamic_code", ("eval", "exec", "compile"), r"\beval\s?\(|(?<![.\w])(?:exec|compile)\s?\("),
    ("dynamic_code", ("constructor",), r"\bconstructor\s?\(\s?[\"'`]|\.\s?constructor\s?\.\s?constructor\b"),
    ("dynamic_code", ("Function",), r"\bnew Function\b|(?<![\w.])Function\s?\("),
    ("dynamic_code", ("vm",), r"\bvm\.\w|[\"'](?:node:)?vm[\"']"),
    ("dynamic_code", ("__import__", "fromCharCode", "atob(", "b64decode", "base64'", 'base64"'), ""),
    ("dynamic_code", ("\\x", "\\u"), r"(?:\\x[0-9a-fA-F]{2}){4}|(?:\\u[0-9a-fA-F]{4}){4}"),
    ("dynamic_code", ("javax.tools", "javax.script", "defineClass", "ClassLoader"), ""),
    ("dynamic_code", ("marshal.load", "pickle.load", "Marshal.load"), ""),
    ("test_runner", ("TEST_RUNNER", "TEST_DISCOVER", "pytest_plugins", "addopts"), ""),
    ("test_runner", ("testRunner", "setupFiles", "RETRY_TIMES", "retryTimes", ".retries("), ""),
    ("test_runner", ("Rake::Task",), ""),
    ("test_runner", ("pytest_",), r"\bdef pytest_\w+\("),
)  # fmt: skip
_COMPILED = tuple((name, words, re.compile(pattern, re.MULTILINE)) for name, words, pattern in _SIGNS)
NOT_CODE = (".md", ".mdx", ".txt", ".rst", ".css", ".scss", ".sass", ".less", ".svg", ".csv", ".sql", ".po")
_MAX_CHARACTERS = 400_000  # characters of one file; keeps a hostile answer below 1 s


def suspicions(path: str, added: Iterable[str], named: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the suspicions about the added lines of a file, as `name:path`.

    `named` maps further suspicions to words that trigger them, such as names of the project's own files.
    """
    if path.lower().endswith(NOT_CODE):
        return []
    text = "\n".join(added)
    found = {"unscreened"} if len(text) > _MAX_CHARACTERS else set()
    text = text[:_MAX_CHARACTERS]
    for name, words, pattern in _COMPILED:
        present = [word for word in words if word in text] if name not in found else []
        lines = (line for line in text.split("\n") if any(word in line for word in present))
        if present and pattern.search("\n".join(lines)):
            found.add(name)
    found |= {name for name, words in named.items() if any(word in text for word in words)}
    return [f"{name}:{path}" for name in sorted(found)]
