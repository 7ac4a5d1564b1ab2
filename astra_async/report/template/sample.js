// --- one sample -------------------------------------------------------------------------------

const dialog = document.getElementById("sample");
const unpacked = new Map();
const chunkOf = new Map();
data.chunks.forEach(([entry, problem, samples], number) => {
  for (const sample of samples) chunkOf.set(place(entry, problem, sample), number);
});

async function unpack(number) {
  if (!unpacked.has(number)) {
    const packed = atob(document.getElementById(`chunk-${number}`).textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(number, JSON.parse(await new Response(stream).text()));
  }
  return unpacked.get(number);
}

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function* parts(record, command) {
  yield facts(record, record.agent_end);
  if (record.tests?.length) yield* [element("h3", "Expected tests"), outcomes(record.tests)];
  if (record.changes?.length) yield* [element("h3", "Changed files"), changed(record.changes)];
  if (record.dropped?.length) yield* [element("h3", "Changes that were not applied"), dropped(record.dropped)];
  if (record.extra_tests?.length) yield* [element("h3", record.rewards ? "Tests of the verifier" : "Other tests, not counted"), outcomes(record.extra_tests)];
  if (record.output_tail) {
    const bytes = new TextEncoder().encode(record.output_tail).length.toLocaleString("en");
    yield* [element("h3", "End of the output"), element("p", `${bytes} bytes. If more of the output is recorded, this command prints it:`), element("pre", `${command} --part output`), terminal(record.output_tail)];
  }
  yield element("h3", "Answer");
  yield record.answer === null ? element("p", "The answer is not in completions.jsonl.") : element("pre", escaped(record.answer), "answer");
}

async function content(entry, problem, sample) {
  const { model, format, directory, problems, passed } = data.entries[entry];
  const number = chunkOf.get(place(entry, problem, sample));
  if (passed[problem][sample] < 0) return [element("p", "This sample has no result yet; see the table of missing samples.")];
  const command = ["astra show", ...[directory, model, problems[problem], sample, "--format", format].map(quoted)].join(" ");
  if (number === undefined) {
    return [element("p", `This sample (${format}) is not in this page. To see it, run:`), element("pre", command)];
  }
  return [...parts((await unpack(number))[sample], command)];
}

function step(entry, problem, sample, by) {
  const rows = data.entries[entry].passed;
  const next = sample + by;
  if (next >= 0 && next < rows[problem].length) return place(entry, problem, next);
  const row = problem + by;
  return row >= 0 && row < rows.length ? place(entry, row, by > 0 ? 0 : rows[row].length - 1) : null;
}

async function open() {
  const found = /^#sample\/(\d+)\/(\d+)\/(\d+)$/.exec(location.hash);
  const [entry, problem, sample] = found ? found.slice(1).map(Number) : [];
  if (!found || data.entries[entry]?.passed[problem]?.[sample] === undefined) {
    if (dialog.open) dialog.close();
    return;
  }
  const { name, problems } = data.entries[entry];
  document.getElementById("sample-title").textContent = `${name} · ${problems[problem]} · sample ${sample}`;
  for (const [id, by] of [["sample-before", -1], ["sample-after", 1]]) {
    const target = step(entry, problem, sample, by);
    const button = document.getElementById(id);
    button.disabled = target === null;
    button.onclick = () => location.replace(target);
  }
  let shown;
  try {
    shown = await content(entry, problem, sample);
  } catch (error) {
    shown = [element("p", `This browser cannot unpack the sample (${error.message}); use astra show instead.`)];
  }
  if (location.hash !== found[0]) return; // another sample was asked for meanwhile
  document.getElementById("sample-body").replaceChildren(...shown);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

document.getElementById("sample-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => {
  if (location.hash.startsWith("#sample/")) history.replaceState(null, "", "#problems");
});
addEventListener("hashchange", open);
addEventListener("DOMContentLoaded", open); // the chunks stand behind this script
