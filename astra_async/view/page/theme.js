// The button that switches between the system's colors, light and dark.

/** Bind the button; return the function that switches. */
export function theme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const draw = () => {
    const now = root.dataset.theme ?? "system";
    button.textContent = { system: "◐", light: "○", dark: "●" }[now];
    button.title = `Colours: ${now} (T)`;
    button.setAttribute("aria-label", button.title);
  };
  const next = () => {
    const after = { system: "light", light: "dark", dark: "system" }[root.dataset.theme ?? "system"];
    if (after === "system") delete root.dataset.theme;
    else root.dataset.theme = after;
    try {
      localStorage.setItem("astra-theme", after);
    } catch {
      // storage is not available: the choice is kept for this visit only
    }
    draw();
    dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", next);
  draw();
  return next;
}
