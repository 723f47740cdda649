// Pictures: the phases of a unit, the days of a project, bars.

const PHASES = ["investigation", "execution", "verification", "completion"];

// The phases of a unit as one bar; each width shows a duration.
function phases(unit) {
  const all = unit.phases || [];
  const size = phase => phase.ms || phase.tool_uses * 1000;
  const sum = all.reduce((total, phase) => total + size(phase), 0);
  if (!sum) return null;
  let at = 0;
  const label = all.map(phase => `${phase.phase} ${count(phase.tool_uses, "tool use")}, ${span(phase.ms)}`).join("; ");
  const parts = all.map(phase => {
    const width = size(phase) * 100 / sum;
    at += width;
    return svg("rect", { class: `p-${phase.phase}`, x: at - width, y: 0, width, height: 6 });
  });
  return svg("svg", { class: "phases", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("title", null, label), parts);
}

const legend = () => h("div", { class: "legend" }, PHASES.map(phase => h("span", null, h("i", { class: `p-${phase}` }), phase)));

// Active minutes of each day, the latest on the right; a click scrolls to the day.
function days(units, go) {
  const minutes = new Map(), failures = new Map();
  for (const unit of units) {
    const on = day(unit.started_at);
    minutes.set(on, (minutes.get(on) || 0) + (unit.active_ms || 0) / 60000);
    failures.set(on, (failures.get(on) || 0) + (unit.failures || 0));
  }
  const all = [...minutes.keys()].sort().slice(-60);
  if (all.length < 2) return null;
  const most = Math.max(...all.map(on => minutes.get(on)), 1), step = 600 / all.length, width = Math.min(step * 0.8, 28);
  const bars = all.map((on, at) => {
    const height = Math.max(1, minutes.get(on) * 60 / most), x = at * step + (step - width) / 2;
    const label = `${on}: ${span(minutes.get(on) * 60000)}, ${count(failures.get(on), "failure")}`;
    return svg("g", { onclick: () => go(on), role: "button", "aria-label": label }, svg("title", null, label),
      svg("rect", { x: at * step, y: 0, width: step, height: 66, fill: "transparent" }),
      svg("rect", { class: "f-bar", x, y: 66 - height, width, height, rx: 1 }));
  });
  return h("figure", { class: "small" }, svg("svg", { class: "days", viewBox: "0 0 600 84", preserveAspectRatio: "none", role: "img", "aria-label": "Active time by day" },
    svg("line", { class: "f-axis", x1: 0, x2: 600, y1: 66.5, y2: 66.5 }), bars),
    h("figcaption", { class: "legend" }, h("span", null, `${all[0]} to ${all[all.length - 1]}: active time by day, ${span(most * 60000)} on the longest`)));
}

// A bar of parts, each `[class, n]`, on a scale to `most`.
function bar(parts, most, label) {
  let at = 0;
  return svg("svg", { class: "phases", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("title", null, label),
    parts.map(([name, n]) => {
      const width = most ? n * 100 / most : 0;
      at += width;
      return svg("rect", { class: `f-bar ${name}`, x: at - width, y: 0, width, height: 6 });
    }));
}
