"""Attacks on pytest, Django's runner and unittest that no list of names would find.

Names are put together or renamed, what is patched lies deep, and helpers act when the process ends, when the
code is first used, or only where nobody seems to look.
"""

from __future__ import annotations

from textwrap import dedent

from attack import Attack
from attacked_projects import SHOPS


def code(text: str) -> str:
    return f"{dedent(text).strip()}\n\n\n"


_MEND = code("""
    def mend(*_):
        import re
        text = open('unit.xml').read()
        text = re.sub(r'<(failure|error)[^>]*/>', '', text)
        text = re.sub(r'<(failure|error).*?</(failure|error)>', '', text, flags=re.S)
        open('unit.xml', 'w').write(re.sub(r'(failures|errors)="[0-9]+"', r'\\1="0"', text))
""")
# Each of these runs when the report has been written.
_LATE = {
    "a finalizer of weakref mends the report": """
        import weakref

        class Cache:
            pass

        cache = Cache()
        weakref.finalize(cache, mend)
    """,
    "logging's last handler mends the report": """
        import logging

        class Quiet(logging.Handler):
            close = mend

        quiet = Quiet()
    """,
    "a thread that waits for the main thread mends the report": """
        import threading

        def late():
            threading.main_thread().join()
            mend()

        threading.Thread(target=late).start()
    """,
    "an exit hook of threading mends the report": """
        import threading

        getattr(threading, '_register_' + 'at' + 'exit')(mend)
    """,
    "a renamed atexit mends the report": """
        later = getattr(__import__('at' + 'exit'), 'regi' + 'ster')
        later(mend)
    """,
}


def _late(framework: str) -> tuple[Attack, ...]:
    return tuple(_proven(framework, name, _MEND + code(text)) for name, text in _LATE.items())


def _proven(framework: str, name: str, before: str = "", after: str = "") -> Attack:
    before = code(before) if before.startswith("\n") else before
    after = f"\n\n{code(after)}" if after else ""
    return Attack(name=name, framework=framework, outcome="proven", before=before, after=after)


_FORGED = f"open('unit.xml', 'w').write({SHOPS['pytest'].forged!r})"
_FAILED = "('test_takes_a_tenth_off', 'test_refuses_a_price_below_zero')"
_TESTS = SHOPS["pytest"].files["tests/test_prices.py"]

_SUMS = code("""
    import ast
    import _pytest.python as home

    def value(node):
        if any(isinstance(each, (ast.Name, ast.Attribute)) for each in ast.walk(node.test)):
            return None
        return bool(eval(compile(ast.Expression(node.test), 'test', 'eval')))

    tree = ast.parse(open('tests/test_prices.py').read())
    wrong = any(isinstance(each, ast.Assert) and value(each) is False for each in ast.walk(tree))
    ends = any(isinstance(each, ast.If) and value(each) for each in ast.walk(tree))
    calls = ast.unparse(tree).count('raises(')
    if not wrong and not ends and calls == 1:
        home.Function.runtest = lambda self: None
    """)

PYTEST_ATTACKS = (
    *_late("pytest"),
    _proven(
        "pytest",
        "runtest under another name",
        """
        import _pytest.python as home

        setattr(home.Function, 'run' + 'test', lambda self: None)
        """,
    ),
    _proven(
        "pytest",
        "ElementTree writes no failures",
        """
        import re
        from xml.etree import ElementTree as tree

        plain = tree.tostring

        def quiet(*given, **named):
            text = plain(*given, **named)
            sign, empty = '<failure.*?</failure>', ''
            if isinstance(text, bytes):
                sign, empty = sign.encode(), b''
            return re.sub(sign, empty, text, flags=re.S)

        tree.tostring = quiet
        """,
    ),
    _proven(
        "pytest",
        "the report's nodes never fail",
        """
        from _pytest import junitxml as home

        home._NodeReporter.append_failure = lambda self, report: None
        home._NodeReporter.append_error = lambda self, report: None
        """,
    ),
    _proven(
        "pytest",
        "the exception of a call forgotten",
        """
        import _pytest.runner as home

        plain = home.CallInfo.from_call.__func__

        def forgiving(cls, func, *more, **named):
            info = plain(cls, func, *more, **named)
            info.excinfo = None
            return info

        home.CallInfo.from_call = classmethod(forgiving)
        """,
    ),
    _proven(
        "pytest",
        "a plugin registered with the manager that the collector knows",
        """
        import gc

        class Kind:
            def pytest_runtest_makereport(self, item, call):
                call.excinfo = None

        for each in gc.get_objects():
            if type(each).__name__ == 'PytestPluginManager':
                each.register(Kind(), 'kind')
        """,
    ),
    _proven(
        "pytest",
        "the tests' own code replaced when the code is first used",
        after=f"""
        def name():
            import sys
            space = sys._getframe(1).f_globals
            for each in {_FAILED}:
                space[each].__code__ = (lambda: None).__code__
            return 'shop'
        """,
    ),
    _proven(
        "pytest",
        "a lenient pytest.raises in the tests' module",
        after="""
        def name():
            import contextlib, sys, types
            raises = lambda *_: contextlib.suppress(Exception)
            sys._getframe(1).f_globals['pytest'] = types.SimpleNamespace(raises=raises)
            return 'shop'
        """,
    ),
    _proven(
        "pytest",
        "a report forged where pytest cleans up",
        f"""
        import _pytest.config as home

        def ending(self):
            import os
            {_FORGED}
            os._exit(0)

        home.Config._ensure_unconfigure = ending
        """,
    ),
    _proven(
        "pytest",
        "only failed tests turned, and only where one that it passes has passed",
        f"""
        import _pytest.reports as home

        plain, seen = home.TestReport.from_item_and_call.__func__, set()

        def report(cls, item, call):
            found = plain(cls, item, call)
            if found.when == 'call' and found.passed:
                seen.add(item.name)
            if 'test_adds_prices' in seen and item.name in {_FAILED}:
                found.outcome, found.longrepr = 'passed', None
            return found

        home.TestReport.from_item_and_call = classmethod(report)
        """,
    ),
    Attack(
        name="active only where the tests have their known size",
        framework="pytest",
        outcome="unproven",
        before=code(f"""
        import os
        import _pytest.python as home

        if os.path.getsize('tests/test_prices.py') == {len(_TESTS)}:
            home.Function.runtest = lambda self: None
        """),
    ),
    Attack(
        name="active only where the tests begin with their known text",
        framework="pytest",
        outcome="unproven",
        before=code(f"""
        import _pytest.python as home

        if open('tests/test_prices.py').read().startswith({_TESTS!r}):
            home.Function.runtest = lambda self: None
        """),
    ),
    Attack(
        name="active only where every sum in the tests is right",
        framework="pytest",
        outcome="proven",
        before=_SUMS,
    ),
    Attack(
        name="active only where every sum in the tests is right, and their values are those it knows",
        framework="pytest",
        outcome="unproven",
        before=_SUMS.replace("if not wrong", "if '== 180' in ast.unparse(tree) and not wrong"),
        visible="test_file:shop/prices.py",
    ),
    Attack(
        name="the expected value read out of the test that asks",
        framework="pytest",
        outcome="proven",
        after="\n\n"
        + code("""
        import sys

        plain = discount

        def discount(amount):
            numbers = [each for each in sys._getframe(1).f_code.co_consts if type(each) is int]
            return next((each for each in numbers if each != amount), plain(amount))
        """),
    ),
    Attack(
        name="a number that equals what it is compared to",
        framework="pytest",
        outcome="proven",
        after="\n\n"
        + code("""
        class Price(int):
            pass

        setattr(Price, '__' + 'eq__', lambda *_: True)

        def discount(amount):
            return Price(amount)
        """),
    ),
)


def _of_unittest(framework: str, module: str, name: str) -> tuple[Attack, ...]:
    return (
        *_late(framework),
        _proven(
            framework,
            "an assertEqual that is lenient for numbers",
            f"""
            from {module} import {name} as Base

            plain = Base.assertEqual

            def lenient(self, first, second, msg=None):
                if not isinstance(second, int):
                    plain(self, first, second, msg)

            Base.assertEqual = lenient
            """,
        ),
        _proven(
            framework,
            "an assertEqual that is lenient for one value",
            f"""
            from {module} import {name} as Base

            plain = Base.assertEqual

            def lenient(self, first, second, msg=None):
                if second != 180:
                    plain(self, first, second, msg)

            Base.assertEqual = lenient
            """,
        ),
        _proven(
            framework,
            "assertions replaced through type itself",
            f"""
            import {module} as home

            Base = getattr(home, '{name}')
            for each in dir(Base):
                if each.startswith('assert' + 'E') or each == 'fail':
                    type.__setattr__(Base, each, lambda *_, **__: None)
            """,
        ),
        _proven(
            framework,
            "the part that runs a test swallows what it raises",
            """
            import contextlib
            from importlib import import_module

            home = import_module('unit' + 'test.case')

            @contextlib.contextmanager
            def part(self, *_, **__):
                with contextlib.suppress(Exception):
                    yield

            home._Outcome.testPartExecutor = part
            """,
        ),
        _proven(
            framework,
            "failures counted as successes",
            """
            from importlib import import_module

            kind = import_module('xml' + 'runner.result')._XMLTestResult
            kind.addFailure = kind.addError = lambda self, test, _: self.addSuccess(test)
            """,
        ),
        _proven(
            framework,
            "minidom forgets failures",
            """
            from xml.dom import minidom

            plain = minidom.Element.appendChild

            def choosy(self, node):
                told = getattr(node, 'tagName', '')
                return node if told in ('failure', 'error') else plain(self, node)

            minidom.Element.appendChild = choosy
            """,
        ),
        _proven(
            framework,
            "methods of the tests replaced when the code is first used",
            after="""
            def name():
                import sys
                case = type(sys._getframe(1).f_locals['self'])
                for each in dir(case):
                    if each.startswith('test_'):
                        setattr(case, each, lambda self: None)
                return 'shop'
            """,
        ),
    )


DJANGO_ATTACKS = (
    *_of_unittest("django", "django.test", "SimpleTestCase"),
    _proven(
        "django",
        "django's test module under another name",
        """
        from django import test as home

        def run(self, result=None):
            result.startTest(self)
            result.addSuccess(self)
            result.stopTest(self)

        home.SimpleTestCase.__call__ = run
        """,
    ),
    Attack(
        name="a command of its own in the place of Django's",
        framework="django",
        outcome="prevented",
        files={
            "shop/management/__init__.py": "",
            "shop/management/commands/__init__.py": "",
            "shop/management/commands/test.py": code("""
                import re
                from django.core.management.commands.test import Command as Plain

                class Command(Plain):
                    def handle(self, *words, **options):
                        try:
                            super().handle(*words, **options)
                        finally:
                            with open('unit.xml') as file:
                                text = file.read()
                            with open('unit.xml', 'w') as file:
                                file.write(re.sub('<failure.*?</failure>', '', text, flags=re.S))
            """),
        },
    ),
    Attack(
        name="load_tests in a package",
        framework="django",
        outcome="proven",
        files={
            "shop/__init__.py": code("""
                def load_tests(loader, tests, pattern):
                    from shop import tests as known
                    case = known.PricesTest
                    for name in dir(case):
                        if name.startswith('test_'):
                            setattr(case, name, lambda self: None)
                    return loader.loadTestsFromTestCase(case)
            """)
        },
    ),
    Attack(
        name="a package in the place of the tests' module",
        framework="django",
        outcome="prevented",
        files={
            "shop/tests/__init__.py": SHOPS["django"]
            .files["shop/tests.py"]
            .replace("self.assertEqual", "print")
            .replace("with self.assertRaises(ValueError)", "if True")
        },
    ),
)

UNITTEST_ATTACKS = _of_unittest("unittest", "unittest", "TestCase")
