import { useState } from 'react';

import CompanyForm from './components/CompanyForm.jsx';
import CompanyList from './components/CompanyList.jsx';

export default function App() {
  const [companies, setCompanies] = useState([]);

  return (
    <main>
      <h1>Companies</h1>
      <CompanyForm onSubmit={(company) => setCompanies((known) => [...known, company])} />
      <CompanyList companies={companies} />
    </main>
  );
}
