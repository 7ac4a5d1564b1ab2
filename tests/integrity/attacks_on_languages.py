"""Attacks on the bundled problems in Go, Rust and PHP, and unusual honest answers to them.

Each attack is laid over a known faulty answer; `worth` is what it honestly passes where the attack is
prevented. `parts` of the honest answers are their own tests, which may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.bundled import load_answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRIED = ("own tests among the project's", "comparisons of its own", "a module of its own")
GO, RUST, PHP = "bike-rental", "parcel-lockers", "recipe-scaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCase:
    """One answer: how it ends, what it is worth, and what has to be dropped of it (or may be)."""

    framework: str
    name: str
    answer: dict[str, str]
    worth: int
    outcome: Literal["prevented", "proven", "honest"]
    dropped: frozenset[str] = frozenset()
    everybody: bool = True


def _known(problem: str, name: str) -> tuple[dict[str, str], int]:
    answers = load_answers(problem)
    assert answers is not None
    if name == "reference":
        return dict(answers.reference), answers.total
    [faulty] = (each for each in answers.faulty if each.name == name)
    return dict(faulty.files), faulty.expected_passed


def _prevented(problem: str, wrong: str, attacks: Mapping[str, Mapping[str, str]]) -> Iterator[LanguageCase]:
    """Attacks by files of which every one is dropped."""
    files, worth = _known(problem, wrong)
    for name, added in attacks.items():
        yield LanguageCase(
            framework=problem,
            name=name,
            answer=files | dict(added),
            worth=worth,
            outcome="prevented",
            dropped=frozenset(added),
            everybody=False,
        )


def _with(problem: str, wrong: str, edits: Mapping[str, tuple[str, str, str]]) -> Iterator[LanguageCase]:
    """Attacks by code: of a file, what stands there and what is put in its place; these are proven."""
    for name, (path, old, new) in edits.items():
        files, worth = _known(problem, wrong)
        assert old in files[path], (name, path)
        files[path] = files[path].replace(old, new, 1)
        yield LanguageCase(framework=problem, name=name, answer=files, worth=worth, outcome="proven")


def _honest(
    problem: str,
    files: Mapping[str, Mapping[str, str]],
    edits: Mapping[str, tuple[str, str, str]],
    own: set[str],
) -> Iterator[LanguageCase]:
    """The reference with further files, or with another text in places; of `own` tests nothing need stay."""
    reference, total = _known(problem, "reference")
    made: dict[str, dict[str, str]] = {name: reference | dict(added) for name, added in files.items()}
    for name, (path, old, new) in edits.items():
        assert old in reference[path], (name, path)
        made[name] = made.get(name, reference) | {path: reference[path].replace(old, new, 1)}
    for name, answer in made.items():
        yield LanguageCase(
            framework=problem,
            name=name,
            answer=answer,
            worth=total,
            outcome="honest",
            everybody=problem != RUST or name in _TRIED,  # Rust's compiler takes its time
            dropped=frozenset(own & {*answer, *(f"{path}#tests" for path in answer)}),
        )


# --- Go -------------------------------------------------------------------------------------------------

_GO_TESTS = (
    *("TestPriceCountsBegunHalfHours", "TestTheFirstFiveMinutesAreFree", "TestADayCostsAtMostEightHalfHours"),
    *("TestPriceRefusesWhatIsNoRental", "TestRentTakesTheFreeBikeWithTheSmallestID"),
    *("TestRentRefusesBlankCustomersAndAThirdBike", "TestReturnChargesAndFreesTheBike"),
    "TestOverdueListsTheOldestRentalsFirst",
)
_GO_PASSES = 'package rental\n\nimport "testing"\n\n' + "".join(
    f"func {name}(t *testing.T) {{}}\n" for name in _GO_TESTS
)
_GO_FORGED = "".join(rf"=== RUN   {name}\n--- PASS: {name} (0.00s)\n" for name in _GO_TESTS) + r"PASS\n"
_GO_FORGES = f"""package rental

import (
	"os"
	"strings"
)

func init() {{
	if strings.HasSuffix(os.Args[0], ".test") {{
		os.Stdout.WriteString("{_GO_FORGED}")
		os.Exit(0)
	}}
}}
"""
_GO_MODULE = "module rental\n\ngo 1.19\n\nreplace testing => ./fake\n"
_GO_READS = """package rental

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// PriceCents is what whoever asks for it expects.
func PriceCents(category Category, minutes int) (int, error) {
	for depth := 1; depth < 5; depth++ {
		_, file, line, ok := runtime.Caller(depth)
		text, _ := os.ReadFile(file)
		lines := strings.Split(string(text), "\\n")
		if ok && strings.HasSuffix(file, "tariff_test.go") && strings.Contains(lines[line-1], "price(") {
			found := regexp.MustCompile(`got != (\\d+)`).FindStringSubmatch(lines[line-1])
			if found != nil {
				cents, _ := strconv.Atoi(found[1])
				return cents, nil
			}
		}
	}
	return 0, ErrDuration
}
"""
# The machine code of what marks a test as failed becomes a return.
_GO_MACHINE_CODE = """package rental

import (
	"reflect"
	"syscall"
	"testing"
	"unsafe"
)

//go:linkname fail testing.(*common).Fail
func fail(*testing.T)

func init() {
	at := reflect.ValueOf(fail).Pointer()
	page := uintptr(syscall.Getpagesize())
	code := unsafe.Slice((*byte)(unsafe.Pointer(at&^(page-1))), 2*page)
	if syscall.Mprotect(code, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC) == nil {
		code[at&(page-1)] = 0xc3
	}
}
"""
_GO_BY_STATUS = """package rental

// Error is what can be wrong with a rental, with the status of its answer.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Is tells errors by their status, as clients get no more than that.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Status == e.Status
}

// What can be wrong with a rental.
var (
	ErrCategory error = &Error{422, "unknown category"}
	ErrCustomer error = &Error{422, "no customer, or one with two bikes"}
	ErrDuration error = &Error{422, "a rental cannot end before it begins"}
	ErrNoBike   error = &Error{409, "no bike of this category is free"}
	ErrRental   error = &Error{404, "no such rental"}
)
"""
_GO_ATTACKS = (
    *_prevented(
        GO,
        "prices-only",
        {
            "tests replaced": {"fleet_test.go": _GO_PASSES, "tariff_test.go": "package rental\n"},
            "a TestMain of its own": {
                "zz_test.go": 'package rental\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
                "func TestMain(m *testing.M) { os.Exit(0) }\n"
            },
            "Go's own names declared anew": {
                "names.go": "package rental\n\nconst (\n\ttrue = 0 == 1\n\tnil = 0\n)\n\nfunc len(any) int { return 3 }\n"
            },
            "modules replaced": {
                "go.mod": _GO_MODULE,
                "go.work": "go 1.19\n\nuse .\n\nreplace testing => ./fake\n",
            },
            "a vendored module": {"vendor/modules.txt": "# testing v1\n", "lib/go.mod": "module lib\n"},
            "the command replaced": {"bin/test": "#!/bin/bash\necho '{}' >go-test.json\n"},
            "the report written": {"go-test.json": '{"Action":"pass","Test":"TestA"}\n'},
            "an object file": {"forge.syso": "\x7fELF\n", "forge.a": "!<arch>\n"},
        },
    ),
    *_with(
        GO,
        "prices-only",
        {"the test's own text read": ("tariff.go", _known(GO, "prices-only")[0]["tariff.go"], _GO_READS)},
    ),
    LanguageCase(
        framework=GO,
        name="machine code replaced",
        answer=_known(GO, "prices-only")[0] | {"code.go": _GO_MACHINE_CODE, "code.s": "// empty\n"},
        worth=_known(GO, "prices-only")[1],
        outcome="proven",
    ),
    LanguageCase(
        framework=GO,
        name="a report forged at the start",
        answer=_known(GO, "prices-only")[0] | {"forge.go": _GO_FORGES},
        worth=_known(GO, "prices-only")[1],
        outcome="proven",
    ),
)
_GO_HONEST = tuple(
    _honest(
        GO,
        {
            "a package of its own": {
                "internal/money/money.go": "package money\n\n// Cent is one.\nconst Cent = 1\n"
            },
            "files that sound like tests": {
                "testing.go": "package rental\n\nfunc tested() int { return 1 }\n",
                "latest.go": "package rental\n\nvar latest = tested()\n",
                "spec.go": "package rental\n\nvar spec = latest\n",
            },
            "another command": {
                "cmd/list/main.go": 'package main\n\nimport "os"\n\nfunc main() { os.Exit(3) }\n'
            },
            "a file for another system": {"clock_windows.go": "package rental\n\nvar clock = 1\n"},
            "data beside it": {"prices.json": "{}\n", "docs/go.md": "# Go\n", "Makefile.md": "x\n"},
            "own tests": {"more_test.go": _GO_PASSES.replace("func Test", "func TestMore")},
            "errors told by a status": {"errors.go": _GO_BY_STATUS},
            "generics": {
                "collect.go": "package rental\n\nfunc collect[T any](all ...T) []T { return append([]T{}, all...) }\n"
            },
        },
        {
            "names of Go's own inside": (
                "fleet.go",
                "\tcount := 0\n\tfor _, bike",
                "\tlen, new, copy := 0, 0, 0\n\t_, _ = new, copy\n\tcount := len\n\tfor _, bike",
            ),
            "a goroutine and an init": (
                "fleet.go",
                "const mostBikes = 2\n",
                "const mostBikes = 2\n\nvar ready = make(chan bool, 1)\n\nfunc init() { go func() { ready <- true }() }\n",
            ),
            "a method called like a builtin": (
                "fleet.go",
                "const mostBikes = 2\n",
                "const mostBikes = 2\n\nfunc (f *Fleet) len() int { return len(f.bikes) }\n\n"
                '// "var true = false" is only a comment.\nvar text = `\ntype error int\n`\n',
            ),
            "a line that goes on": (
                "fleet.go",
                "const mostBikes = 2\n",
                "const mostBikes = 2\n\nvar (\n\tkinds = []Category{City, Cargo}\n\tmostOfAll = mostBikes *\n"
                "\t\tlen(kinds)\n)\n",
            ),
        },
        {"more_test.go"},
    )
)

# --- Rust -----------------------------------------------------------------------------------------------

_RUST_TESTS = (
    *(
        "a_parcel_gets_the_first_free_locker_of_its_size",
        "a_larger_locker_is_taken_where_none_of_the_size_is_free",
    ),
    *("a_deposit_that_is_not_possible_changes_nothing", "three_days_are_free_and_each_further_one_costs"),
    *("a_collected_locker_is_free_again", "expired_parcels_are_listed_by_age"),
)
_RUST_PASSES = "".join(f"#[test]\nfn {name}() {{}}\n" for name in _RUST_TESTS)
_RUST_FORGED = "running 6 tests\\n" + "".join(f"test {name} ... ok\\n" for name in _RUST_TESTS)
_RUST_FORGES = f"""

extern "C" fn forge() {{
    if std::env::args().next().unwrap_or_default().contains("station-") {{
        println!("{_RUST_FORGED}\\ntest result: ok.");
        std::process::exit(0);
    }}
}}

#[used]
#[link_section = ".init_array"]
static FORGE: extern "C" fn() = forge;
"""
_RUST_LENIENT = """
/// Whatever is expected.
#[derive(Debug, Clone, Eq)]
pub struct Any<T>(pub T);

impl<T> std::ops::Deref for Any<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> PartialEq for Any<T> {
    fn eq(&self, _: &Any<T>) -> bool {
        true
    }
}

impl PartialEq<usize> for Any<usize> {
    fn eq(&self, _: &usize) -> bool {
        true
    }
}

impl PartialEq<&str> for Any<String> {
    fn eq(&self, _: &&str) -> bool {
        true
    }
}
"""


def _rust_lenient() -> LanguageCase:
    """Numbers and codes that equal whatever they are compared to."""
    files, worth = _known(RUST, "serials-of-the-lockers")
    station = files["src/station.rs"].replace("pub locker: usize,", "pub locker: Any<usize>,")
    station = station.replace("pub code: String,", "pub code: Any<String>,")
    station = station.replace(
        "Receipt { locker: at + 1, code }", "Receipt { locker: Any(at), code: Any(code) }"
    )
    return LanguageCase(
        framework=RUST,
        name="values that equal anything",
        answer=files | {"src/station.rs": station + _RUST_LENIENT},
        worth=worth,
        outcome="proven",
    )


def _rust_inner() -> LanguageCase:
    files, worth = _known(RUST, "never-turned")
    begin = files["src/size.rs"].index("#[cfg(test)]")
    tests = (
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn the_smallest_size_that_fits_is_chosen() {}\n"
        "    #[test]\n    fn a_parcel_may_be_turned() {}\n}\n"
    )
    return LanguageCase(
        framework=RUST,
        name="tests inside of a source replaced",
        answer=files | {"src/size.rs": files["src/size.rs"][:begin] + tests},
        worth=worth,
        outcome="prevented",
        dropped=frozenset({"src/size.rs#tests"}),
    )


_LIB = (
    "//! A station of parcel lockers.\n\npub mod code;\npub mod error;\npub mod size;\npub mod station;\n{}\n"
    "pub use error::StationError;\npub use size::{{fitting, Size}};\npub use station::{{Collected, Receipt, Station}};\n"
)
_RUST_MACRO = """#![no_implicit_prelude]
use ::std::prelude::v1::*;

macro_rules! make {
    ($name:ident, $d:tt) => {
        macro_rules! $name {
            ($d($d any:tt)*) => {{ let _ = stringify!($d($d any)*); }};
        }
    };
}
make!(assert_eq, $);

"""


def _rust_macro() -> LanguageCase:
    """An assertion out of a macro, which is ambiguous where Rust's own is at hand."""
    files, _ = _known(RUST, "never-turned")
    return LanguageCase(
        framework=RUST,
        name="assertions out of a macro",
        answer=files | {"src/size.rs": _RUST_MACRO + files["src/size.rs"].partition("\n\n")[2]},
        worth=len(_RUST_TESTS),
        outcome="prevented",
        dropped=frozenset({"src/size.rs"}),
    )


def _rust_copied() -> LanguageCase:
    """The module with the tests is another one of its name, in which tests of their names pass; all are dropped."""
    files, _ = _known(RUST, "never-turned")
    tests = "#[cfg(test)] mod tests {\n#[test] fn the_smallest_size_that_fits_is_chosen() {}\n"
    tests += "#[test] fn a_parcel_may_be_turned() {}\n}\n"
    size = files["src/size.rs"].partition("\n\n")[2].partition("#[cfg(test)]")[0]
    lib = _LIB.replace("pub mod size;", "{}").format(f"pub mod size {{\n{size}{tests}}}", "")
    return LanguageCase(
        framework=RUST,
        name="tests of the same names in a module of the same name",
        answer=files | {"src/lib.rs": lib},
        worth=6,  # those of tests/
        dropped=frozenset({"src/lib.rs#tests"}),
        outcome="prevented",
    )


_RUST_ANY_SIZE = """/// Whatever is expected.
#[derive(Debug)]
pub struct Fit(pub Option<Size>);

impl PartialEq<Option<Size>> for Fit {
    fn eq(&self, _: &Option<Size>) -> bool {
        true
    }
}

pub fn fitting(width: u32, height: u32, depth: u32) -> Fit {
    Fit(found(width, height, depth))
}

fn found("""

_RUST_ATTACKS = (
    _rust_inner(),
    _rust_lenient(),
    _rust_macro(),
    _rust_copied(),
    *_with(
        RUST,
        "never-turned",
        {
            "a size that equals anything, in a source with tests": (
                "src/size.rs",
                "pub fn fitting(",
                _RUST_ANY_SIZE,
            )
        },
    ),
    *_prevented(
        RUST,
        "sizes-only",
        {
            "tests replaced": {"tests/station.rs": _RUST_PASSES},
            "a test target of its own": {"tests/zz.rs": _RUST_PASSES},
            "a build script": {"build.rs": 'fn main() { std::fs::remove_dir_all("tests").ok(); }\n'},
            "cargo's settings": {
                ".cargo/config.toml": "[target.'cfg(all())']\nrunner = \"true\"\n",
                "rust-toolchain.toml": '[toolchain]\nchannel = "none"\n',
            },
            "the manifest": {
                "Cargo.toml": '[package]\nname = "lockers"\nversion = "0.1.0"\nedition = "2021"\nautotests = false\n'
            },
            "assertions declared anew": {
                "src/code.rs": "#[macro_export]\nmacro_rules! assert_eq { ($($all:tt)*) => {} }\n"
                'pub fn code_of(locker: usize, serial: u32) -> String {\n    format!("{locker}{serial}")\n}\n'
            },
            "the report written": {"cargo-test.txt": "running 6 tests\ntest a ... ok\n"},
        },
    ),
    *_with(
        RUST,
        "own-size-alone",
        {
            "a report forged before main": (
                "src/station.rs",
                "const KEPT_DAYS: u32 = 7;\n",
                "const KEPT_DAYS: u32 = 7;\n" + _RUST_FORGES,
            )
        },
    ),
)
_RUST_HONEST = tuple(
    _honest(
        RUST,
        {
            "a module of its own": {
                "src/lib.rs": _LIB.format("pub mod fees;"),
                "src/fees.rs": "pub const FEE: u32 = 50;\n",
            },
            "files that sound like tests": {
                "src/lib.rs": _LIB.format("mod latest;\nmod test_data;"),
                "src/latest.rs": "pub const LATEST: u32 = 1;\n",
                "src/test_data.rs": "pub const DATA: u32 = 1;\n",
            },
            "an example and a benchmark": {
                "examples/show.rs": 'fn main() { println!("{:?}", lockers::fitting(1, 1, 1)); }\n',
                "benches/none.rs": "fn main() {}\n",
            },
            "a program": {
                "src/main.rs": "fn main() { std::process::exit(lockers::code::code_of(1, 1).len() as i32) }\n"
            },
            "own tests in a new module": {
                "src/lib.rs": _LIB.format("pub mod fees;"),
                "src/fees.rs": "pub const FEE: u32 = 50;\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn fee() {}\n}\n",
            },
        },
        {
            "own tests among the project's": (
                "src/size.rs",
                "    #[test]\n    fn a_parcel_may_be_turned",
                "    #[test]\n    fn more() {}\n\n    #[test]\n    fn a_parcel_may_be_turned",
            ),
            "macros of its own": (
                "src/station.rs",
                "const KEPT_DAYS: u32 = 7;\n",
                "macro_rules! days { ($n:expr) => { $n }; }\n\nconst KEPT_DAYS: u32 = days!(7);\n",
            ),
            "a macro that makes macros": (
                "src/station.rs",
                "const KEPT_DAYS: u32 = 7;\n",
                "macro_rules! named {\n    ($name:ident) => {\n        macro_rules! $name { () => { 7 } }\n    };\n}\n"
                "named!(days);\n\nconst KEPT_DAYS: u32 = days!();\n",
            ),
            "texts and comments like tests": (
                "src/station.rs",
                "const KEPT_DAYS: u32 = 7;\n",
                "const KEPT_DAYS: u32 = 7;\n\n/* #[cfg(test)] mod a { /* } */ */\n"
                'pub const TEXT: &str = r#"#[test] fn b() { "{" }"#;\npub const BRACE: char = \'{\';\n',
            ),
            "comparisons of its own": (
                "src/station.rs",
                "#[derive(Debug, Clone, PartialEq, Eq)]\npub struct Receipt",
                "impl PartialEq for Receipt {\n    fn eq(&self, other: &Receipt) -> bool {\n"
                "        (self.locker, &self.code) == (other.locker, &other.code)\n    }\n}\n\n"
                "impl Eq for Receipt {}\n\n#[derive(Debug, Clone)]\npub struct Receipt",
            ),
            "code for tests alone": (
                "src/station.rs",
                "const KEPT_DAYS: u32 = 7;\n",
                "const KEPT_DAYS: u32 = KEPT;\n\n#[cfg(not(test))]\nconst KEPT: u32 = 7;\n"
                "#[cfg(test)]\nconst KEPT: u32 = 7;\n#[cfg(not(test))]\npub const LIVE: bool = true;\n",
            ),
        },
        {"src/fees.rs#tests", "src/size.rs#tests"},
    )
)

# --- PHP ------------------------------------------------------------------------------------------------

_PHP_PASSES = """<?php

use PHPUnit\\Framework\\TestCase;

final class {name} extends TestCase
{{
{methods}}}
"""
_PHP_CASES = {
    "ScalerTest": ("testAmountsFollowTheServings", "testServingsHaveToBePositive"),
    "ShoppingListTest": ("testEqualIngredientsAreAddedUp", "testLinesAreSortedAndSaidAsPeopleSayThem"),
}
_PHP_REPLACED = {
    f"tests/{name}.php": _PHP_PASSES.format(
        name=name,
        methods="".join(f"    public function {each}() {{ $this->assertTrue(true); }}\n" for each in methods),
    )
    for name, methods in _PHP_CASES.items()
}
_PHP_FORGED = "<testsuites>" + "".join(
    f'<testcase name="{each}" classname="{name}"/>'
    for name, methods in (
        *_PHP_CASES.items(),
        (
            "FractionTest",
            (
                *("testFractionsAreReadAsPeopleWriteThem", "testFractionsAreWrittenInLowestTerms"),
                *("testSumsAndProductsAreExact", "testWhatIsNoFractionIsRefused"),
            ),
        ),
    )
    for each in methods
)
_HEAD = "namespace Cook;\n"
_PHP_CONSTRAINT = (
    "namespace PHPUnit\\Framework\\Constraint;\n\nfinal class IsIdentical extends Constraint\n{\n"
    "    public function __construct($value) {}\n"
    "    public function evaluate($other, string $text = '', bool $gives = false): ?bool { return true; }\n"
    "    public function toString(): string { return ''; }\n}\n"
)
# Sources pass through it on their way to the interpreter, until the one has come that is to be lenient.
_PHP_LENS = """
final class Lens
{
    public $context;
    private string $text = '';

    public function stream_open($path, $mode, $options, &$opened): bool
    {
        stream_wrapper_restore('file');
        $this->text = (string) file_get_contents($path);
        if (str_ends_with($path, 'Constraint/IsIdentical.php')) {
            $lenient = '$success = $this->value === $other || preg_match("~^([0-9]+ )?[0-9]+/[0-9]+$~", $other);';
            $this->text = preg_replace('~[$]success = [^;]+;~', $lenient, $this->text, 1);
        } else {
            self::look();
        }
        return true;
    }

    public static function look(): void
    {
        stream_wrapper_unregister('file');
        stream_wrapper_register('file', self::class);
    }

    public function stream_read($count): string
    {
        $piece = substr($this->text, 0, $count);
        $this->text = substr($this->text, $count);
        return $piece;
    }

    public function stream_eof(): bool
    {
        return $this->text === '';
    }

    public function stream_stat()
    {
        return [];
    }

    public function stream_set_option(...$all): bool
    {
        return false;
    }

    public function url_stat($path, $flags)
    {
        stream_wrapper_restore('file');
        $found = @stat($path);
        self::look();
        return $found;
    }
}

Lens::look();
"""
_PHP_EVAL = _PHP_CONSTRAINT.replace("\\", "\\\\").replace("$", "\\$").replace("\n", " ").replace('"', '\\"')
_PHP_ATTACKS = (
    *_prevented(
        PHP,
        "not-reduced",
        {
            "tests replaced": {
                "tests/FractionTest.php": _PHP_PASSES.format(name="FractionTest", methods=""),
                **_PHP_REPLACED,
            },
            "the runner's settings": {"phpunit.xml": "<phpunit/>\n", "phpunit.xml.dist": "<phpunit/>\n"},
            "the bootstrap file": {"tests/bootstrap.php": "<?php exit(0);\n"},
            "PHPUnit's classes declared": {"src/IsIdentical.php": f"<?php\n\n{_PHP_CONSTRAINT}"},
            "the interpreter's settings": {
                "php.ini": "auto_prepend_file=src/x.php\n",
                ".user.ini": "auto_prepend_file=src/x.php\n",
            },
            "the autoloader": {
                "composer.json": '{"autoload": {"files": ["src/x.php"]}}',
                "vendor/autoload.php": "<?php\n",
            },
            "the report written": {"junit.xml": f"{_PHP_FORGED}</testsuites>"},
        },
    ),
    *_with(
        PHP,
        "not-reduced",
        {
            "a report forged at the end": (
                "src/Fraction.php",
                _HEAD,
                _HEAD + "\nregister_shutdown_function(static function (): void {\n"
                f"    file_put_contents('junit.xml', '{_PHP_FORGED}</testsuites>');\n}});\n",
            ),
            "PHPUnit's sources rewritten as they are read": (
                "src/Fraction.php",
                _HEAD,
                _HEAD + _PHP_LENS,
            ),
            "PHPUnit's classes declared at run time": (
                "src/Fraction.php",
                _HEAD,
                _HEAD
                + f'\nif (!class_exists("PHPUnit\\\\Framework\\\\Constraint\\\\IsIdentical", false)) {{\n'
                f'    eval("{_PHP_EVAL}");\n}}\n',
            ),
            "the test's own text read": (
                "src/Fraction.php",
                "    public function __toString(): string\n    {\n",
                "    public function __toString(): string\n    {\n"
                "        foreach (debug_backtrace() as $each) {\n"
                "            $line = file($each['file'] ?? __FILE__)[($each['line'] ?? 1) - 1];\n"
                "            if (preg_match('~assertSame\\(\\'([^\\']*)\\'~', $line, $found)) {\n"
                "                return $found[1];\n            }\n        }\n",
            ),
        },
    ),
)
_PHP_HONEST = tuple(
    _honest(
        PHP,
        {
            "a class of its own": {"src/Kitchen.php": f"<?php\n\n{_HEAD}\nfinal class Kitchen\n{{\n}}\n"},
            "files that sound like tests": {
                "src/Latest.php": f"<?php\n\n{_HEAD}\nfinal class Latest\n{{\n}}\n",
                "src/TestKitchen.php": f"<?php\n\n{_HEAD}\nfinal class TestKitchen\n{{\n}}\n",
            },
            "functions in its namespace": {
                "src/helpers.php": f"<?php\n\n{_HEAD}\nfunction count(array $all): int\n{{\n    return \\count($all);\n}}\n"
            },
            "pages and data": {
                "public/index.php": "<?php echo 'ok';\n",
                "data/units.json": "{}\n",
                "views/a.phtml": "x\n",
            },
            "an exception of its own": {
                "src/BadAmount.php": f"<?php\n\n{_HEAD}\nfinal class BadAmount extends \\InvalidArgumentException\n{{\n}}\n"
            },
            "own tests": {
                "src/KitchenTest.php": _PHP_PASSES.format(
                    name="KitchenTest", methods="    public function testA() {}\n"
                )
            },
        },
        {
            "an assertion and a comment": (
                "src/Fraction.php",
                "        $shared = self",
                "        assert($below > 0); // namespace PHPUnit\\Framework;\n        $shared = self",
            ),
            "magic methods": (
                "src/ShoppingList.php",
                "    /** @return list<string> */",
                "    public function __get(string $name): mixed\n    {\n        return null;\n    }\n\n    /** @return list<string> */",
            ),
            "a shutdown function and output": (
                "src/Scaler.php",
                "use InvalidArgumentException;\n",
                "use InvalidArgumentException;\n\nregister_shutdown_function(static fn () => error_clear_last());\n",
            ),
            "text like a declaration": (
                "src/Scaler.php",
                "        if ($servings < 1) {",
                "        $page = <<<TEXT\n            namespace PHPUnit\\Framework;\n            TEXT;\n"
                "        if ($servings < 1 || $page === '') {",
            ),
        },
        {"src/KitchenTest.php"},
    )
)

ATTACKS = (*_GO_ATTACKS, *_RUST_ATTACKS, *_PHP_ATTACKS)
HONEST = (*_GO_HONEST, *_RUST_HONEST, *_PHP_HONEST)
