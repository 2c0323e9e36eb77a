// A task's or a campaign's page: follows releases, draws the estimate, and keeps it as a PNG. Works without other files than this server's.
"use strict";
(() => {
  const live = document.getElementById("live");
  if (!live) return;
  const state = document.getElementById("state");
  const figure = document.getElementById("figure");
  const holder = document.getElementById("chart");
  const words = document.getElementById("chart-words");
  const png = document.getElementById("png");
  const AGAIN_MS = 5000, LEAST_MS = 700;
  let data = null, plot = null, busy = false, wanted = false;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (more) => ({
    stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") },
    font: "13px system-ui", labelFont: "13px system-ui", ...more,
  });
  const size = () => ({ width: Math.max(240, holder.clientWidth), height: 320 });

  // The ends of bands and error bars have no lines of their own.
  const UNSEEN = { stroke: "transparent", points: { show: false } };
  // What a chart of each kind is to uPlot: its columns, and its options.
  const KINDS = {
    line: (d) => [[d.x, d.low, d.high, d.y], {
      scales: { x: { time: false } },
      series: [{}, UNSEEN, UNSEEN,
        { stroke: colour("--accent"), width: 2, points: { show: d.x.length < 40 } }],
      bands: [{ series: [2, 1], fill: colour("--band") }],
      axes: [axis({ label: d.across }), axis({ size: 60, label: "estimate" })],
    }],
    bars: (d) => {
      const places = d.names.map((_, place) => place);
      const longest = Math.max(...d.names.map((name) => short(name).length));
      return [[places, d.y, d.low, d.high], {
        scales: { x: { time: false, range: [-0.6, d.names.length - 0.4] }, y: { range: (_, low, high) => [Math.min(0, low), high * 1.05] } },
        series: [{}, { stroke: colour("--accent"), fill: colour("--band"), width: 2, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } },
          UNSEEN, UNSEEN],
        axes: [axis({ splits: places, values: (_, found) => found.map((place) => short(d.names[place] ?? "")), rotate: -45, size: 24 + 6 * longest, grid: { show: false } }),
          axis({ size: 60, label: "estimate" })],
        hooks: { draw: [(u) => whiskers(u, d)] },
      }];
    },
  };
  const short = (name) => (name.length > 18 ? name.slice(0, 17) + "…" : name);

  function whiskers(u, d) {
    const pen = u.ctx, half = 5 * devicePixelRatio;
    pen.save();
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 1.5 * devicePixelRatio;
    pen.beginPath();
    d.names.forEach((_, place) => {
      const x = u.valToPos(place, "x", true), from = u.valToPos(d.low[place], "y", true), to = u.valToPos(d.high[place], "y", true);
      pen.moveTo(x, from); pen.lineTo(x, to);
      for (const y of [from, to]) { pen.moveTo(x - half, y); pen.lineTo(x + half, y); }
    });
    pen.stroke();
    pen.restore();
  }

  function draw() {
    if (!data || !figure) return;
    place();
    figure.hidden = false;
    png.hidden = false;
    words.textContent = data.note || data.band || "";
    const [columns, options] = KINDS[data.kind](data);
    if (plot) plot.destroy();
    plot = new uPlot({ ...size(), legend: { show: false }, cursor: { show: false }, ...options }, columns, holder);
  }

  // The picture stays when the part around it is replaced.
  function place() {
    const room = document.getElementById("picture");
    if (figure && room) room.append(figure);
  }

  async function fetchChart() {
    if (!live.dataset.chart) return;
    const grows = data && data.kind === "line" && data.x.length > 0;
    const after = grows ? data.x[data.x.length - 1] : 0;
    const answer = await fetch(`${live.dataset.chart}?after=${after}`);
    if (!answer.ok) return;
    const found = await answer.json();
    if (!found) return;
    if (grows && found.kind === "line") for (const name of ["x", "y", "low", "high"]) data[name].push(...found[name]);
    else data = found;
    draw();
  }

  async function refresh() {
    if (busy) { wanted = true; return; }
    busy = true;
    try {
      const answer = await fetch(live.dataset.part);
      if (answer.ok) {
        const focused = document.activeElement && live.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
        live.innerHTML = await answer.text();
        place();
        if (focused) live.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
      }
      await fetchChart();
    } catch (failed) {
      state.textContent = "The analyzer does not answer; the page tries again.";
    } finally {
      setTimeout(() => { busy = false; if (wanted) { wanted = false; refresh(); } }, LEAST_MS);
    }
  }

  function follow() {
    const events = new EventSource(live.dataset.events);
    events.onopen = () => { state.textContent = "Live: moves with every release."; };
    events.onmessage = (event) => { live.dataset.seen = event.data; refresh(); };
    events.onerror = () => {
      state.textContent = "Not connected; the page tries again.";
      if (events.readyState === EventSource.CLOSED) { events.close(); setTimeout(follow, AGAIN_MS); }
    };
  }

  function keep() {
    // The canvas is transparent: the picture gets the page's background.
    const canvas = holder.querySelector("canvas"), copy = document.createElement("canvas");
    copy.width = canvas.width; copy.height = canvas.height;
    const pen = copy.getContext("2d");
    pen.fillStyle = colour("--back");
    pen.fillRect(0, 0, copy.width, copy.height);
    pen.drawImage(canvas, 0, 0);
    copy.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${live.dataset.name}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  if (png) png.addEventListener("click", keep);
  if (holder) new ResizeObserver(() => { if (plot) plot.setSize(size()); }).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  fetchChart().catch(() => {});
  follow();
})();
