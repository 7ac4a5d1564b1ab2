export default function CustomerSearch({ onSearch }) {
  return <form role="search" />;
}
