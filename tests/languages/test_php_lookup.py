"""Which sources of an answer PHP would load in place of PHPUnit's."""

from __future__ import annotations

import pytest

from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

HELD = frozenset({"PHPUnit/Autoload.php", "Doctrine/Instantiator/autoload.php", "autoload.php"})


def refusal(path: str, text: str, held: frozenset[str] | None = HELD) -> str | None:
    texts = {"src/Cart.php": "<?php class Cart { }", "tests/CartTest.php": "<?php class CartTest { }"}
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items())
    problem = Problem(
        id="p", statement="x", project="p", test_command="phpunit tests", result_files=("unit.xml",)
    )
    policy = path_policy(problem, Project(files=files, sha256="s"))
    return (policy if held is None else policy.with_installed({"php": held})).refusal(path, text)


@pytest.mark.parametrize(
    "path",
    [
        "PHPUnit/Autoload.php",
        "src/PHPUnit/Autoload.php",
        "Doctrine/Instantiator/autoload.php",
        "autoload.php",
    ],
)
def test_a_file_that_the_include_path_would_find_later_is_refused(path: str) -> None:
    assert refusal(path, "<?php\n") == "shadows_module"


@pytest.mark.parametrize("path", ["src/autoload.php", "Doctrine/Orders.php", "src/Autoload.php"])
def test_a_file_of_another_name_is_not(path: str) -> None:
    assert refusal(path, "<?php\n") is None


def test_of_an_image_that_nobody_knows_the_usual_is_assumed() -> None:
    assert refusal("SebastianBergmann/Diff/autoload.php", "<?php\n", None) == "shadows_module"
    assert refusal("src/autoload.php", "<?php\n", None) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (r"<?php namespace PHPUnit\Framework; class Assert { }", "shadows_module"),
        (r"<?php class_alias(Same::class, 'PHPUnit\Framework\Constraint\IsIdentical');", "shadows_module"),
        ("<?php // its ?><?PHP namespace PHPUnit\\Framework; class Assert { }", "shadows_module"),
        ("<?php # its\rnamespace PHPUnit\\Framework; class Assert { }", "shadows_module"),
        ("It's\n<? namespace PHPUnit\\Framework; class Assert { } // '", "shadows_module"),
        ("<?php // it's\nclass Cart { } ?> class CartTest", None),
        ("<?php namespace Shop; // its\nclass Basket { }", None),
        (f"<?php namespace /*{'-' * 3000}*/ PHPUnit\\Framework; class Assert {{ }}", "shadows_module"),
        (
            """<?php $a = "{$b["'"]}"; namespace/*;*/ // its\n PHPUnit\\Framework; class Assert { } // '""",
            "shadows_module",
        ),
        ("<?php namespace Shop\\PHPUnit; use PHPUnit\\Framework\\Assert; class Basket { }", None),
        ("<?php namespace PHPUnit\\Framework ?><?php class Assert { }", "shadows_module"),
        (
            "<?php $a = <<<A\n {$b[<<<A\n A\n]}\n A; namespace PHPUnit\\Framework; class C { }",
            "shadows_module",
        ),
        ("<?php $a = `ls ${b['`']}`; namespace PHPUnit\\Framework; class Assert { } // `", "shadows_module"),
        ("<?php namespace Shop; // namespace PHPUnit\\Framework;\nclass Basket { }", None),
        ("<?php $a = <<<'A'\n {$b\n namespace PHPUnit\\Framework;\n A; class Basket { }", None),
        (r"<?php /* class_alias('A', 'PHPUnit\Framework\Assert') */ class Basket { }", None),
        ("namespace PHPUnit\\Framework; <p>", None),
        (r'<?php class_alias("Same", "\PHPUnit\Framework\Assert");', "shadows_module"),
        (r"<?php class_alias(Basket::class, 'Shop\Cart');", None),
        ("<?php class CartTest { }", "shadows_protected"),
    ],
)
def test_a_class_of_phpunit_s_is_declared_by_nobody_else(text: str, reason: str | None) -> None:
    assert refusal("src/Same.php", text) == reason
