"""What Java's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.altering import Alteration, compared
from astra_async.languages.syntax import TestFile, inside, part, source, spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from astra_async.languages.rows import Written


_ONE = b"@name@.one(%b)"


def _of(says: str) -> tuple[bytes, ...]:
    return (f'@name@.of(%b, "{says}")'.encode(),)


def _two(says: str) -> tuple[bytes, ...]:
    return _ONE, f'@name@.two(%b, "{says}")'.encode()


# What an assertion holds of, its first argument or two, by how these are written so that it is noted.
_HOLDS = {
    "assertEquals": _two("equal"), "assertNotEquals": _two("unequal"), "assertArrayEquals": _two("deep"),
    "assertSame": _two("same"), "assertNotSame": _two("other"),
    "assertTrue": _of("true"), "assertFalse": _of("false"), "assertNull": _of("null"),
    "assertNotNull": _of("some"),
}  # fmt: skip
# The same of AssertJ's, of what is asked about and their argument.
_FLUENT = {
    "isEqualTo": _two("like"), "isNotEqualTo": _two("unequal"), "isSameAs": _two("same"),
    "isTrue": _of("true"), "isFalse": _of("false"), "isNull": _of("null"), "isNotNull": _of("some"),
    "hasSize": _two("size"),
}  # fmt: skip
_NEAR = (_ONE, *_two("near"))
_THROWN = frozenset({"assertThrows", "assertThrowsExactly"})
_DESCRIBING = frozenset({"as", "describedAs"})
# What has no type without the parameter that it is given for.
_UNTYPED = frozenset({"lambda_expression", "method_reference", "null_literal", "array_initializer"})
_MESSAGES = _UNTYPED | {"string_literal", "binary_expression"}
# Statements behind which none is reached, or may not be.
_LAST = frozenset({"throw_statement", "while_statement", "do_statement", "for_statement"})
_BLOCKS = {
    "org.junit.jupiter": ("org.junit.jupiter.api.function.Executable", "execute"),
    "org.junit": ("org.junit.function.ThrowingRunnable", "run"),
}
# Types decide which of several assertions is called: a value keeps its own. Each thread has its notes:
# whether all held and the test runs for the first time, and the last two values.
_PRIMITIVES = "boolean", "byte", "char", "double", "float", "int", "long", "short"
_NOTING = """
    private static final class @name@ {
        private static final ThreadLocal<Object[]> notes =
            ThreadLocal.withInitial(() -> new Object[] {true, false, 0, 0});
        private static final java.util.Map<String, Boolean> begun =
            new java.util.concurrent.ConcurrentHashMap<>();
        static void begin(String said) {
            notes.get()[0] = true;
            notes.get()[1] = begun.put(said, true) == null || said.endsWith("each time");
        }
        static void end(String said) {
            if ((boolean) notes.get()[0] && (boolean) notes.get()[1]) throw new AssertionError(said);
        }
        static <T> T one(T it) { notes.get()[2] = notes.get()[3]; notes.get()[3] = it; return it; }
        static <T> T two(T it, String says) { return noted(it, notes.get()[3], says); }
        static <T> T of(T it, String says) { return noted(it, it, says); }
        private static <T> T noted(T it, Object one, String says) {
            if (!holds(says, one, it)) notes.get()[0] = false;
            return it;
        }
        private static boolean number(Object it) { return it instanceof Number || it instanceof Character; }
        private static double of(Object it) {
            return it instanceof Character ? (char) it : ((Number) it).doubleValue();
        }
        private static boolean deep(Object one, Object two) {
            return java.util.Arrays.deepEquals(new Object[] {one}, new Object[] {two});
        }
        private static boolean equal(Object one, Object two) {
            return deep(one, two) || (number(one) && number(two) && of(one) == of(two));
        }
        private static boolean near(Object by) {
            Object one = notes.get()[2], two = notes.get()[3];
            return !(number(by) && number(one) && number(two)) || equal(one, two)
                || Math.abs(of(one) - of(two)) <= of(by);
        }
        private static boolean holds(String says, Object one, Object two) {
            switch (says) {
                case "equal": return equal(one, two);
                case "like": return equal(one, two) || (two instanceof String && !(one instanceof String));
                case "unequal": return one == null ? two != null : !one.equals(two);
                case "deep": return deep(one, two);
                case "near": return near(two);
                case "same": return one == two;
                case "other": return one != two || one instanceof Number;
                case "size": return !(one instanceof java.util.Collection)
                    || of(two) == ((java.util.Collection<?>) one).size();
                case "true": return !(two instanceof Boolean) || two.equals(true);
                case "false": return !(two instanceof Boolean) || two.equals(false);
                case "null": return two == null;
                default: return two != null;
            }
        }%s%s
    }
"""
# A source beside the test may declare a type of one of these names.
_OF_JAVA = re.compile(
    r"(?<![.\w])(?=(?:AssertionError|Boolean|Character|Class|Math|Number|Object|String|ThreadLocal|Throwable)\b)"
)
_OF_TYPE = """
        static %(type)s one(%(type)s it) { one((Object) it); return it; }
        static %(type)s two(%(type)s it, String says) { two((Object) it, says); return it; }
        static %(type)s of(%(type)s it, String says) { of((Object) it, says); return it; }"""
_THROWING = """
        static %(block)s thrown(Class<?> kind, %(block)s run) {
            return () -> {
                try { run.%(call)s(); } catch (Throwable error) {
                    if (!kind.isInstance(error)) notes.get()[0] = false;
                    throw error;
                }
                notes.get()[0] = false;
            };
        }"""


def around(method: Node, imports: str) -> list[Written]:
    """What notes comparisons before and behind a test's statements, and the class that does it.

    Nothing in a test that may end otherwise, and for TestNG, which compares lists by rules of its own.
    """
    body, holder = method.child_by_field_name("body"), _outermost(method)
    held = [] if body is None else [each for each in body.named_children if "comment" not in each.type]
    if body is None or holder is None or not held or held[-1].type in _LAST or "org.testng" in imports:
        return []
    begin, end, last = body.start_byte + 1, body.end_byte - 1, holder.end_byte - 1
    types = "".join(_OF_TYPE % {"type": each} for each in _PRIMITIVES)
    noting = _OF_JAVA.sub("java.lang.", _NOTING % (types, _throwing(method, imports))).encode()
    return [
        ((begin, begin), b' @name@.begin("@held@");'),
        ((last, last), noting),
        ((end, end), b' @name@.end("@held@"); '),
    ]


def _outermost(node: Node) -> Node | None:
    """The body of the file's own class in which a node stands."""
    at, found = node.parent, None
    while at is not None:
        found = at if at.type == "class_declaration" else found
        at = at.parent
    return None if found is None else found.child_by_field_name("body")


def _block(imports: str) -> tuple[str, str] | None:
    """The type of a block that is to raise, and its method."""
    return next((each for package, each in _BLOCKS.items() if package in imports), None)


def _throwing(method: Node, imports: str) -> str:
    """The method that notes what a block raises, where the file's framework has such blocks."""
    block = _block(imports)
    root = method
    while root.parent is not None:
        root = root.parent
    is_used = block and any(each.encode() in (root.text or b"") for each in _THROWN)
    return _THROWING % {"block": block[0], "call": block[1]} if block and is_used else ""


def noting(call: Node, file: TestFile, imports: str) -> Iterator[Alteration]:
    """What an assertion compares, if it says all by itself."""
    name, given = part(call, "name"), inside(call)
    if name in file.functions:
        return  # an assertion of the file's own, of other types
    patterns = _HOLDS.get(name, ())
    if subject := _subject(call):
        given, patterns = [*subject, *given], _FLUENT.get(name, ())
    elif name in _THROWN and given[1:] and source(given[0]).endswith(".class"):
        given, patterns = given[1:], (b"@name@.thrown(%b, %%b)" % (given[0].text or b""),)
        yield from compared(file.text, spans(given), patterns, b" + ") if _block(imports) else ()
        return
    elif len(given) > len(patterns) and "org.junit.jupiter" not in imports and given[0].type in _MESSAGES:
        given = given[1:]  # JUnit 3 and 4 are given what a failure says first
    if name in {"assertEquals", "assertArrayEquals"} and len(given) > len(patterns):
        patterns = patterns if given[2].type in _MESSAGES else _NEAR if name == "assertEquals" else ()
    if not any(each.type in _UNTYPED for each in given[: len(patterns)]):
        yield from compared(file.text, spans(given), patterns, b" + ")


def _subject(call: Node) -> list[Node]:
    """What AssertJ's assertion, the first one behind `assertThat`, is about."""
    at = call.child_by_field_name("object")
    while part(at, "name") in _DESCRIBING:
        at = None if at is None else at.child_by_field_name("object")
    return inside(at) if part(at, "name") == "assertThat" and len(inside(at)) == 1 else []
