"""The characters of the simulated models: do they keep what their profiles promise?"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest
from lxml import etree
from simulated_client import SHOP, shop_files

from astra_async.simulate.delivery import due_times, grouped
from astra_async.simulate.draws import SampleName, seeded
from astra_async.simulate.formatting import REPAIRABLE, UNREADABLE, flawed, json, well_formed, xml
from astra_async.simulate.model_answers import SimulatedAnswer, draw_answer, limited, tokens_in
from astra_async.simulate.profiles import PROFILES, Profile, solve_rate

if TYPE_CHECKING:
    from astra_async.types import Format

SAMPLES = 500


def answers(
    profile: Profile, fmt: Format, problem_id: str = "shop", count: int = SAMPLES
) -> list[SimulatedAnswer]:
    return [draw_answer(profile, SampleName("7", fmt, problem_id, n), SHOP) for n in range(count)]


def near(seen: int, rate: float, count: int = SAMPLES) -> bool:
    """Whether a count is within four standard errors (and one event) of its promise."""
    return abs(seen - rate * count) <= 4 * math.sqrt(rate * (1 - rate) * count) + 1


@pytest.mark.parametrize("fmt", ["xml", "json"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_500_samples_keep_the_rates_of_the_profile(profile: Profile, fmt: Format) -> None:
    drawn = answers(profile, fmt)
    refused = [one for one in drawn if one.finish in ("refusal", "content_filter")]
    assert near(len(refused), profile.refusal)
    assert near(sum(one.finish == "length" for one in drawn), profile.truncation)
    flaws = [one.flaw for one in drawn]
    unreadable = set(UNREADABLE[fmt])
    repairable = set(REPAIRABLE[fmt])
    assert near(sum(flaw in unreadable for flaw in flaws), profile.unreadable[fmt])
    assert near(sum(flaw in repairable for flaw in flaws), profile.malformed[fmt])
    right = sum(one.solution == "reference" for one in drawn)
    assert near(right, (1 - profile.refusal) * solve_rate(profile, "shop"))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_skill_is_the_mean_over_problems(profile: Profile) -> None:
    rates = [solve_rate(profile, f"problem {number}") for number in range(4000)]
    assert statistics.mean(rates) == pytest.approx(profile.skill, abs=0.02)


def test_a_steady_model_is_more_consistent_than_an_erratic_one_of_the_same_skill() -> None:
    def spread(profile: Profile) -> float:
        deviations = []
        for number in range(60):
            drawn = answers(profile, "xml", f"problem {number}", count=32)
            deviations.append(statistics.pstdev(passed(one) for one in drawn))
        return statistics.median(deviations)

    assert spread(PROFILES["steady"]) < 0.6 * spread(PROFILES["erratic"])


def passed(answer: SimulatedAnswer) -> float:
    if answer.solution == "reference":
        return 1.0
    return int(answer.solution.removeprefix("wrong-")) / 6 if answer.solution else 0.0


def test_a_hard_problem_is_hard_for_every_model() -> None:
    rates = {
        name: [solve_rate(profile, f"problem {number}") for number in range(1500)]
        for name, profile in PROFILES.items()
    }
    for name, other in (("steady", "weak"), ("json-shy", "refuser"), ("erratic", "steady")):
        assert 0.3 < statistics.correlation(rates[name], rates[other]) < 0.8


def test_the_order_of_faulty_solutions_changes_nothing() -> None:
    backwards = replace(SHOP, faulty=SHOP.faulty[::-1])
    weak = PROFILES["weak"]
    for number in range(50):
        name = SampleName("7", "xml", "shop", number)
        assert draw_answer(weak, name, SHOP) == draw_answer(weak, name, backwards)


def test_answers_change_neither_with_python_nor_unnoticed_with_this_program() -> None:
    # A changed answer changes every recorded demonstration: a change must be meant, not found later.
    drawn = [draw_answer(PROFILES["erratic"], SampleName("7", "xml", "shop", n), SHOP) for n in range(8)]
    seen = [(one.solution, one.flaw, one.finish, len(one.text)) for one in drawn]
    assert seen == [
        ("wrong-4", "unescaped", "stop", 872),
        ("reference", None, "stop", 863),
        ("reference", None, "stop", 852),
        ("reference", None, "stop", 1001),
        ("reference", None, "stop", 938),
        ("reference", None, "stop", 1003),
        ("wrong-3", None, "stop", 1049),
        ("reference", "unclosed_root", "stop", 841),
    ]


def test_names_are_parsed_with_slashes_in_the_problem() -> None:
    assert SampleName.parse("7/json/a/b/c/31") == SampleName("7", "json", "a/b/c", 31)
    assert SampleName.parse("/xml/p/0").seed == ""


@pytest.mark.parametrize(
    "header", ["", "7", "7/xml", "7/xml/p", "7//p/0", "7/xml//0", "7/xml/p/-1", "7/xml/p/x"]
)
def test_a_broken_name_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="SEED/FORMAT/PROBLEM/SAMPLE"):
        SampleName.parse(header)


ODD = {"src/a&b.js": "if (a < b && c > d) {}\n]]>\n", "ü/leer.txt": "", "quoted.js": "\"\\n\" 'x' `\t`\r\n"}


@pytest.mark.parametrize("number", range(40))
def test_well_formed_answers_hold_every_file_as_it_is(number: int) -> None:
    files = shop_files("right") | ODD
    text = well_formed(files, "json", seeded(number), prose=0.5)
    found = orjson.loads(text[text.index("{") : text.rindex("}") + 1])
    if list(found) == ["files"]:
        found = {entry["path"]: entry["content"] for entry in found["files"]}
    assert found == files


@pytest.mark.parametrize("number", range(40))
def test_well_formed_xml_is_xml(number: int) -> None:
    text = well_formed(shop_files("right"), "xml", seeded(number), prose=0.5)
    root = etree.fromstring(text[text.index("<solution>") : text.rindex(">") + 1].encode())
    contents = [child.findtext("content") or child.text or "" for child in root]
    assert [content.strip() for content in contents] == [f.strip() for f in shop_files("right").values()]


@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_a_flaw_changes_the_canonical_answer(fmt: Format) -> None:
    canonical = xml(SHOP.reference) if fmt == "xml" else json(SHOP.reference)
    texts = {flaw: flawed(SHOP.reference, fmt, flaw) for flaw in (*REPAIRABLE[fmt], *UNREADABLE[fmt])}
    assert canonical not in texts.values()
    assert len(set(texts.values())) == len(texts)


def test_max_tokens_count_hidden_reasoning_first() -> None:
    answer = SimulatedAnswer(text="x" * 3600, finish="stop", reasoning_tokens=500)
    assert limited(answer, None) is limited(answer, 1500) is answer
    cut = limited(answer, 600)
    assert (len(cut.text), cut.finish, cut.reasoning_tokens) == (360, "length", 500)
    empty = limited(answer, 300)
    assert (empty.text, empty.finish, empty.reasoning_tokens) == ("", "length", 300)


def test_tokens_are_counted_by_length() -> None:
    assert [tokens_in(text) for text in ("", "x", "x" * 36, "x" * 37)] == [0, 1, 10, 11]


def test_pieces_are_due_at_the_speed_of_the_profile() -> None:
    profile = PROFILES["erratic"]
    pieces = ["x" * 60] * 50
    runs = [due_times(profile, f"sample {number}", pieces, 0) for number in range(300)]
    assert all(times == sorted(times) for times in runs)
    assert statistics.median(times[0] for times in runs) == pytest.approx(profile.first_token_s, rel=0.1)
    streaming = statistics.median(times[-1] - times[0] for times in runs)
    assert streaming == pytest.approx(49 * 60 / 3.6 / profile.tokens_per_s, rel=0.1)


def test_reasoning_delays_the_first_piece() -> None:
    profile = PROFILES["steady"]
    quick, slow = (due_times(profile, "s", ["x"], reasoning)[0] for reasoning in (0, 950))
    assert 5 < slow - quick < 20


def test_writes_are_few_and_lose_nothing() -> None:
    events = [b"%d;" % number for number in range(500)]
    times = [0.5 + 0.004 * number for number in range(500)]
    writes = grouped(events, times, 1.0)
    assert b"".join(data for _, data in writes) == b"".join(events)
    assert writes[0] == (0.5, b"0;")
    assert len(writes) < 110
    assert grouped(events, times, 0) == [(0, b"0;"), (0, b"".join(events[1:]))]
