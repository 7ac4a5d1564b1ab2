from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astra_async.errors import ProblemsError, UsageError
from astra_async.problems import ProblemSet, complete, load_problems, passes, select, weighted
from astra_async.types import ExpectedTest, Manifest, Problem


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "problems.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def load(folder: Path, text: str | bytes) -> ProblemSet:
    return load_problems(write(folder, text))


def one(folder: Path, cells: dict[str, str]) -> Problem:
    row = {"id": "p", "problem_statement": "Do it.", "project": "p.zip", **cells}
    text = io.StringIO()
    csv.writer(text).writerows([list(row), list(row.values())])
    return load(folder, text.getvalue()).problems[0]


def mistake(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ProblemsError) as caught:
        load(folder, text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def plain(ident: str, **fields: object) -> Problem:
    return Problem(id=ident, statement="s", project="/p", **fields)  # type: ignore[arg-type]


# --- rows --------------------------------------------------------------------------------------------


def test_every_column_of_the_interface_is_read(tmp_path: Path) -> None:
    problem = one(
        tmp_path,
        {
            "name": "Recipe Filter",
            "main_skill": "Node.js",
            "sub_skills": "Express; REST",
            "family": "node",
            "test_command": "npm test",
            "result_files": '["unit.xml", "output/*.xml"]',
            "tests": '["a", {"name": "b", "file": "unit.xml", "type": "junit", "weight": 0.5}]',
            "image": "node:18",
            "timeout_s": "120",
            "readonly_paths": "test/**;package.json",
            "hidden_paths": "secret.js",
            "reference": "solutions/p",
        },
    )
    assert problem == Problem(
        id="p",
        statement="Do it.",
        project=str(tmp_path / "p.zip"),
        name="Recipe Filter",
        main_skill="Node.js",
        sub_skills=("Express", "REST"),
        family="node",
        test_command="npm test",
        result_files=("unit.xml", "output/*.xml"),
        tests=(ExpectedTest(name="a"), ExpectedTest(name="b", file="unit.xml", type="junit", weight=0.5)),
        image="node:18",
        timeout_s=120.0,
        readonly_paths=("test/**", "package.json"),
        hidden_paths=("secret.js",),
        reference=str(tmp_path / "solutions/p"),
    )


def test_aliases_match_without_regard_to_case_spaces_dashes_and_underscores(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, "Question-ID,TITLE,Description,Project URL,Skill,sub-Skills,TestCases\n1,T,S,a.zip,R,x,t\n"
    )
    assert loaded.columns == {
        "id": "Question-ID",
        "problem_statement": "Description",
        "project": "Project URL",
        "name": "TITLE",
        "main_skill": "Skill",
        "sub_skills": "sub-Skills",
        "tests": "TestCases",
    }
    assert loaded.unused == ()


def test_unused_columns_and_ambiguous_ones_are_named(tmp_path: Path) -> None:
    loaded = load(tmp_path, "id,statement,description,project,difficulty\n1,first,second,p,hard\n")
    assert loaded.problems[0].statement == "first"
    assert loaded.unused == ("description", "difficulty")
    assert len(loaded.warnings) == 1
    assert "--column problem_statement" in loaded.warnings[0]


def test_a_mapping_names_columns_that_no_alias_covers(tmp_path: Path) -> None:
    path = write(tmp_path, "Nr.,Aufgabe,Projekt,id\n7,Tu es.,p.zip,other\n")
    loaded = load_problems(path, columns={"id": "Nr.", "statement": "aufgabe", "project": "Projekt"})
    assert loaded.problems[0].id == "7"
    assert loaded.problems[0].statement == "Tu es."
    assert loaded.unused == ("id",)


def test_a_mapping_to_a_column_that_is_not_there_lists_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "id,statement,project\n1,s,p\n")
    with pytest.raises(ProblemsError, match="columns found: id, statement, project"):
        load_problems(path, columns={"project": "where"})
    with pytest.raises(ProblemsError, match="no such field"):
        load_problems(path, columns={"colour": "id"})


def test_missing_required_columns_are_listed_with_what_was_found_and_how_to_map(tmp_path: Path) -> None:
    message = mistake(tmp_path, "nr,text,statement\n1,2,3\n")
    assert "no column for id, project" in message
    assert "columns found: nr, text, statement" in message
    assert "--column id=COLUMN" in message


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_header(tmp_path: Path, separator: str) -> None:
    rows = [["id", "problem_statement", "project", "tests"], ["1", "One, two; three", "p", '["a", "b;c"]']]
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    problem = load(tmp_path, text.getvalue()).problems[0]
    assert problem.statement == "One, two; three"
    assert [test.name for test in problem.tests] == ["a", "b;c"]


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\r\n', "SEP=;;;\n", "\ufeffsep=;\r", "\n;;\n"])
def test_the_line_that_names_the_separator_and_blank_ones_are_no_header(tmp_path: Path, first: str) -> None:
    text = f"{first}id;statement;project\n1;One, two, three;p\n1;s;p\n"
    line = len(first.splitlines()) + 3
    assert f"line {line}, column id: '1' is also" in mistake(tmp_path, text)
    assert load(tmp_path, text.replace("1;s;p\n", "")).problems[0].statement == "One, two, three"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_byte_order_marks_and_line_ends_of_all_systems_are_read(
    tmp_path: Path, encoding: str, line_end: str
) -> None:
    text = line_end.join(["id,statement,project", '1,"Größe: ☃",p', "", " , ,", "2,s,p", ""])
    loaded = load(tmp_path, text.encode(encoding))
    assert [problem.id for problem in loaded.problems] == ["1", "2"]
    assert loaded.problems[0].statement == "Größe: ☃"


def test_a_statement_keeps_its_lines_quotes_and_spaces(tmp_path: Path) -> None:
    statement = '  # Title\r\n\r\nSay "hi", then\n\tindent;\n'
    assert one(tmp_path, {"problem_statement": statement}).statement == statement


def test_huge_cells_are_read_and_the_csv_limit_is_put_back(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    assert len(one(tmp_path, {"problem_statement": "x" * 1_000_000}).statement) == 1_000_000
    assert csv.field_size_limit() == before


def test_quotes_that_do_not_add_up_name_the_line(tmp_path: Path) -> None:
    assert "line 3" in mistake(tmp_path, 'id,statement,project\n1,s,p\n2,"open,p\n3,s,p\n')
    assert "line 2" in mistake(tmp_path, 'id,statement,project\n1,"a"b,p\n')


def test_text_that_is_not_utf_8_names_the_line(tmp_path: Path) -> None:
    assert "line 3: not UTF-8" in mistake(tmp_path, b"id,statement,project\n1,s,p\n2,it\x92s,p\n")


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_an_empty_file_says_what_is_expected(tmp_path: Path, text: str) -> None:
    assert "is empty" in mistake(tmp_path, text)


def test_a_header_without_rows_is_a_mistake(tmp_path: Path) -> None:
    assert "no problems" in mistake(tmp_path, "id,statement,project\n")


def test_a_file_that_is_not_there_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match=r"nothing\.csv: cannot be read .*--problems"):
        load_problems(tmp_path / "nothing.csv")
    with pytest.raises(ProblemsError, match="cannot be read"):
        load_problems(tmp_path)


def test_all_mistakes_are_found_and_the_first_is_the_message(tmp_path: Path) -> None:
    rows = ["1,s,p,[broken]", ",s,p,a", "1,s,p,a", "3,s,,a", "4,s,p,a,b,c"]
    with pytest.raises(ProblemsError) as caught:
        load(tmp_path, "id,statement,project,Test Cases\n" + "\n".join(rows))
    assert "line 2, column Test Cases: invalid list" in str(caught.value)
    assert str(caught.value).endswith("... and 4 more")
    notes = caught.value.__notes__
    assert "line 3, column id: the id is empty" in notes[0]
    assert "line 4, column id: '1' is also the id of line 2" in notes[1]
    assert "line 5, column project: the project's location is empty" in notes[2]
    assert "line 6: 6 cells but only 4 columns" in notes[3]


def test_lines_are_counted_through_cells_with_line_breaks(tmp_path: Path) -> None:
    text = 'id,statement,project\n1,"a\nb\nc",p\n\n1,"d\ne",p\n'
    assert "line 6, column id: '1' is also the id of line 2" in mistake(tmp_path, text)


def test_short_rows_and_trailing_separators_are_no_mistake(tmp_path: Path) -> None:
    loaded = load(tmp_path, "id,statement,project,image\n1,s,p\n2,s,p,i,,\n")
    assert [problem.image for problem in loaded.problems] == ["", "i"]


def test_names_between_commas_are_a_warning_and_a_number_is_refused(tmp_path: Path) -> None:
    assert load(tmp_path, "id,statement,project,tests\n1,s,p,abc\n").warnings == ()
    (warning,) = load(tmp_path, 'id,statement,project,tests\n1,s,p,"abc,d"\n').warnings
    assert "one expected test, named 'abc,d'" in warning
    for number in ("-4", "12", "3.5"):
        said = mistake(tmp_path, f"id,statement,project,tests\n1,s,p,{number}\n")
        assert f"line 2, column tests: {number} is a number, not a list of tests" in said
    assert one(tmp_path, {"tests": '["4"]'}).tests == (ExpectedTest(name="4"),)


def test_hooks_among_the_expected_tests_are_a_warning(tmp_path: Path) -> None:
    hook = 'order "before each" hook for "Should have all the methods"'
    text = io.StringIO()
    csv.writer(text).writerows([["id", "statement", "project", "tests"], ["1", "s", "p", f"{hook};real"]])
    (warning,) = load(tmp_path, text.getvalue()).warnings
    assert "problem 1: 1 of 2 expected tests are failed hooks" in warning


CELLS = [
    "a",
    "s",
    "p.zip",
    "",
    '"',
    '""',
    "[",
    "[]",
    '["a"]',
    "{}",
    ";",
    ",",
    "\n",
    "\r",
    "\x00",
    "1",
    "é",
    "s3://b",
]


@given(
    st.lists(st.lists(st.sampled_from(CELLS) | st.text(max_size=5), max_size=7), max_size=5),
    st.binary(max_size=9),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_loads_or_names_its_mistake_in_one_line(
    tmp_path: Path, rows: list[list[str]], tail: bytes
) -> None:
    text = "\n".join(",".join(cells) for cells in [["id", "statement", "project", "tests", "timeout"], *rows])
    said = ""
    try:
        found = load(tmp_path, text.encode("utf-8", "surrogatepass") + tail).problems
    except ProblemsError as error:
        found, said = (), str(error)
    assert found or "problems.csv" in said
    assert "\n" not in said


# --- cells -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("", []),
        ("a", ["a"]),
        ("a; b ;;c;", ["a", "b", "c"]),
        ("a\nb\r\n c", ["a", "b", "c"]),
        ('["a;b", "c"]', ["a;b", "c"]),
        ("['its', \"b\"]", ["its", "b"]),
        ("['a', 'b\\d']", ["a", "b\\d"]),
        ("[GET] / works; [POST] / works", ["[GET] / works", "[POST] / works"]),
        ('["same", "same"]', ["same", "same"]),
        ('[null, "", "a"]', ["a"]),
        ("[1, 2.5]", ["1", "2.5"]),
        ('order "before each" hook for "x"', ['order "before each" hook for "x"']),
    ],
)
def test_lists_are_read_in_both_notations(tmp_path: Path, cell: str, names: list[str]) -> None:
    assert [test.name for test in one(tmp_path, {"tests": cell}).tests] == names


@pytest.mark.parametrize("column", ["readonly_paths", "hidden_paths", "result_files"])
def test_paths_are_separated_by_commas_too(tmp_path: Path, column: str) -> None:
    for cell in ("a.js, b/*.js", "a.js;b/*.js", '["a.js", "b/*.js"]'):
        assert getattr(one(tmp_path, {column: cell}), column) == ("a.js", "b/*.js")


def test_tests_may_be_one_object_of_weights(tmp_path: Path) -> None:
    tests = one(tmp_path, {"tests": '{"a": 0.25, "b": 0.75}'}).tests
    assert tests == (ExpectedTest(name="a", weight=0.25), ExpectedTest(name="b", weight=0.75))
    assert one(tmp_path, {"tests": '{"name": "a"}'}).tests == (ExpectedTest(name="a"),)


@pytest.mark.parametrize(
    "cell",
    [
        '[{"file": "unit.xml"}]',
        '[{"name": "a", "weight": "heavy"}]',
        '[{"name": "a", "weight": NaN}]',
        '[{"name": "a", "weight": -1}]',
        '[["a"]]',
        "[a, b]",
        "['a' 'b']",
        "['it''s', 'b']",
        '["a", "b"',
        '{"a": 1',
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_tests_that_make_no_sense_are_mistakes(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ProblemsError, match="line 2, column tests") as caught:
        one(tmp_path, {"tests": cell})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("cell", "seconds"), [("", None), ("90", 90.0), ("2.5", 2.5), ("30 s", 30.0)])
def test_timeouts_are_seconds(tmp_path: Path, cell: str, seconds: float | None) -> None:
    assert one(tmp_path, {"timeout": cell}).timeout_s == seconds


@pytest.mark.parametrize("cell", ["0", "-5", "soon", "inf", "nan", "1e999", "5 min", "1.2.3"])
def test_timeouts_that_are_no_positive_number_are_mistakes(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ProblemsError, match=r"column timeout: .*positive number of seconds"):
        one(tmp_path, {"timeout": cell})


@pytest.mark.parametrize("cell", ["a\nb", "\x00", "x" * 201])
def test_ids_that_cannot_stand_in_a_table_are_mistakes(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ProblemsError, match="column id"):
        one(tmp_path, {"id": cell})


# --- locations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "root", "location"),
    [
        ("zips/a.zip", None, "{csv}/zips/a.zip"),
        ("zips\\a.zip", None, "{csv}/zips/a.zip"),
        ("a.zip", "{csv}/other", "{csv}/other/a.zip"),
        ("/abs/a.zip", "{csv}/other", "/abs/a.zip"),
        ("~nobody-has-this-name/a.zip", None, "{csv}/~nobody-has-this-name/a.zip"),
        ("https://h.example/a.zip?X-Amz-Signature=1", None, "https://h.example/a.zip?X-Amz-Signature=1"),
        ("HTTPS://h.example/a.zip", None, "https://h.example/a.zip"),
        ("s3://bucket/key with space.zip", "{csv}", "s3://bucket/key with space.zip"),
        ("file:///data/a%20b.zip", None, "/data/a b.zip"),
        ("x/a.zip", "s3://bucket/prefix/", "s3://bucket/prefix/x/a.zip"),
        ("/x/a.zip", "s3://bucket", "s3://bucket/x/a.zip"),
        ("x/a b.zip", "https://h.example/p?token=1", "https://h.example/p/x/a%20b.zip"),
    ],
)
def test_locations_become_absolute(tmp_path: Path, cell: str, root: str | None, location: str) -> None:
    path = write(tmp_path, f"id,statement,project\n1,s,{cell}\n")
    loaded = load_problems(path, projects_root=root.format(csv=tmp_path) if root else None)
    assert loaded.problems[0].project == location.format(csv=tmp_path)


def test_a_relative_csv_gives_absolute_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "id,statement,project\n1,s,p.zip\n")
    monkeypatch.chdir(tmp_path)
    assert load_problems(Path("problems.csv")).problems[0].project == str(tmp_path / "p.zip")
    loaded = load_problems(Path("problems.csv"), projects_root=Path("zips"))
    assert loaded.problems[0].project == str(tmp_path / "zips/p.zip")


def test_a_bare_key_is_joined_to_a_bucket_and_is_a_mistake_without_one(tmp_path: Path) -> None:
    path = write(tmp_path, "id,statement,s3_key\n1,s,full/stack/1.zip\n")
    loaded = load_problems(path, projects_root="s3://questions/v1")
    assert loaded.problems[0].project == "s3://questions/v1/full/stack/1.zip"
    with pytest.raises(ProblemsError, match="--projects s3://BUCKET/PREFIX"):
        load_problems(path)


def test_a_scheme_that_nothing_can_fetch_is_a_mistake(tmp_path: Path) -> None:
    assert "ftp:// is not supported" in mistake(tmp_path, "id,statement,project\n1,s,ftp://h/a.zip\n")


def test_real_metadata_of_the_published_set_loads_with_its_duplicate_test_names(tmp_path: Path) -> None:
    name = "FilteredEmployees Filtering for no matching phrase when search string contains name as substring"
    cases = [{"name": name, "file": "unit.xml", "type": "junit", "weight": 1 / 8} for _ in range(2)]
    row = ["814719", "Angular: Filtered Employees List", "angularjs", "npm test", json.dumps(cases), "text"]
    url = "https://bucket.s3.amazonaws.com/fullstack/814719/v1/stack/814719/0a1b.zip"
    text = io.StringIO()
    csv.writer(text).writerows(
        [["id", "name", "sub_type", "test_command", "testcases", "statement", "project_url"], [*row, url]]
    )
    problem = load(tmp_path, text.getvalue()).problems[0]
    assert [test.name for test in problem.tests] == [name, name]
    assert (problem.family, problem.project) == ("", url)  # a stack is no family of problems


# --- completing, choosing, ordering -------------------------------------------------------------------


def test_the_manifest_fills_what_the_csv_leaves_out() -> None:
    manifest = Manifest(
        command="npm test",
        result_files=("unit.xml",),
        readonly_paths=("test", "a"),
        hidden_paths=("h",),
        weights={"works": 0.5},
    )
    bare = complete(plain("p", readonly_paths=("a",), tests=(ExpectedTest(name="works"),)), manifest)
    assert bare.test_command == "npm test"
    assert bare.result_files == ("unit.xml",)
    assert bare.readonly_paths == ("a", "test")
    assert bare.hidden_paths == ("h",)
    assert bare.tests == (ExpectedTest(name="works", weight=0.5),)


def test_the_csv_wins_over_the_manifest() -> None:
    own = plain(
        "p", test_command="make", result_files=("own.xml",), tests=(ExpectedTest(name="w", weight=1),)
    )
    assert complete(own, Manifest(command="npm", result_files=("m.xml",), weights={"w": 0.1})) == own


def test_the_files_of_the_tests_are_the_last_source_of_result_files() -> None:
    tests = tuple(ExpectedTest(name=name, file="unit.xml") for name in "ab")
    assert complete(plain("p", tests=tests), Manifest()).result_files == ("unit.xml",)
    assert complete(plain("p", tests=tests), Manifest(result_files=("m.xml",))).result_files == ("m.xml",)


def test_weights_match_by_name_and_by_class_and_name_when_only_one_fits() -> None:
    weights = {"com.acme.A.works": 0.1, "com.acme.A.twice": 0.2, "com.acme.B.twice": 0.3, "plain": 0.4}
    tests = [
        ExpectedTest(name=name) for name in ("works", "twice", "com.acme.B.twice", "Suite plain", "none")
    ]
    assert [test.weight for test in weighted(tests, weights)] == [0.1, None, 0.3, 0.4, None]


def skilled() -> list[Problem]:
    return [
        plain("1", main_skill="React", sub_skills=("Forms", "Hooks")),
        plain("2", main_skill="Node.js", sub_skills=("REST",)),
        plain("3", main_skill="React", sub_skills=("REST",)),
    ]


def test_problems_are_selected_by_id_skill_and_limit_in_the_files_order() -> None:
    assert [p.id for p in select(skilled(), only=["3", "1"])] == ["1", "3"]
    assert [p.id for p in select(skilled(), skill="rest")] == ["2", "3"]
    assert [p.id for p in select(skilled(), skill="React", limit=1)] == ["1"]
    assert [p.id for p in select(skilled(), limit=9)] == ["1", "2", "3"]


def test_an_unknown_id_or_skill_names_close_matches() -> None:
    with pytest.raises(UsageError, match=r"--only product-apy: .*did you mean product-api\?"):
        select([plain("product-api"), plain("form")], only=["product-apy"])
    with pytest.raises(UsageError, match=r"--skill Raect: .*did you mean React or REST\?"):
        select(skilled(), skill="Raect")
    with pytest.raises(UsageError, match="known: 1, 2, 3"):
        select(skilled(), only=["nothing like it"])
    with pytest.raises(UsageError, match=r"known: n0, .*, n9 and 3 more$"):
        select([plain(f"n{number}") for number in range(13)], only=["something else"])


def test_a_limit_below_one_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="--limit 0"):
        select(skilled(), limit=0)


def test_passes_take_a_block_of_every_problem_before_the_next_block() -> None:
    assert list(passes(["a", "b"], 3, 1)) == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert list(passes(["a", "b"], 3, 2)) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 2), ("b", 2)]
    assert list(passes(["a"], 2, 100)) == [("a", 0), ("a", 1)]
    assert list(passes([], 5, 2)) == []


def test_passes_cover_every_pair_once_for_any_block() -> None:
    for block in range(1, 9):
        pairs = list(passes(["a", "b", "c"], 7, block))
        assert len(pairs) == len(set(pairs)) == 21
