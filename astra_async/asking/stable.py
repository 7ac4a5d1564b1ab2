"""Normalization of program output, so that equal failures give equal text, byte for byte.

Equal text keeps prompt caches valid and makes runs reproducible. Times, durations, ports, addresses, absolute
paths, process ids, seeds and random names are replaced by fixed words. The order of lines that a test runner
shuffles and random names that look like words are not normalized.
"""

from __future__ import annotations

import re

from astra_async.report_text import without_controls

_TITLES = re.compile(r"\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)?")  # set the terminal window's title
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"[0-2]?\d:[0-5]\d:[0-6]\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|GMT(?:[+-]\d{4})?|[+-]\d\d:?\d\d)\b)?"
_UNIT = (
    r"(?:milliseconds?|microseconds?|nanoseconds?|seconds?|secs?|minutes?|mins?|hours?|ms|us|µs|μs|ns|s|m|h)"
)
_NUMBER = r"\d{1,12}(?:[.,]\d{1,12})?"
_ROOTS = (
    "projects|tmp|home|usr|opt|var|root|etc|proc|dev|lib|lib64|mnt|srv|run|sys|private|workspace|builds|Users"
)
_NAME = r"[\w.@+~%=,-]{1,200}"

# Rules apply in this order. Replacements contain no digits, so later rules do not change them.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        # Paths. Paths in the project's folder come first and become relative.
        (r"(?:file://)?/projects/challenge/", ""),
        (r"(?:file://)?/projects/challenge(?![\w/])", "."),
        (r"(?:file://)?(?<![\w.<:/])/tmp(?:/[\w.@+~%=,:-]{1,200})+", "<path>"),
        (rf"(?:file://)?(?<![\w.<])/(?:{_ROOTS})/(?:{_NAME}/)*", "<path>/"),
        (r"(?<!\w)[A-Za-z]:\\(?:[\w. -]{1,100}\\)*", "<path>/"),
        # Times and dates.
        (rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[T ,]{{1,2}}{_CLOCK})?{_ZONE}", "<time>"),
        (rf"\b(?:{_DAY},? )?\d{{1,2}}[ -]{_MONTH}[ -]\d{{4}}(?:[ ,]{{1,2}}{_CLOCK})?{_ZONE}", "<time>"),
        (
            rf"\b(?:{_DAY},? )?{_MONTH} {{1,2}}\d{{1,2}},?(?: \d{{4}})?,? {_CLOCK}{_ZONE}(?: \d{{4}})?",
            "<time>",
        ),
        (rf"\b(?:{_DAY},? )?{_MONTH} \d{{1,2}},? \d{{4}}", "<time>"),
        (rf"(?<![\w:./]){_CLOCK}(?![\d:])(?: ?[AP]M\b)?{_ZONE}", "<time>"),
        (r"(?<![\w:./])(?:[01]\d|2[0-3]):[0-5]\d(?![\w:.])", "<time>"),
        (r"(?<![\w.-])1[5-9]\d{11}(?!\w)|(?<![\w.-])1[5-9]\d{8}\.\d{1,9}(?!\w)", "<time>"),
        # Durations. Some test runners print a duration only if it was long, so those in brackets are removed.
        (rf"[ \t]*[(\[]{_NUMBER} ?{_UNIT}[)\]]", ""),
        (rf"(?<![\w.<-]){_NUMBER} ?{_UNIT}\b(?: {_NUMBER} ?{_UNIT}\b)*", "<duration>"),
        (
            rf"\b((?:time|duration|duration_ms|elapsed|took)[=:]? {{0,9}}[\"']?){_NUMBER}(?![\w.])",
            r"\1<duration>",
        ),
        # Memory addresses, network addresses, process ids.
        (r"\b0x[0-9a-fA-F]{4,16}\b", "0x<address>"),
        (r"(?<=[\w$>])@[0-9a-f]{5,8}\b", "@<address>"),
        (r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.]*\d)", "<address>"),
        (r"\blocalhost:\d{1,5}\b", "localhost:<port>"),
        (r"\[::1?\](?::\d{1,5})?", "<address>"),
        (r"(?i)\b(port[ :=#]{1,3})\d{1,5}\b", r"\1<port>"),
        (r"(?i)\b(pid[ :=#]{1,3}|process[ :=#]{1,3})\d{1,8}\b", r"\1<pid>"),
        (r"\((node|ruby|python):\d{1,8}\)", r"(\1:<pid>)"),
        (r"==\d{1,8}==", "==<pid>=="),
        # Random names.
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,128}\b", "<id>"),
        (r"(?i)\b(seed[ :=]{1,3}|--seed[ =])\d{1,20}\b", r"\1<seed>"),
        (r"\btmp[a-z0-9_]{6,12}\b", "<tmp>"),
        (r"(Final Memory: )\S{1,20}", r"\1<size>"),
    )
)
_LONGEST_LINE = 2000
_BLANK_LINES = re.compile(r"\n{3,}")


def stable(text: str) -> str:
    """Replace what differs between runs, and remove terminal codes and trailing blanks. Idempotent."""
    text = without_controls(_TITLES.sub("", text.replace("\r\n", "\n")))
    # Keep only the text after the last carriage return, as a terminal does for progress lines.
    lines = (line.rstrip("\r").rpartition("\r")[2][:_LONGEST_LINE] for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(_stable_line(line) for line in lines)).strip("\n")


def shortened(text: str, length: int) -> str:
    """Shorten text to `length` characters: keep whole lines at the head and at the tail, half each."""
    if len(text) <= length:
        return text
    half = max(0, length - len(_GAP)) // 2
    head = text[:half].rpartition("\n")[0] or text[:half]
    tail = text[len(text) - half :].partition("\n")[2] or text[len(text) - half :]
    return f"{head}{_GAP}{tail}"


_GAP = "\n[... left out ...]\n"


def _stable_line(line: str) -> str:
    for pattern, put in _RULES:
        line = pattern.sub(put, line)
    return line.rstrip()
