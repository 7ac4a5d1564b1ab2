import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import App from './App.jsx';
import './styles.css';

/** What the page begins with; `price` is the price of one piece in cents. */
const ITEMS = [
  { id: 1, name: 'Tomatoes', category: 'Vegetables', price: 45, quantity: 6, bought: false },
  { id: 2, name: 'Rye bread', category: 'Bakery', price: 320, quantity: 1, bought: false },
  { id: 3, name: 'Olive oil', category: 'Pantry', price: 899, quantity: 1, bought: true },
  { id: 4, name: 'Apples', category: 'Fruit', price: 60, quantity: 10, bought: false },
];

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <App items={ITEMS} />
  </StrictMode>,
);
