"""Lists in one line."""

from __future__ import annotations

from astra_async.listing import grouped_by_text, some


def test_the_first_items_are_named_and_the_others_counted() -> None:
    assert some([]) == ""
    assert some(["a", "b", "c"]) == "a, b, c"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert some(["a", "b"], 1, " | ") == "a and 1 more"


def test_equal_messages_of_several_items_are_merged() -> None:
    said = [("q1", "no image"), ("q2", "slow"), *((f"q{number}", "no image") for number in range(3, 7))]
    assert list(grouped_by_text(said)) == ["q1, q3, q4 and 2 more: no image", "q2: slow"]
