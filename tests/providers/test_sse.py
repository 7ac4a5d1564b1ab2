from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.asking.providers.sse import EventTooLarge, SseSplitter


def events(*chunks: bytes) -> list[bytes]:
    splitter = SseSplitter()
    return [event for chunk in chunks for event in splitter.feed(chunk)] + splitter.finish()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_is_read(end: bytes) -> None:
    stream = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
    assert events(stream) == [b"1", b"2"]


def test_one_space_after_the_colon_is_dropped_and_no_more() -> None:
    assert events(b"data:1\n\ndata: 2\n\ndata:  3\n\n") == [b"1", b"2", b" 3"]


def test_data_of_several_lines_is_joined_with_line_feeds() -> None:
    assert events(b"data: a\ndata\ndata: b\n\n") == [b"a\n\nb"]


def test_comments_ids_and_retry_times_are_ignored() -> None:
    stream = b": OPENROUTER PROCESSING\n\n:\n\nid: 7\nretry: 3000\ndata: x\n\n: bye\n\n"
    assert events(stream) == [b"x"]


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_first_line() -> None:
    assert events(b"\xef\xbb\xbfdata: x\n\n") == [b"x"]


def test_a_carriage_return_at_the_end_of_a_chunk_completes_its_event_at_once() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"data: x\r\n\r") == [b"x"]
    assert splitter.feed(b"\ndata: y\r\n\r\n") == [b"y"]


def test_a_line_feed_after_a_carriage_return_does_not_cut_an_event_in_two() -> None:
    assert events(b"data: a\r", b"\ndata: b\r", b"\n\r\n") == [b"a\nb"]


def test_the_last_event_counts_without_its_blank_line() -> None:
    assert events(b"data: x") == [b"x"]
    assert events(b"data: x\n") == [b"x"]


def test_bare_json_is_an_event_on_one_line_or_on_many() -> None:
    pretty = b'[{\n  "error": {\n    "code": 429\n  }\n}\n]'
    assert events(b'data: 1\n\n{"error": {"code": 500}}\n') == [
        b"1",
        b'{"error": {"code": 500}}',
    ]
    assert events(pretty + b"\n") == [pretty]
    assert events(pretty) == [pretty]


def test_bare_json_is_told_as_soon_as_it_is_closed() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b'{\n  "error": {}\n}\n') == [b'{\n  "error": {}\n}']


def test_bare_json_that_is_never_closed_ends_with_a_blank_line() -> None:
    assert events(b'{ "a":\n\ndata: x\n\n') == [b'{ "a":', b"x"]


@pytest.mark.parametrize(
    "chunk",
    [b"data: " + b"x" * 200, b"data: x\n" * 50, b"{\n" * 200, b"x" * 101],
    ids=["line", "data", "bare", "junk"],
)
def test_an_endless_event_is_refused(chunk: bytes) -> None:
    splitter = SseSplitter(max_event_bytes=100)
    with pytest.raises(EventTooLarge):
        splitter.feed(chunk)


STREAM = (
    b'\xef\xbb\xbf: hi\r\nevent: a\r\ndata: {"t": "\xc3\xa9\xf0\x9f\x98\x80"}\r\n\r\n'
    b"data: 1\ndata:2\n\n\rdata: 3\r\r"
    b'{"error": 1}\n{\n "error": 2\n}\n\ndata: [DONE]'
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
@settings(deadline=None)
def test_any_chunks_give_the_same_events(cuts: list[int]) -> None:
    marks = [0, *sorted(cuts), len(STREAM)]
    assert events(*(STREAM[a:b] for a, b in pairwise(marks))) == events(STREAM)


def test_tiny_chunks_of_a_long_line_take_linear_time() -> None:
    def seconds(size: int) -> float:
        splitter = SseSplitter()
        started = time.process_time()
        for _ in range(size):
            splitter.feed(b"x")
        splitter.feed(b"\n")
        return time.process_time() - started

    seconds(1000)
    assert seconds(200_000) < 60 * max(seconds(10_000), 1e-3)
