"""Export as JUnit XML, with a suite for each model and format and a case for each problem."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from lxml import etree

from astra_async.files import write_atomically
from astra_async.report.entries import entries_of

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run


def write_junit(runs: tuple[Run, ...], path: Path, *, min_pass: float) -> None:
    """Write the file atomically.

    A case fails if a share of less than `min_pass` (0 to 1) of its samples passed all tests. A case with
    missing samples is an error, never a failure.
    """
    root = etree.Element("testsuites", name="astra_async")
    for entry in entries_of(runs):
        root.append(_suite(entry, min_pass))
    write_atomically(path, etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="UTF-8"))


def _suite(entry: Entry, min_pass: float) -> etree._Element:
    suite = etree.Element("testsuite", name=_clean(entry.name), tests=str(len(entry.problem_ids)))
    failures = errors = 0
    for at, problem_id in enumerate(entry.problem_ids):
        valid, planned = int(entry.valid[at]), int(entry.planned[at])
        perfect = int(entry.perfect[at])
        case = etree.SubElement(suite, "testcase", classname=_clean(entry.name), name=_clean(problem_id))
        if valid < planned:
            errors += 1
            text = f"{planned - valid} of {planned} samples have no result"
            etree.SubElement(case, "error", message=text, type="missing")
        elif perfect < Fraction(str(min_pass)) * valid:  # exact: as floats, 0.56 * 25 > 14
            failures += 1
            text = f"{perfect} of {valid} samples passed all tests; mean score {100 * entry.means[at]:.1f} %"
            etree.SubElement(case, "failure", message=text, type="below_min_pass")
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    return suite


def _clean(text: str) -> str:
    """Replace unprintable characters, which XML 1.0 does not allow, by question marks."""
    return "".join(each if each.isprintable() else "?" for each in text)
