// The planner: sliders beside its numbers, and a plan whenever one of them rests.
"use strict";
(() => {
  const form = document.getElementById("wishes");
  const answer = document.getElementById("answer");
  const state = document.getElementById("state");
  const REST_MS = 250, STEPS = 1000;
  let timer = 0, asked = null;

  const SCALES = {
    tens: { to: (part, low, high) => low * (high / low) ** part, from: (value, low, high) => Math.log(value / low) / Math.log(high / low) },
    even: { to: (part, low, high) => low + (high - low) * part, from: (value, low, high) => (value - low) / (high - low) },
  };

  for (const slider of form.querySelectorAll("input[type=range]")) {
    const number = document.getElementById(slider.dataset.for), scale = SCALES[slider.dataset.scale];
    const low = Number(slider.dataset.least), high = Number(slider.dataset.most);
    const put = () => {
      const value = Number(number.value.replaceAll(",", ""));
      if (value >= low && value <= high) slider.value = String(Math.round(STEPS * scale.from(value, low, high)));
      slider.setAttribute("aria-valuetext", number.value);
    };
    slider.hidden = false;
    put();
    slider.addEventListener("input", () => {
      const value = Number(scale.to(Number(slider.value) / STEPS, low, high).toPrecision(2));
      number.value = slider.dataset.whole !== undefined ? String(Math.round(value)) : String(value);
      slider.setAttribute("aria-valuetext", number.value);
    });
    number.addEventListener("input", put);
  }

  function suit() {
    const kind = form.elements.protocol.value;
    for (const field of form.querySelectorAll("[data-only]")) field.hidden = !field.dataset.only.split(" ").includes(kind);
  }

  async function plan() {
    const query = new URLSearchParams(new FormData(form));
    asked?.abort();
    asked = new AbortController();
    state.textContent = "Planning …";
    try {
      const found = await fetch(`/plan/part?${query}`, { signal: asked.signal });
      if (!found.ok) throw new Error(String(found.status));
      answer.innerHTML = await found.text();
      state.textContent = "";
      history.replaceState(null, "", `/plan?${query}`);
    } catch (failed) {
      if (failed.name !== "AbortError") state.textContent = "The analyzer does not answer: try again.";
    }
  }

  form.addEventListener("input", () => { suit(); clearTimeout(timer); timer = setTimeout(plan, REST_MS); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); plan(); });
  suit();
})();
