import CompanyForm from './components/CompanyForm.jsx';
import CompanyList from './components/CompanyList.jsx';

export default function App() {
  return (
    <main>
      <h1>Companies</h1>
      <CompanyForm />
      <CompanyList companies={[]} />
    </main>
  );
}
