// --- one sample's record: counts, tests, changes, audit --------------------------------------------------

import { element, holding } from "./dom.js";
import { escaped, plain } from "./terminal.js";

/** One letter for each reason why a sample has no test results. */
export const LETTERS = {
  no_report: "N", build_failure: "B", timeout: "T", out_of_memory: "M", tampered: "X", refusal: "R",
  truncated: "C", context_exceeded: "L", format_error: "F", path_violation: "P",
};

const CUT = 500; // messages are recorded up to this length, in characters
const PASSING = 12; // more passed tests than these are folded

const absent = (value) => value === null || value === undefined || value === "";
const seconds = (value) => (absent(value) ? null : `${value.toFixed(1)} s`);
const dollars = (value, estimated) => (absent(value) ? null : `$${value.toFixed(4)}${estimated ? ", partly estimated" : ""}`);

/** A sample's score in words: its tests, or a task's rewards. */
export const scored = ({ rewards, score, passed, total }) => (rewards
  ? `score ${score} (${Object.entries(rewards).map(([name, value]) => `${plain(name)} ${value}`).join(", ")})`
  : `${passed} of ${total} tests passed`);

/** Returns a sample's fields except its texts, and the end of its agent, as a list of names and values. */
export function facts(record, agentEnd) {
  const usage = record.usage ?? {};
  const pairs = [
    ["Result", `${scored(record)}${record.failure ? ` (${record.failure})` : ""}`],
    ["Agent", plain(agentEnd ?? "")], ["Why", plain(record.note ?? "")], ["Finished by", record.finish_reason], ["Answered as", plain(record.returned_model ?? "")],
    ["Tokens in", usage.input_tokens], ["of them cached", usage.cached_tokens],
    ["Tokens out", usage.output_tokens], ["of them reasoning", usage.reasoning_tokens],
    ["Cost", dollars(record.cost_usd, record.cost_estimated)],
    ["Attempts", record.attempts], ["First token", seconds(record.ttft_s)], ["Answer", seconds(record.latency_s)],
    ["Tests", seconds(record.test_s)], ["Exit code", record.exit_code],
    ["Files changed", record.files_changed], ["Lines written", record.lines_written],
    ["Repaired", (record.repairs ?? []).join(", ")], ["Suspicious", (record.suspicions ?? []).join(", ")],
  ];
  const kept = pairs.filter(([, value]) => !absent(value));
  return holding("dl", "facts", kept.map(([name, value]) => holding("div", null, element("dt", name), element("dd", value))));
}

function test({ name, outcome, message }) {
  const item = holding("li", null, element("span", outcome, `outcome ${outcome === "passed" ? "passed" : "other"}`), " ", element("bdi", plain(name)));
  if (message) item.append(element("pre", plain(message), "message"));
  if (message?.length >= CUT) item.append(element("p", `Only the first ${CUT} characters of the message are recorded; see the output for more.`, "note"));
  return item;
}

/** Returns tests with outcomes and messages, failed tests first; many passed tests are collapsed. */
export function outcomes(tests) {
  const passed = tests.filter(({ outcome }) => outcome === "passed");
  const list = holding("ul", "outcomes", tests.filter(({ outcome }) => outcome !== "passed").map(test));
  if (passed.length <= PASSING || passed.length === tests.length) {
    list.append(...passed.map(test));
    return list;
  }
  const folded = holding("details", null, element("summary", `${passed.length} passed`), holding("ul", "outcomes", passed.map(test)));
  return holding("div", null, list, folded);
}

/** Returns the changes of an answer that were not applied, each with its reason. */
export const dropped = (changes) => holding("ul", "dropped", changes.map(({ path, reason }) =>
  holding("li", null, element("bdi", escaped(path), "path"), `: ${plain(reason)}`)));

/** Returns the audit of a solution: tests that pass both in the original and in the mutated form. */
export function audit(line) {
  if (line.outcome !== "flagged") return element("p", `${line.outcome.replace("_", " ")}${line.reason ? `: ${line.reason}` : ""}`);
  return holding("ul", "audit", line.flagged.map((each) => {
    const item = holding("li", null, element("bdi", plain(each.test)), ": passed in both forms, twice");
    item.append(element("pre", plain(`${each.path}:${each.line}\n-${each.before}\n+${each.after}`), "message"));
    return item;
  }));
}

/** Returns the applied files that differ from the untouched project, with numbers of changed lines. */
export const changed = (changes) => holding("ul", "changed", changes.map(({ path, kind, added, removed }) =>
  holding("li", null, element("bdi", escaped(path), "path"), ` (${plain(kind)}): ${added} lines added, ${removed} removed`)));
