"""C# projects: which files are tests, and which files tools read by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

if TYPE_CHECKING:
    from astra_async.overlay import PathPolicy

PROJECT = "<Project><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>"
SHOP = {
    "Shop.sln": "x\n",
    "src/Shop/Shop.csproj": PROJECT,
    "src/Shop/Cart.cs": "namespace Shop { public class Cart { } }\n",
    "src/Shop/Latest.cs": "class Latest { }\n",
    "src/Shop/appsettings.json": "{}\n",
    "checks/Shop.Tests/Shop.Tests.csproj": PROJECT,
    "checks/Shop.Tests/Server.cs": "class Server { }\n",
    "checks/Prices.cs": 'class P\n{\n    [Trait("kind", "slow"), Fact]\n    public void Adds() { }\n}\n',
    "checks/Taxes.cs": "class T\n{\n    [NUnit.Framework.TestCase(1)]\n    public void Adds(int n) { }\n}\n",
    "checks/Rates.cs": "class R\n{\n    [DataTestMethod]\n    public void Adds() { }\n}\n",
    "checks/Sums.fs": "module Sums\n[<Fact>]\nlet adds () = ()\n",
    "checks/Dates.vb": "Class D\n    <TestMethod()>\n    Sub Adds()\n    End Sub\nEnd Class\n",
    "checks/CartTest.cs": "class CartTest { }\n",
    "Directory.Build.props": "<Project/>\n",
    "global.json": "{}\n",
    "NuGet.config": "<configuration/>\n",
    "checks/Shop.Tests/xunit.runner.json": "{}\n",
    "ci.runsettings": "<RunSettings/>\n",
}


def policy() -> PathPolicy:
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in SHOP.items())
    problem = Problem(
        id="shop", statement="s", project="/p", test_command="dotnet test Shop.sln -s ci.runsettings"
    )
    return path_policy(problem, Project(files=files, sha256="p"))


@pytest.mark.parametrize("path", [path for path in SHOP if path.startswith("checks/")])
def test_tests_are_known_by_name_place_and_attributes(path: str) -> None:
    assert policy().refusal(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        "Directory.Build.props",
        "Directory.Build.targets",
        "src/Directory.Packages.props",
        "src/Shop/Directory.Build.rsp",
        "src/Shop/Shop.csproj",
        "src/Shop/Shop.csproj.user",
        "src/Shop/obj/Shop.csproj.nuget.g.targets",
        "src/Shop/obj/project.assets.json",
        "src/Shop/runtimeconfig.template.json",
        "src/Other/Other.csproj",
        "Shop.sln",
        "Shop.slnx",
        "global.json",
        "checks/global.json",
        "NuGet.config",
        "src/nuget.config",
        "ci.runsettings",
        "other.runsettings",
        "checks/Shop.Tests/xunit.runner.json",
        "checks/Shop.Tests/Shop.Tests.xunit.runner.json",
    ],
)
def test_files_that_tools_read_by_name_cannot_be_replaced_or_added(path: str) -> None:
    assert policy().refusal(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        "src/Shop/Cart.cs",
        "src/Shop/Latest.cs",
        "src/Shop/Services/CartService.cs",
        "src/Shop/appsettings.json",
        "src/Shop/wwwroot/global.json",
        "src/Shop/SpeedTest/page.js",
    ],
)
def test_sources_stay_open(path: str) -> None:
    assert policy().refusal(path) is None


@pytest.mark.parametrize(
    "path", ["Shop.Tests/New.cs", "ShopTests/New.cs", "Shop.FunctionalTests/New.cs", "Shop.UnitTests/New.vb"]
)
def test_a_new_file_in_a_project_of_tests_is_refused(path: str) -> None:
    assert policy().refusal(path) is not None
