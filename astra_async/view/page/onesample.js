// A sample's record: verdict, facts, tests, output, and the model's texts.

import { element, holding } from "./shared/dom.js";
import { audit, dropped, facts, outcomes, scored } from "./shared/record.js";
import { plain } from "./shared/terminal.js";
import { changed } from "./address.js";
import { fileDiff } from "./diff.js";
import { glyph } from "./glyphs.js";
import { copier, fileLink, output, scrolling, titled, verbatim } from "./longtext.js";
import { byteOf, NO_SOLUTION, placeOf, STATES } from "./outcomes.js";
import { askJson, cellAt, state } from "./state.js";

const MOST_HELD = 12;
const held = new Map();

/** Fetch a sample; a prefetched one is returned at once. */
export function fetchSample({ model, problem, sample, turn = "" }) {
  const question = new URLSearchParams({ model, problem: state.run.problems[problem].id, sample, ...(turn && { turn }) });
  const key = `${question} ${state.cells[cellAt(model, problem, sample)]}`;
  if (!held.has(key)) {
    const asked = askJson(`api/sample?${question}`).then((data) => ({ ...data, session_log: data.session_log && `api/session-log?${question}` }));
    asked.catch(() => held.delete(key));
    held.set(key, asked);
    if (held.size > MOST_HELD) held.delete(held.keys().next().value);
  }
  return held.get(key);
}

/** Discard cached samples after a label was set. */
export const forget = () => held.clear();

export const byteOfSample = ({ model, problem, sample }) => state.cells[cellAt(model, problem, sample)] ?? 255;

const count = (number) => (number ?? 0).toLocaleString("en");
const tag = (text, kind = "") => element("span", text, `tag ${kind}`);

/** The headline: outcome and flags. */
export function verdict(data, place) {
  const { result } = data;
  const ofResult = result && (result.status === "no_solution" ? NO_SOLUTION : byteOf(result.rewards ? result.score : result.passed / Math.max(1, result.total)));
  const byte = ofResult ?? data.cell ?? byteOfSample(place); // of a later turn the cell tells nothing
  const words = result ? scored(result) : (STATES[placeOf(byte)]?.title ?? "not planned");
  const why = result?.failure && result.failure !== "tests_failed" ? result.failure.replaceAll("_", " ") : null;
  return holding("p", "verdict", glyph(byte), holding("strong", null, result?.status === "no_solution" ? "no solution" : words),
    why ? tag(why, "bad") : null,
    result?.agent && result.agent.end !== "done" ? tag(plain(data.agent_end), "bad") : null,
    result?.timed_out ? tag("timed out", "bad") : null,
    ...(result?.suspicions ?? []).map((name) => tag(`suspicious: ${plain(name)}`, "bad")),
    ...(result?.repairs ?? []).map((name) => tag(`repaired: ${plain(name)}`)),
    result?.dropped?.length ? tag(`${result.dropped.length} ${result.dropped.length === 1 ? "change" : "changes"} not applied`) : null);
}

/** Turns of a sample with feedback and their results; the headline shows turn 0. */
export function turns(data, params) {
  if (!(data.turns?.length > 1)) return null;
  const now = params.get("turn") ?? "0";
  return holding("p", "turns", "Turns ", data.turns.flatMap(({ turn, passed, total }) => {
    const link = element("a", `${turn}: ${passed}/${total}`);
    link.href = changed({ turn: String(turn) });
    if (String(turn) === now) link.setAttribute("aria-current", "true");
    return [link, " "];
  }));
}

function events(list, name) {
  return scrolling(name, holding("ol", "events", list.map(({ at, kind, text, detail, seconds }) =>
    holding("li", null, element("time", String(at ?? "").slice(11, 19)), " ",
      element("bdi", plain(text ?? `${String(kind ?? "").replaceAll("_", " ")} ${detail ?? ""}`)), seconds && !text ? ` (${seconds} s)` : null))));
}

const WHOLE_TAIL = 1_800; // a result has the last 2,000 bytes of the output; masked keys make the end shorter
const bytesOf = (text) => new TextEncoder().encode(text).length;

/** A sentence on an output that is shortened or missing: how much is missing, and why; null for a whole output. */
function outputNote(data, printed) {
  const { result } = data;
  if (data.output_cut) return `The middle of the output is missing: it has ${count(data.output_bytes)} bytes, and at most 64 KB of a sample's output are recorded.`;
  if (data.output_bytes !== null) return printed ? null : "The tests printed nothing.";
  if (printed && bytesOf(printed) < WHOLE_TAIL) return null;
  if (printed) return `Only the last ${count(bytesOf(printed))} bytes of the output are recorded. To record up to 64 KB, use --keep-output failed or all.`;
  if (result?.status === "no_solution") return "There is no output: the answer has no usable solution, so no test ran.";
  if (!result?.tests?.length) return null;
  return result.passed === result.total ? "The output was not recorded, because all tests passed. To record it, use --keep-output all." : "The output was not recorded, because the run used --keep-output none.";
}

/** A sentence on an answer that ended at the token limit; null for any other answer. */
function truncated({ result, answer }) {
  if ((answer ?? result)?.finish_reason !== "length") return null;
  const tokens = (answer?.usage ?? result?.usage)?.output_tokens;
  const size = [tokens ? `${count(tokens)} tokens` : null, answer ? `${count(answer.text.length)} characters` : null].filter(Boolean).join(", ");
  return `The answer is truncated${size ? ` after ${size}` : ""}: the model reached its limit of output tokens, and the rest was never sent. The Answer tab has all that was received. A new run allows longer answers with a higher limit: -M max_tokens=N.`;
}

/** Details: tests with messages, dropped changes, output, events, facts; `of` names the sample among two. */
export function why(data, of = "") {
  const { result } = data;
  const node = element("div", null, "why");
  const add = (title, ...children) => node.append(titled(title, ...children));
  if (!result) node.append(element("p", data.missing_why ? `No result: ${plain(data.missing_why)}` : "No result yet.", "empty"));
  const limit = truncated(data);
  if (limit) node.append(element("p", limit, "banner"));
  if (result?.note) node.append(element("p", plain(result.note), "banner"));
  if (result?.tests?.length) add("Tests that count", outcomes(result.tests));
  if (data.audit) add("Audit: mutated tests", audit(data.audit));
  if (result?.dropped?.length) add("Changes that were not applied", dropped(result.dropped));
  if (result?.extra_tests?.length) add(result.rewards ? "Tests of the verifier" : "Other tests, not counted", outcomes(result.extra_tests));
  const printed = data.output ?? result?.output_tail;
  const note = outputNote(data, printed);
  if (printed || note) add("Output", ...[note ? element("p", note, "note") : null, printed ? copier(printed) : null, printed ? output(printed, `Output${of}`) : null].filter(Boolean));
  const leftOut = result?.agent?.left_out ?? [];
  if (leftOut.length) add("Files that are not part of the answer, by reason", output(leftOut.join("\n"), `Files left out${of}`));
  if (result?.agent?.output_tail) add("End of the agent's output", output(result.agent.output_tail, `Agent's output${of}`));
  if (data.events?.length) add("Events", events(data.events, `Events${of}`));
  if (result) add("Record", facts(result, data.agent_end));
  return node;
}

const TABS = { diff: "Diff", transcript: "Transcript", answer: "Answer", feedback: "Feedback", prompt: "Prompt", record: "JSON" };

const COUNTED = { diff: true, transcript: true };

/** All data of the sample as JSON, to read, copy or download. */
function recordTab(data) {
  const text = JSON.stringify(data, null, 2);
  const named = Object.values(data.key).join("-").replace(/[^\w.-]+/g, "_");
  const print = element("button", "Print", "quiet");
  print.type = "button";
  print.addEventListener("click", () => window.print());
  return [copier(text), fileLink("Download", `${named}.json`, text), print, verbatim(text)];
}

/** One model request of an agent: new messages of the request, and the response. */
function step({ step: number, at, seconds, goes_on, system, messages, text, calls, input_tokens, cached_tokens, output_tokens, cost_usd }) {
  const cached = cached_tokens ? `, ${count(cached_tokens)} cached` : "";
  const cost = cost_usd ? `, $${cost_usd.toFixed(4)}` : "";
  const facts = `${seconds.toFixed(1)} s, ${count(input_tokens)} tokens in${cached}, ${count(output_tokens)} out${cost}`;
  const part = (who, content) => content && holding("div", "said", element("h4", who), verbatim(content));
  const node = holding("li", "step", holding("h3", null, `Step ${number} `, element("span", facts, "muted"), " ", element("time", String(at).slice(11, 19))),
    goes_on ? null : part("system", system),
    messages.flatMap(({ role, text: words, results }) => [part(role, words), ...results.map(({ name, text: gave, failed }) => part(`${plain(name || "tool")} ${failed ? "failed" : "gave"}`, gave))]),
    part("model", text), calls.map(({ name, arguments: given }) => part(`model calls ${plain(name)}`, given)));
  node.id = `step-${number}`;
  return node;
}

function transcriptTab(data) {
  if (!data.transcript?.length) return [element("p", "No agent steps are recorded.", "empty")];
  const log = data.session_log ? element("a", "The agent's own log") : null;
  if (log) Object.assign(log, { href: data.session_log, target: "_blank" });
  return [holding("p", null, log), holding("ol", "transcript", data.transcript.map(step))];
}

function tabBody(name, data, signal) {
  if (name === "transcript") return transcriptTab(data);
  if (name === "answer") return data.answer ? [copier(data.answer.text), verbatim(data.answer.text)] : [element("p", "No answer is recorded.", "empty")];
  if (name === "feedback") return data.answer?.feedback ? [copier(data.answer.feedback), verbatim(data.answer.feedback)] : [element("p", "The first turn has no feedback.", "empty")];
  if (name === "record") return recordTab(data);
  if (name === "prompt") return data.prompt ? [copier(data.prompt), verbatim(data.prompt)] : [element("p", "The prompt is not stored in this directory.", "empty")];
  const note = data.diff_note ? element("p", plain(data.diff_note), "note") : null;
  if (!data.diff?.length) return [note ?? element("p", data.answer ? "The answer did not change the project." : "No answer is recorded.", "empty")];
  return [note, ...data.diff.map((file) => fileDiff(file, { signal }))];
}

/** The model's answer, its prompt or its changes, selected by the URL. */
export function written(data, params, signal, of = "") {
  const now = TABS[params.get("tab")] ? params.get("tab") : "diff";
  const links = Object.entries(TABS).filter(([name]) => name === now || (name !== "feedback" || data.answer?.feedback) && (name !== "transcript" || data.transcript?.length)).map(([name, title]) => {
    const link = element("a", COUNTED[name] && data[name]?.length ? `${title} (${data[name].length})` : title);
    link.href = changed({ tab: name === "diff" ? null : name });
    if (name === now) link.setAttribute("aria-current", "true");
    return link;
  });
  const tabs = holding("nav", "tabs", links);
  tabs.setAttribute("aria-label", `What the model was asked and wrote${of}`);
  return holding("div", "written", tabs, ...tabBody(now, data, signal));
}

/** Tests of two samples in one table; differing tests come first. */
export function testsOfBoth(first, second) {
  const outcomeOf = (data) => new Map((data.result?.tests ?? []).map(({ name, outcome }) => [name, outcome]));
  const [a, b] = [outcomeOf(first), outcomeOf(second)];
  const names = [...new Set([...a.keys(), ...b.keys()])];
  if (!names.length) return null;
  const differ = (name) => a.get(name) !== b.get(name);
  const cell = (outcome) => element("td", outcome ?? "–", `outcome ${outcome === "passed" ? "passed" : "other"}`);
  const rows = [...names.filter(differ), ...names.filter((name) => !differ(name))].map((name) =>
    holding("tr", differ(name) ? "differs" : "", holding("td", null, element("bdi", plain(name))), cell(a.get(name)), cell(b.get(name))));
  const head = holding("tr", null, element("th", "Test"), element("th", "A"), element("th", "B"));
  return titled(`Tests: ${names.filter(differ).length} of ${names.length} differ`, scrolling("Tests of both", holding("table", "data tests", holding("thead", null, head), holding("tbody", null, rows))));
}

