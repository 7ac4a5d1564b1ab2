"""Python's assertions by their names: unittest's, Django's, pytest's, numpy's and those of mocks.

See `languages.altering`.
"""

from __future__ import annotations

from astra_async.languages.altering import SOMETHING, both_ways
from astra_async.languages.python.values import HOLDERS

EQUAL = {
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual",
    "assertAlmostEqual", "assertCountEqual", "assertSequenceEqual", "assertMultiLineEqual",
    "assertJSONEqual", "assertQuerySetEqual", "assertQuerysetEqual", "assert_array_equal", "assert_equal",
    "assert_allclose", "assert_array_almost_equal", "assert_almost_equal",
}  # fmt: skip
NEAR = {"assertAlmostEqual", "assert_allclose", "assert_array_almost_equal", "assert_almost_equal"}
UNORDERED = {"assertCountEqual", "assertSetEqual", "assertDictEqual"}
OPPOSITES = both_ways({
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIn": "assertNotIn",
    "assertIs": "assertIsNot", "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual", "assertLess": "assertGreaterEqual",
    "assertAlmostEqual": "assertNotAlmostEqual", "assertContains": "assertNotContains",
    "assertRegex": "assertNotRegex", "assertTemplateUsed": "assertTemplateNotUsed",
    "assert_called": "assert_not_called",
}) | {"assert_called_once": "assert_not_called"}  # fmt: skip
# By the place of the argument that is looked for, or of which an answer may have several.
WITHIN = {
    "assertIn": 0, "assertContains": 1, "assertInHTML": 0, "assertHTMLEqual": 1, "assertTemplateUsed": 1,
    "assertRedirects": 1, "assertURLEqual": 1, "assertStartsWith": 1, "assertEndsWith": 1,
}  # fmt: skip
CALLED_WITH = {"assert_called_with", "assert_called_once_with", "assert_any_call"}
NOT_IN = b"(lambda: %b)", b"(lambda: [%b])"  # an answer's own `in` may well take a list
# What an assertion does not hold of, whatever is asked about: the place that is written differently, and the
# argument out of whose text.
LISTS = b"[%b]", b"(%b,)"
OTHERS: dict[str, tuple[int, int, tuple[bytes, ...]]] = {
    "assertTrue": (0, 0, (b"not (%b)", b"None", b"''", b"0")),
    "assertFalse": (0, 0, (b"not (%b)", b"[%b]", *SOMETHING)),
    "assertIsNotNone": (0, 0, (b"[%b].clear()", b"[%b].sort()")), "assertNotIn": (1, 0, LISTS),
    "assertIn": (0, 0, NOT_IN), "assertIsNone": (0, 0, (*LISTS, *SOMETHING)),
    "assertIsInstance": (0, 0, LISTS), "assertRegex": (0, 0, LISTS), "assertIs": (1, 1, LISTS),
    **dict.fromkeys(("assertGreater", "assertGreaterEqual"), (1, 1, HOLDERS)),
    **dict.fromkeys(("assertLess", "assertLessEqual"), (1, 1, HOLDERS)),
}  # fmt: skip
OPERATORS = both_ways({"==": "!=", "<": ">=", ">": "<=", "in": "not in", "is": "is not"})
# What another error is asked as: an honest one may well be of two of the usual kinds, or of two of the
# answer's own, and hardly of these.
OTHER_ERRORS = (
    "BufferError", "RecursionError", "ReferenceError", "StopAsyncIteration", "UnboundLocalError", "TabError",
)  # fmt: skip
# What is called in place of what is to raise: raises nothing, or another error.
CALLED = tuple(b"(lambda *_, **__: %b)" % each for each in (b"None", b"(it for it in ()).throw(TabError())"))
RAISES = {"raises", "assertRaises", "assertRaisesMessage", "assertRaisesRegex"}
# Whose blocks raise what is raised in them; one of the answer's own might not.
MANAGERS = {
    "subTest", "patch", "object", "dict", "multiple", "open", "closing", "atomic", "nullcontext", "ExitStack",
    "TemporaryDirectory", "NamedTemporaryFile", "catch_warnings", "redirect_stdout", "redirect_stderr",
    "app_context", "test_request_context", "test_client", "session_transaction", "TestClient", "AsyncClient",
    "freeze_time", "travel", "override_settings", "modify_settings", "settings", "localcontext", "context",
    "captureOnCommitCallbacks", "assertNumQueries", "override", "client",
}  # fmt: skip
