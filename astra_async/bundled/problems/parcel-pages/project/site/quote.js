'use strict';

const MAXIMUM_KG = 40;
const PRICES = {
  home: { parcel: 4.5, kg: 0.8 },
  europe: { parcel: 12, kg: 3.25 },
  world: { parcel: 40, kg: 24 },
};

const element = (id) => document.getElementById(id);

function problem(weight, zone) {
  if (!(weight > 0)) return 'The weight must be above 0 kg';
  if (weight > MAXIMUM_KG) return `The weight must not exceed ${MAXIMUM_KG} kg`;
  return zone ? '' : 'Choose a zone';
}

function show() {
  const weight = Number(element('weight').value);
  const zone = element('zone').value;
  const text = problem(weight, zone);
  element('error').textContent = text;
  element('error').hidden = !text;
  element('price').textContent = '';
  if (text) return;
  const { parcel, kg } = PRICES[zone];
  const price = (parcel + kg * weight) * (element('express').checked ? 1.5 : 1);
  element('price').textContent = price.toLocaleString('en-US', { style: 'currency', currency: 'EUR' });
}

// What was shown before stays until the new price is there.
element('calculate').addEventListener('click', async () => {
  element('price').setAttribute('aria-busy', 'true');
  await fetch('/pause');
  show();
  element('price').setAttribute('aria-busy', 'false');
});

window.addEventListener('message', async (event) => {
  if (event.origin !== location.origin || event.data !== 'terms accepted') return;
  await fetch('/pause');
  element('calculate').disabled = false;
});
