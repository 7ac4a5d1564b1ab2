"""Which C# sources of an answer the tests would use in place of a library's types."""

from __future__ import annotations

import pytest

from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

TEXTS = {
    "src/Shop/Shop.csproj": "<Project/>\n",
    "src/Shop/Cart.cs": "namespace Shop { public class Cart { } public class Path { } }\n",
    "tests/Shop.Tests/CartTests.cs": (
        "using System.Linq;\nusing Xunit;\nusing Shop.Models;\n\nnamespace Shop.Tests.Api\n{\n"
        "    public class CartTests\n    {\n        [Fact]\n        public async Task Adds()\n        {\n"
        '            Assert.Equal(new[] { 1 }, new Cart().Items().ToList()); Path.Combine("Guid");\n'
        "            new Order().Total.Should().Be(1); DateTime.Today.Add(1);\n        }\n    }\n}\n"
    ),
}


def refusal(text: str, path: str = "src/Shop/New.cs", *, statement: str = "Write it.") -> str | None:
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in TEXTS.items())
    problem = Problem(id="p", statement=statement, project="p", test_command="dotnet test tests/Shop.Tests")
    return path_policy(problem, Project(files=files, sha256="s")).refusal(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "namespace Shop { public static class Assert { } }",
        "public static class Assert { }",
        "namespace Shop;\n\npublic record Assert;",
        "namespace Shop { namespace Tests { static class Assert { } } }",
        "namespace Shop.Tests.Api { static class Assert { } }",
        "namespace Shop.Models { public class Assert { } }",
        "namespace Shop { class A { } } namespace Shop . Tests { public class @Assert { } }",
        "namespace Shop { class \\u0041ssert { } }",
        "namespace Shop { class As\u200dsert { } }",
        "namespace Shop /* } */ { class A { string s = \"}}\"; char c = '}'; } struct Assert { } }",
        'namespace Shop { class A { string s = @"\\"; } class Assert { } }',
        "namespace Shop { class FactAttribute : System.Attribute { } }",
        "namespace Shop { delegate int Assert(int a); }",
        "global using Assert = Shop.Fake;",
        "namespace Shop { static class E { public static Fake Should<T>(this T value) => null; } }",
        "namespace Xunit { public class Anything { } }",
        "namespace System.Threading.Tasks { class Task { } }",
    ],
)
def test_what_the_tests_would_find_first_is_refused(text: str) -> None:
    assert refusal(text) == "shadows_module"
    assert refusal(text, "src/Shop/Cart.cs") == "shadows_module"


@pytest.mark.parametrize(
    "text",
    [
        "namespace Shop { public class Order { } }",
        "namespace Shop.Services { public static class Assert { } }",
        "namespace Shop { class Guid { } }",  # the tests have the word in a text alone
        "namespace Shop { class Console { } }",
        "namespace Shop { class Path { } }",  # the project's own
        'namespace Shop { /* class Assert { } */ class Order { string s = "class Assert"; } }',
        "namespace Shop { static class E { public static Cart Add(this Cart cart, int a) => cart; } }",
        "namespace Microsoft.Extensions.DependencyInjection { static class ShopServices { } }",
        "using Assert;\nnamespace Shop { class A { void B() { using (var Assert = C()) { } } } }",
    ],
)
def test_other_declarations_are_not(text: str) -> None:
    assert refusal(text) is None


def test_a_type_that_the_statement_names_is_asked_for() -> None:
    assert refusal("namespace Shop { class Task { } }") == "shadows_module"
    assert refusal("namespace Shop { class Task { } }", statement="Write `Task`.") is None


def test_other_files_are_not_asked() -> None:
    assert refusal("namespace Shop { class Assert { } }", "src/Shop/notes.txt") is None
