// Before anything is drawn: the colours that were chosen in this browser, else the system's.
try {
  const theme = localStorage.getItem("astra-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is forbidden here: the system's colours
}
