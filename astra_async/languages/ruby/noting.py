"""What Ruby's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from astra_async.languages.rows import Written


def _of(says: str) -> tuple[bytes, ...]:
    return (f"$@name@.of(%b, :{says})".encode(),)


def _two(says: str) -> tuple[bytes, ...]:
    return b"$@name@.one(%b)", f"$@name@.two(%b, :{says})".encode()


# What an assertion holds of, its one argument or two, by how these are written so that it is noted.
HOLDS = {
    **dict.fromkeys(("assert", "be_truthy"), _of("itself")),
    **dict.fromkeys(("refute", "assert_not", "be_falsey"), _of("!")),
    **dict.fromkeys(("assert_nil", "be_nil", "must_be_nil"), _of("nil?")), "refute_nil": _of("some?"),
    **dict.fromkeys(("assert_equal", "must_equal", "eq", "be", "equal"), _two("==")),
    **dict.fromkeys(("refute_equal", "assert_not_equal", "wont_equal"), _two("!=")),
    **dict.fromkeys(("assert_includes", "include"), _two("includes?")), "refute_includes": _two("excludes?"),
    "have_http_status": _two("status?"),
    "assert_response": (b"$@name@.two(($@name@.one(@response); %b), :status?)",),  # Rails' own tests have it
    "have_attributes": _two("attributes?"), "start_with": _two("begins?"), "end_with": _two("ends?"),
    "match": _two("matches?"), **{each: _two(each) for each in ("<", "<=", ">", ">=")},
}  # fmt: skip
# The same of a matcher that is denied.
DENIED = {
    "be_nil": _of("some?"), "be_truthy": _of("!"), "be_falsey": _of("itself"), "include": _two("excludes?"),
    **dict.fromkeys(("eq", "be", "equal"), _two("!=")),
}  # fmt: skip
PASS = b"\n$@name@.row\n"
PASSED = b"\n$@name@.passed\n"  # behind what is to raise
# A block, before it is told what that is to raise: who hears it does not know it yet.
RUN = b"(&$@name@.run%b)"
SAID = (b"$@name@.said(%b)",)
# What has been noted is seen by these methods alone.
_NOTING = b" ".join(
    each.strip()
    for each in b"""\
$@name@ = Object.new.tap { |notes| held, again, due, raised, given, begun = true, false, 0, nil, [], [];
holds = ->(one, two) {
  case one when String then one.include?(two) if String === two;
  when Array then one.any? { |each| two === each || each == two };
  else one.include?(two) if one.respond_to?(:include?) && !(Hash === two) end };
says = { some?: ->(it) { !it.nil? },
  includes?: ->(one, two) { holds.(one, two) != false }, excludes?: ->(one, two) { holds.(one, two) != true },
  begins?: ->(one, two) { !(String === one && String === two) || one.start_with?(two) },
  ends?: ->(one, two) { !(String === one && String === two) || one.end_with?(two) },
  matches?: ->(one, two) { !(String === one && Regexp === two) || two.match?(one) },
  attributes?: ->(one, two) {
    two.all? { |name, it| one.public_send(name).then { |has| it === has || it == has } } },
  status?: ->(one, two) {
    code = { success: 200..299, successful: 200..299, redirect: 300..399,
      missing: 404, error: 500..599 }[two];
    code ||= defined?(Rack::Utils) ? Rack::Utils::SYMBOL_TO_STATUS_CODE.fetch(two, two) : two;
    Symbol === code || !one.respond_to?(:status) || code === one.status } };
noted = ->(name, *sides) {
  held = false unless says.key?(name) ? says[name].call(*sides) : sides[0].public_send(name, *sides.drop(1));
  sides[-1] };
notes.define_singleton_method(:start) { |said|
  held, again, due = true, begun.include?(said) && !said.end_with?("each time"), 0; begun.push(said) };
notes.define_singleton_method(:passed) { held = false };
notes.define_singleton_method(:run) { |&block|
  begin; block.call; held = false; proc {};
  rescue Exception => error; raised = error; proc { raise error }; end };
notes.define_singleton_method(:said) { |it| held = false unless it === raised&.message; it };
notes.define_singleton_method(:rows) { |over, anew, first| kept = over.to_a.dup.freeze; due += anew.size;
  Enumerator.new { |given| anew.size.times { |each|
    at = (each + first) % anew.size; given << (anew[at] ? anew[at].call : kept[at]) } } };
notes.define_singleton_method(:row) { due -= 1 };
notes.define_singleton_method(:one) { |it| given.push(it); it };
notes.define_singleton_method(:two) { |it, name| noted.call(name, given.pop, it) };
notes.define_singleton_method(:of) { |it, name| noted.call(name, it) };
notes.define_singleton_method(:close) { |said| raise said if held && due == 0 && !again } };
""".splitlines()
)
_AT_ONCE = b"parallelize_me!", b":threads"  # of several tests one would note what another compares


def around(root: Node, source: bytes, body: tuple[int, int]) -> Sequence[Written]:
    """What notes comparisons before and behind a test's statements; nothing where tests run side by side."""
    first = next((each.start_byte for each in root.named_children if each.type != "comment"), 0)
    if any(each in source for each in _AT_ONCE):
        return ()
    begin, end = body
    behind = b"\n$@name@.close('@held@')\n"
    return ((first, first), _NOTING), ((begin, begin), b"$@name@.start('@held@'); "), ((end, end), behind)
