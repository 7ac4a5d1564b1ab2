"""Of a long output the lines that tell are shown."""

from astra_async.testing.reports.suite_failures import relevant_lines


def test_a_short_output_is_shown_whole() -> None:
    assert relevant_lines("one\n\ntwo\n") == "one\ntwo"


def test_the_cause_comes_before_the_tool_s_last_words() -> None:
    output = "\n".join(
        [
            *(f"> compiling part {n}" for n in range(200)),
            "/bin/sh: 1: python: not found",
            "gyp ERR! stack Error: `make` failed with exit code 127",
            *(f"node-pre-gyp ERR! stack line {n}" for n in range(30)),
            *(f"> more of part {n}" for n in range(100)),
            "npm ERR! code 1",
            "Run with --trace for full trace",
        ]
    )
    shown = relevant_lines(output)
    assert "python: not found" in shown
    assert "node-pre-gyp ERR!" not in shown
    assert "--trace" not in shown
    assert "npm ERR! code 1" in shown
    assert len(shown.splitlines()) <= 20


def test_an_output_without_such_lines_is_given_by_its_end() -> None:
    shown = relevant_lines("\n".join(f"line {n}" for n in range(100)))
    assert shown.endswith("line 99")


def test_endless_lines_are_cut() -> None:
    assert len(relevant_lines("error: " + "x" * 10_000_000)) < 300


def test_an_output_of_noise_alone_is_shown() -> None:
    assert relevant_lines("\n".join(["Run with --trace for full trace"] * 50))
