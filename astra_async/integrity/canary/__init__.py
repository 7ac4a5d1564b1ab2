"""Tests that must fail: a canary shows whether a solution bends the tests that judge it.

A canary is laid over a solution's project for a run of its own, never for the scored one. It is made of
falsehoods (`expect(17).toBe(23)`), written with the assertion library of the project's tests: one file
with a random name, which loads what the tests load, and more cases at the end of each existing test file,
after the solution's code has been at work there. One that is reported as passed is proof. One that
is not reported proves nothing: then `emptied` gives all tests other names, and a report that still tells of
passed tests by the old ones was not written by the test runner.
"""

from astra_async.integrity.canary.frameworks import FRAMEWORKS, Framework, framework_of
from astra_async.integrity.canary.planting import Canary, emptied, passed, plant, was_seen

__all__ = [
    "FRAMEWORKS",
    "Canary",
    "Framework",
    "emptied",
    "framework_of",
    "passed",
    "plant",
    "was_seen",
]
