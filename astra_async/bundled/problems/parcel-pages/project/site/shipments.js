'use strict';

const PAGE_LENGTH = 3;

const element = (id) => document.getElementById(id);
const state = { shipments: [], status: '', page: 1 };

function weightText(grams) {
  return grams < 1000 ? `${grams} g` : `${(grams / 1000).toLocaleString('en-US')} kg`;
}

function cell(row, content) {
  const data = row.insertCell();
  data.append(content);
  return data;
}

function button(name, action) {
  const made = document.createElement('button');
  made.className = name.toLowerCase();
  made.textContent = name;
  made.addEventListener('click', action);
  return made;
}

function draw() {
  const found = state.shipments.filter(({ status }) => !state.status || status === state.status);
  const pages = Math.max(1, Math.ceil(found.length / PAGE_LENGTH));
  state.page = Math.min(Math.max(state.page, 1), pages);
  const body = document.createElement('tbody');
  for (const shipment of found.slice((state.page - 1) * PAGE_LENGTH, state.page * PAGE_LENGTH)) {
    const row = body.insertRow();
    row.dataset.number = shipment.number;
    cell(row, shipment.number);
    cell(row, shipment.recipient);
    cell(row, weightText(shipment.weight));
    cell(row, shipment.status);
    cell(row, shipment.status === 'Ready' ? button('Cancel', () => cancel(shipment)) : '');
  }
  if (found.length === 0) {
    const none = cell(body.insertRow(), 'No shipments');
    none.colSpan = 5;
    none.className = 'none';
  }
  element('shipments').tBodies[0].replaceWith(body);
  element('position').textContent = `Page ${state.page} of ${pages}`;
  element('previous').disabled = state.page === 1;
  element('next').disabled = state.page === pages;
}

/** Changes the list and draws it anew, which takes its time; the old rows stay for so long. */
async function later(change) {
  element('shipments').setAttribute('aria-busy', 'true');
  await fetch('/pause');
  change();
  draw();
  element('shipments').setAttribute('aria-busy', 'false');
}

function cancel(shipment) {
  if (!window.confirm(`Cancel ${shipment.number}?`)) return;
  later(() => {
    shipment.status = 'Cancelled';
    element('notice').textContent = `${shipment.number} was cancelled`;
    element('notice').hidden = false;
  });
}

function turn(pages) {
  state.page += pages;
  draw();
}

async function load() {
  try {
    const response = await fetch('/data/shipments.json');
    if (!response.ok) throw new Error(`status ${response.status}`);
    state.shipments = await response.json();
    draw();
    element('list').hidden = false;
  } catch {
    element('failure').textContent = 'The shipments cannot be loaded';
    element('failure').hidden = false;
  }
  element('loading').remove();
}

element('status').addEventListener('change', (event) => {
  const status = event.target.value;
  later(() => Object.assign(state, { status, page: 1 }));
});
element('previous').addEventListener('click', () => turn(-1));
element('next').addEventListener('click', () => turn(1));
load();
