from __future__ import annotations

import random
import re
import time

from astra_async.integrity.canary import java, plant
from astra_async.integrity.canary.words import Words
from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

TEST = """\
package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.*;

@DisplayName("A shop {")
class ShopTest {
    private final String brace = "}" + '}' + '"'; // }
    /* } */

    @Test
    @DisplayName("adds")
    void addsPrices() throws Exception {
        assertEquals(3, Shop.total(1, 2));
        Assertions.assertTrue(true);
    }

    @ParameterizedTest @CsvSource({"1, {", "2, }"})
    void knows(int number, @ConvertWith(Own.class) String name) { }

    @Nested
    class Inner {
        @Test void isIn() { helper(); }

        private void helper() { }
    }
}

interface Later {
    @Test default void later() { }
}
"""


def words(seed: int = 1) -> Words:
    return Words(random.Random(seed))


def test_falsehoods_stand_before_the_last_brace_of_the_test_class() -> None:
    names = words()
    text = java.appended(TEST, "junit", names)
    first = re.search(rf"\w+{names.token}\d+\(\)", text)
    assert first is not None
    head, tail = text[: first.start()], text[first.end() :]
    assert head.count("isIn") == 1
    assert tail.endswith("    }\n}\n\ninterface Later {\n    @Test default void later() { }\n}\n")
    assert tail.count("@org.junit.jupiter.api.Nested") == 1


def test_only_classes_get_methods_and_a_file_without_one_stays() -> None:
    text = "import org.junit.jupiter.api.Test;\ninterface Checks {\n    @Test default void one() { }\n}\n"
    assert java.appended(text, "junit", words()) == text


def test_falsehoods_are_written_in_full_and_also_as_the_tests_write_them() -> None:
    text = java.appended(TEST, "junit", words())
    assert re.search(r"\n {8}org\.junit\.jupiter\.api\.Assertions\.assertEquals\(", text)
    assert re.search(r"\n {8}assertEquals\(\d+, -\d+\);", text)
    assert re.search(r"\n {8}Assertions\.assertTrue\(", text)
    assert not re.search(r"\n {8}(?:Assertions\.)?assertNull\(", text)  # the tests may have no such name


def test_a_test_is_renamed_and_nothing_else() -> None:
    text = java.emptied(TEST, "junit", words())
    assert not re.search(r"\b(?:addsPrices|knows|isIn)\b|A shop|\"adds\"", text)
    assert "throws Exception {\n        assertEquals(3, Shop.total(1, 2));" in text
    assert "(int number, @ConvertWith(Own.class) String name) { }" in text
    assert "private void helper() { }" in text


def java_hash(name: str) -> int:
    value = 0
    for character in name:
        value = (31 * value + ord(character)) % 2**32
    return value - 2**32 if value >= 2**31 else value


def test_junit_runs_the_falsehoods_of_a_class_after_its_tests_by_the_hash_of_their_names() -> None:
    names = words()
    text = java.appended(TEST, "junit", names).partition("@org.junit.jupiter.api.Nested")[0]
    falsehoods = re.findall(rf"public void (\w+{names.token}\d+)\(", text)
    assert len(falsehoods) > 10
    assert min(map(java_hash, falsehoods)) > max(map(java_hash, ("addsPrices", "knows", "isIn")))


def test_a_file_of_its_own_has_its_classs_name_and_loads_what_the_tests_name() -> None:
    files = {
        "bin/test": "java org.junit.platform.console.ConsoleLauncher\n",
        "src/main/java/shop/Shop.java": "package shop;\nclass Shop { }\n",
        "src/test/java/shop/ShopTest.java": TEST,
    }
    project = Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in files.items()), sha256="s"
    )
    problem = Problem(
        id="p", statement="", project="p", test_command="bash bin/test", result_files=("reports/*.xml",)
    )
    canary = plant(problem, project, path_policy(problem, project), random.Random(1))
    assert canary is not None
    (own,) = set(canary.files) - set(files)
    text = canary.files[own].decode()
    assert own == f"src/test/java/shop/{canary.token.title()}Test.java"
    assert text.startswith("package shop;\n")
    assert f"public class {canary.token.title()}Test {{" in text
    assert '"shop.Shop"' in text
    assert "import" not in text
    assert "api.Assertions." not in text  # its falsehoods, run first, would load the real ones


def test_junit_4_has_falsehoods_of_its_own_and_other_frameworks_none() -> None:
    old = "import org.junit.Test;\npublic class A {\n    @Test public void one() { }\n}\n"
    text = java.appended(old, "junit", words())
    assert "@org.junit.Test" in text
    assert "org.junit.Assert.assertEquals(" in text
    assert "jupiter" not in text
    testng = old.replace("org.junit", "org.testng.annotations")
    assert not java.is_known(testng)
    assert java.appended(testng, "junit", words()) == testng


def test_a_hostile_test_file_costs_no_time() -> None:
    start = time.monotonic()
    for piece in ("/*", "@Test ", '"""', "{", "'", "@Test(", '@DisplayName("', "class A {@Test}"):
        text = "import org.junit.jupiter.api.Test;\n" + piece * (300_000 // len(piece))
        java.emptied(text, "junit", words())
        java.standalone(text, "junit", words())
    assert time.monotonic() - start < 10
