"""What JavaScript's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.altering import Alteration, compared
from astra_async.languages.javascript.claims import claim_of
from astra_async.languages.syntax import TestFile, source, spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


def _told(function: str, says: str) -> bytes:
    return f"@name@.{function}(%b, (it@any@) => {says})".encode()


def _both(says: str) -> bytes:
    return f"@name@.both(%b, (one@any@, two@any@) => {says})".encode()


# How sides are written so that they are noted. Of nothing that `NOTING` calls unequal an assertion holds.
Patterns = tuple[bytes, ...]
_ONE, _TWO, _EXACT = b"@name@.one(%b)", b"@name@.two(%b)", b"@name@.two(%b, true)"
_RAISED = b"@name@.raised(%b)"
_THROWN, _REJECTED = (b"@name@.thrown(%b)",), (b"@name@.rejected(%b)",)
_OF, _HOLDING = ("property", "toHaveProperty"), ("toContain", "include", "contain", "toMatch", "match")
_TEXT = r"String(@name@.read(it, 'textContent') ?? '').replace(/\s+/g, ' ').trim()"
_CHECKED = (
    "(['checkbox', 'radio'].includes(@name@.read(it, 'localName') === 'input' && @name@.read(it, 'type'))"
    " ? @name@.read(it, 'checked') : @name@.attributed(it, 'aria-checked') === 'true')"
)
_CALLS = "(it?.mock?.calls.length ?? it?.calls?.count?.())"  # of jest's functions, or jasmine's
# What holds of two sides.
_BOTH = {
    "one > two": ("toBeGreaterThan", "above", "gt", "greaterThan"),
    "one >= two": ("toBeGreaterThanOrEqual", "least", "gte"),
    "one < two": ("toBeLessThan", "below", "lt", "lessThan"),
    "one <= two": ("toBeLessThanOrEqual", "most", "lte"),
    "one == two": ("==",),
    "!Array.isArray(two) || (one?.length === two.length && two.every((it@any@) => "
    "Object(it) === it || Array.prototype.includes.call(one, it)))": ("members",),
    "one instanceof two": ("toBeInstanceOf", "instanceOf", "instanceof"),
    "typeof two !== 'string' "
    "|| two.split(' ').every((name@any@) => !name || one?.classList?.contains(name))": ("toHaveClass",),
}  # fmt: skip
_MATCHED_NOT = (
    "typeof one !== 'string' || !(two instanceof RegExp ? new RegExp(two).test(one) : one.includes(two))"
)
# The same of what is denied: of a text or a list that it holds something.
_NEITHER = {
    "!Object.is(one, two)": ("toBe", "toEqual", "toStrictEqual", "equal", "equals", "eq", "eql"),
    "typeof one === 'string' ? typeof two !== 'string' || !one.includes(two) "
    ": !Array.isArray(one) || !Array.prototype.includes.call(one, two)": ("toContain", "contain", "include"),
    _MATCHED_NOT: ("toMatch", "match"),
}  # fmt: skip
_PLAIN_KEY = re.compile(r"""(['"])\w+\1""")  # no path through several objects
# What an assertion of one thing implies, and what it implies that is denied.
_HELD = {
    "toBeNull": ("it === null", "it !== null"), "toBeUndefined": ("it === undefined", "it !== undefined"),
    "toBeDefined": ("it !== undefined", "it === undefined"), "exist": ("it != null", "it == null"),
    "toBeTruthy": ("it", "!it"), "toBeFalsy": ("!it", "it"), "ok": ("it", "!it"),
    "toBeTrue": ("it === true", "it !== true"), "toBeFalse": ("it === false", "it !== false"),
    "toBeInTheDocument": ("@name@.read(it, 'isConnected')", "!@name@.read(it, 'isConnected')"),
    "toBeVisible": ("@name@.read(it, 'isConnected')", "true"), "toBeNaN": ("it !== it", "it === it"),
    "toBeDisabled": ("@name@.off(it) !== false", "@name@.off(it) !== true"),
    "toBeEnabled": ("@name@.off(it) !== true", "@name@.off(it) !== false"),
    "toBeChecked": (_CHECKED, f"!{_CHECKED}"),
    "toBeRequired": ("it?.matches?.('[required], [aria-required=true]')", "true"),
    "toHaveBeenCalled": (f"({_CALLS} ?? 1) > 0", f"!{_CALLS}"),
    "toHaveFocus": ("it?.ownerDocument?.activeElement === it", "it?.ownerDocument?.activeElement !== it"),
}  # fmt: skip
_HELD |= {each: _HELD[name] for each, name in {
    "null": "toBeNull", "undefined": "toBeUndefined", "true": "toBeTrue", "false": "toBeFalse",
}.items()}  # fmt: skip
_READ = {
    **dict.fromkeys(("toHaveLength", "lengthOf", "length"), "it?.length ?? it?.size"),
    "status": "it?.status ?? it?.statusCode",
    "toHaveValue": "@name@.value(it)",
    "toHaveBeenCalledTimes": _CALLS,
}


# The patterns of what is expected, and of what is denied; a key of nothing is as none to `toEqual`.
_EXPECT: dict[str, Patterns] = {
    **dict.fromkeys(("toBe", "toStrictEqual", "equal", "equals", "eq", "eql"), (_ONE, _EXACT)),
    "toEqual": (_ONE, _TWO),
    **dict.fromkeys(_HOLDING, (_ONE, b"@name@.within(%b)")),
    "toHaveTextContent": (_told("one", _TEXT), b"@name@.within(%b)"),
    "toMatchObject": (_ONE, b"@name@.partly(%b)"), "toHaveAttribute": (_ONE, b"@name@.attribute(%b)", _TWO),
    **dict.fromkeys(_OF, (_ONE, b"@name@.of(%b)", _TWO)),
    **{name: (_ONE, _both(says)) for says, names in _BOTH.items() for name in names},
    **dict.fromkeys(("toThrow", "toThrowError", "throw", "throws"), _THROWN),
    **{name: (_told("held", held),) for name, (held, _) in _HELD.items()},
    **{name: (_told("one", read), _TWO) for name, read in _READ.items()},
}  # fmt: skip
_DENIED: dict[str, Patterns] = {
    **{name: (_ONE, _both(says)) for says, names in _NEITHER.items() for name in names},
    **{name: (_told("held", held),) for name, (_, held) in _HELD.items()},
    "toHaveTextContent": (_told("one", _TEXT), _both(_MATCHED_NOT)),
}  # fmt: skip
_JUDGING = re.compile(rb"@name@\.(held|two|both|within|partly)\(")
# Names in a chain that leave alone what is asked about.
_WORDS = frozenset({
    "to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "deep", "not", "also",
})  # fmt: skip
# What is expected is compared in its plain parts: what an object of the tests or of a library equals is not
# known. `bare` takes the value out of an object of the language's that holds one, as jasmine does; `has` are
# the keys that jest compares, or else those that chai does. What an element is, is read from the class at the
# root of its own that knows it; `off` is what jest-dom takes for disabled, nothing where its versions or the
# kinds of legends differ. Where nothing is told apart, code has got at that.
NOTING = b"\n" + b"".join(
    each.strip() + b" "
    for each in b"""\
;var @name@@any@ = (() => { const made@any@ = { __proto__: null, same: true };
const begun@any@ = { __proto__: null }, world@any@ = globalThis;
const boxes@any@ = world.jasmine && !world.jest ? [String, Number, Boolean] : [];
const forms = ['fieldset', 'input', 'select', 'optgroup', 'option', 'button', 'textarea'];
const isObject = (it@any@) => typeof it === 'function' || (typeof it === 'object' && it !== null);
const alike = (one@any@, two@any@) => one === two || (one !== one && two !== two);
const own = (it@any@, key@any@) => !!Object.getOwnPropertyDescriptor(it, key);
const plain = (it@any@)@any@ => !isObject(it) || (typeof it === 'object' &&
  (Array.isArray(it) || Object.getPrototypeOf(Object.getPrototypeOf(it) ?? it) === null));
const bare = (it@any@) => { for (let at = 0; at < boxes.length; at += 1) {
  try { return boxes[at].prototype.valueOf.call(it); } catch (error) { continue; } } return it; };
const same = (first@any@, second@any@, has@any@, exact@any@)@any@ => {
  const one@any@ = exact ? first : bare(first), two@any@ = exact ? second : bare(second);
  if (!plain(two)) return true;
  if (isObject(one) !== isObject(two) || typeof one !== typeof two) return false;
  if (!isObject(one)) return alike(one, two);
  const isList = Array.isArray(one);
  if (isList !== Array.isArray(two) || (isList && one.length !== two.length)) return false;
  for (let at@any@ = 0; isList && at < one.length; at += 1)
    if (!same(one[at], two[at], has, exact)) return false;
  const holds = (it@any@, key@any@) => has(it, key) && (exact || it[key] !== undefined);
  for (const key in isList ? {} : two)
    if (holds(two, key) && !(holds(one, key) && same(one[key], two[key], has, exact))) return false;
  for (const key in isList ? {} : one) if (holds(one, key) && !holds(two, key)) return false;
  return true; };
const equal = (one@any@, two@any@, exact@any@) => one === two ||
  same(one, two, own, exact) || same(one, two, (it@any@, key@any@) => key in it, exact);
const noted = (it@any@, holds@any@) => { made.same = made.same && holds; return it; };
made.one = (it@any@, read@any@) => { made.it = read ? read(it) : it; return it; };
made.two = (it@any@, exact@any@) => noted(it, equal(made.it, it, exact));
made.both = (it@any@, holds@any@) => noted(it, holds(made.it, it));
made.of = (key@any@) => { made.it = made.it?.[key]; return key; };
made.attributed = (it@any@, key@any@) => made.read(it, 'getAttribute')?.call(it, key);
made.attribute = (key@any@) => { made.it = made.attributed(made.it, key); return key; };
const partly = (one@any@, two@any@)@any@ => !isObject(two) ? alike(one, two)
  : !plain(two) || (isObject(one) && (!Array.isArray(two) || one.length === two.length) &&
    Object.keys(two).every((key) => partly(one[key], two[key])));
made.partly = (it@any@) => noted(it, partly(made.it, it));
made.within = (it@any@) => { const held = made.it, isTable = isObject(held) && isObject(it) && plain(it);
  return noted(it, Array.isArray(held) ? Array.prototype.includes.call(held, it)
    : typeof held !== 'string' ? !isTable || held instanceof Set || held instanceof Map || partly(held, it)
    : it instanceof RegExp ? new RegExp(it).test(held) : isObject(it) || held.includes(it)); };
made.read = (it@any@, key@any@) => {
  let found@any@, at@any@ = isObject(it) ? Object.getPrototypeOf(it) : null;
  for (; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
    found = Object.getOwnPropertyDescriptor(at, key) ?? found;
  return found?.get ? found.get.call(it) : found?.value; };
made.off = (it@any@) => { let at@any@ = it, child@any@ = null;
  for (; at; child = at, at = made.read(at, 'parentElement')) {
    const name = String(made.read(at, 'localName'));
    const isForm = name.includes('-') || forms.includes(name);
    if (at === it && !isForm) return null;
    if (isForm && made.attributed(at, 'disabled') != null)
      return name === 'fieldset' && made.read(child, 'localName') === 'legend' ? null : true; }
  return false; };
made.value = (it@any@) => { const name = made.read(it, 'localName');
  const value = ['input', 'select', 'textarea'].includes(name) ? made.read(it, 'value') : it?.value;
  return name === 'select' && it.multiple ? Array.from(it.selectedOptions, (each@any@) => each.value)
    : name === 'input' && it.type === 'number' ? (value === '' ? null : Number(value)) : value; };
made.held = (it@any@, held@any@) => noted(it, held(it));
made.later = (name@any@) => (it@any@, how@any@) => { const given = made.it;
  given?.then?.((one@any@) => { const other = made.it; made.it = one;
    made[name](it === given ? one : it, how); made.it = other; })?.then?.(null, () => 0); return it; };
made.thrown = (run@any@) => { try { const it@any@ = run(); made.same = false; return () => it; }
  catch (error) { made.error = error; return () => { throw error; }; } };
made.raised = (it@any@) => { const error = made.error, said = error?.message;
  const isText = typeof said === 'string';
  return noted(it, typeof it === 'function' ? error instanceof it || error?.constructor === it
    : it instanceof RegExp ? !isText || new RegExp(it).test(said)
    : typeof it !== 'string' || !isText || said.includes(it)); };
made.rejected = async (run@any@) => { const it = await (typeof run === 'function' ? run() : run);
  made.same = false; return it; };
made.row = () => { made.due -= 1; };
made.begin = (held@any@) => { made.same = true; made.due = 0;
  made.again = begun[held] && !held.endsWith('each time');
  begun[held] = true; };
const isBlind = () => { for (let size = 0; size < 6; size += 1) {
  const one@any@ = { list: [] }, two@any@ = { list: [] };
  for (let at = 0; at < size; at += 1) one[`a${at}`] = two[`a${at}`] = one.list[at] = two.list[at] = 'b';
  two.list[size] = { c: 1 }; one.list[size] = { c: `${size}` };
  if (equal(one, two) || equal(one, two, true)) return true; } return false; };
made.end = (held@any@) => (it@any@) => { if (!made.same || made.due || made.again) return it;
  const error = new Error(isBlind() ? 'nothing is told apart' : held);
  error.stack = `Error: ${error.message}`; throw error; };
return made; })();
function @name@_rows@of@(over@it@, anew@any@, first@any@, isTakenApart@any@)@it@ {
  const rows@any@ = over, { length }@any@ = anew;
  const list = (length@any@, first@any@, each@any@)@any@ => ({
    forEach: (run@any@) => { for (let given = 0; given < length; given += 1) {
      const at = (given + first) % length; run(each(at), at, over); } },
    [Symbol.iterator]: () => { let at = -1; return { next: () => { at += 1; return at < length
      ? { done: false, value: each((at + first) % length) } : { done: true }; } }; } });
  @name@.due += length;
  for (let at@any@ = 0; at < length; at += 1) { const row = rows[at]; anew[at] = anew[at] ?? (() => row); }
  return list(length, first, (at@any@) => { const row@any@ = anew[at]();
    return isTakenApart ? list(row.length, 0, (part@any@) => row[part]) : row; }); }
""".splitlines()
)
PASS = b"@name@.row()"
BEFORE = b"@name@.begin('@held@'); "
ALL_SAME = b"\n@name@.end('@held@')();"
ALL_SAME_THEN = b").then(@name@.end('@held@'))"  # of what a test returns


def _later(patterns: Patterns) -> Patterns:
    """The same of what a promise gives, noted as it does; nothing where a part of that is read first."""
    first, *rest = (_JUDGING.sub(rb"@name@.later('\1')(", each) for each in patterns or (b"",))
    if first.startswith(b"@name@.later"):
        return (first.replace(b"%b", _ONE),)
    return (first, *rest) if first == _ONE else ()


def _close_to(digits: str) -> Patterns:
    """What a number is close to, to so many digits behind the point, as jest and jasmine round."""
    if not (digits.isdecimal() and len(digits) == 1):
        return ()
    return _ONE, _both(f"one === two || Math.abs(one - two) < 5.5e-{int(digits) + 1}")


def noting(assertion: Node, file: TestFile) -> Iterator[Alteration]:
    """What a call or a property compares, if it is an assertion that says all by itself."""
    (begun, *words), about, given, _ = claim_of(assertion)
    if begun != "expect()":
        return
    subject, name = [about] if about is not None else [], words.pop()
    patterns, is_denied = Patterns(), "not" in words
    if "rejects" in words and not is_denied:
        given, patterns = subject, _REJECTED
    elif _WORDS.issuperset({*words} - {"resolves"}):
        given = [*subject, *given]
        if (
            name == "toBeInTheDocument"
            and is_denied
            and about is not None
            and about.type == "call_expression"
        ):
            name = "exist"  # what is found is there
        patterns = _DENIED.get(name, ()) if is_denied else _EXPECT.get(name, ())
        if patterns == _THROWN and given[1:] and name != "throws":  # node's may be given what a failure says
            patterns = (*patterns, _RAISED)
        if name == "toBeCloseTo" and not is_denied:
            patterns = _close_to(source(given[2]) if given[2:] else "2")
        patterns = _later(patterns) if "resolves" in words else patterns
        is_path = name in _OF and not (len(given) > 1 and _PLAIN_KEY.fullmatch(source(given[1])))
        if is_path or (name in _HOLDING and "deep" in words):
            return
    yield from compared(file.text, spans(given), patterns, b" + ")
