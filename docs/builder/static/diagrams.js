// Draws the diagrams of a page, in the colours of the page, and again when somebody changes them.
(() => {
  const places = [...document.querySelectorAll("pre.mermaid")];
  const sources = places.map((place) => place.textContent);
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let drawn = null;

  const isDark = () => {
    const theme = document.body.dataset.theme;
    return theme === "dark" || (theme !== "light" && prefersDark.matches);
  };

  const draw = async () => {
    const theme = isDark() ? "dark" : "neutral";
    if (theme === drawn) return;
    drawn = theme;
    mermaid.initialize({ startOnLoad: false, theme, securityLevel: "strict", fontFamily: "Arial, Helvetica, sans-serif" });
    for (const [number, place] of places.entries()) {
      const { svg } = await mermaid.render(`diagram-${number}-${theme}`, sources[number]);
      place.innerHTML = svg;
      place.querySelector("svg").setAttribute("role", "img");
      place.querySelector("svg").setAttribute("aria-label", place.dataset.label);
    }
  };

  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
  prefersDark.addEventListener("change", draw);
  draw();
})();
