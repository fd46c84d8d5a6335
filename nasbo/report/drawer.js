// The drawer: all that is known of one trial, under an address of its own (#trial-17).
const SVG = (() => {
  const holder = document.createElement("template");
  holder.innerHTML = "<svg></svg>";
  return holder.content.firstChild.namespaceURI;
})();

function draw(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", {}, ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function smallTable(titles, lines) {
  const head = titles.map((words) => make("th", { scope: "col" }, words));
  const body = lines.map((line) => make("tr", {}, ...line.map((one) => make("td", {}, one))));
  return make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

function section(words, ...content) {
  return make("section", {}, make("h3", {}, words), ...content);
}

function values(kind, row) {
  const own = [...trials.columns.values()].filter((one) => one.kind === kind);
  return own.filter((one) => one.values[row] !== null).map((one) => [one.title, textOf(one.values[row])]);
}

function resultOf(row) {
  const { get, metric } = trials;
  const told = (name) => (get(name, row) === null ? null : textOf(get(name, row)));
  const sd = told("expected_sd");
  const expected = told("expected") && `${told("expected")}${sd ? ` ± ${sd}` : ""}`;
  const isTwin = get("twin", row) !== null;
  return section("Result", facts([
    [metric, told("value") || "none"],
    ["expected without noise", expected],
    ["rank", told("rank")],
    ["subspace", told("subspace")],
    ["last step", told("step")],
    ["seconds", told("seconds")],
    ["same network as", isTwin ? make("a", { href: `#trial-${get("twin", row)}` }, `trial ${told("twin")}`) : null],
  ]));
}

function comparedText(row) {
  const { get, mode } = trials;
  const value = get("value", row);
  const [low, high] = [get("predicted_low", row), get("predicted_high", row)];
  if (value === null || low === null || high === null) return "";
  if (low <= value && value <= high) return "; the result is inside";
  return (value > high) === (mode === "max") ? "; the result is better" : "; the result is worse";
}

function reasonOf(row) {
  const { get } = trials;
  const [predicted, low, high] = ["predicted", "predicted_low", "predicted_high"].map((n) => get(n, row));
  const span = low === null || high === null ? "" : ` (${textOf(low)} to ${textOf(high)})`;
  const [name, score] = [get("acquisition", row), get("acquisition_value", row)];
  const gain = name === "log_ei" && score !== null ? Math.exp(score).toPrecision(3) : null;
  const round = get("round", row);
  return section("Why it was suggested", facts([
    ["source", get("source", row)],
    ["round", round === null ? null : round === 0 ? "0, the initial design" : String(round)],
    ["predicted", predicted === null ? null : `${textOf(predicted)}${span}${comparedText(row)}`],
    ["expected improvement", gain && `${gain} standard deviations of the scores`],
    ["acquisition", name && `${name} ${textOf(score)}`],
    ["", get("expects_nothing", row) ? "the method expected no improvement there" : null],
    ["reason", get("reason", row)],
    ["what the model thinks now", make("code", {}, `nasbo why ${trials.folder} ${get("trial", row)}`)],
  ]));
}

function endingOf(row) {
  const { get } = trials;
  const list = (value) => value && make("ul", {}, ...value.map((one) => make("li", {}, one)));
  return section("Ending", facts([
    ["state", get("state", row)],
    ["cause", get("cause", row)],
    ["message", get("message", row) && make("code", {}, get("message", row))],
    ["attempts", get("attempts", row) && String(get("attempts", row))],
    ["begun again", list(get("retries", row))],
    ["went on", list(get("went_on", row))],
    ["waits as", get("waits", row)],
  ]));
}

function repeatsOf(row) {
  const repeats = trials.get("repeats", row);
  if (!repeats) return [];
  const lines = repeats.map(([number, value, state]) => [String(number), textOf(value), state]);
  return [section("Repeats with other seeds", smallTable(["run", trials.metric, "state"], lines))];
}

function filesOf(row) {
  const path = `trials/${String(trials.get("trial", row)).padStart(5, "0")}`;
  const items = (trials.get("files", row) || []).map(([name, size]) => {
    const href = `${path}/${name.split("/").map(encodeURIComponent).join("/")}`;
    const words = trials.linked ? make("a", { href, target: "_blank", rel: "noopener" }, name) : name;
    return make("li", {}, words, size === undefined ? "" : ` ${sizeText(size)}`);
  });
  return section("Files", make("p", {}, make("code", {}, `${trials.folder}/${path}`)), make("ul", {}, ...items));
}

function sizeText(bytes) {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 3);
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${["B", "kB", "MB", "GB"][power]}`;
}

function curveOf(row) {
  const curve = trials.curve(row);
  if (!curve.length) return [];
  const lines = curve.map(([step, value]) => [String(step), textOf(value)]);
  const all = make("details", {}, make("summary", {}, `All ${curve.length} values`),
    smallTable(["step", trials.metric], lines));
  const picture = curve.length > 1 ? [drawCurve(curve)] : [];
  return [section("Learning curve", ...picture, all)];
}

function drawCurve(curve) {
  const [width, height, left, right, top, bottom] = [440, 190, 58, 14, 14, 30];
  const numbers = curve.map(([, value]) => value);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const [first, last] = [curve[0][0], curve[curve.length - 1][0]];
  const x = (step) => left + ((step - first) / (last - first || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low || 1)) * (height - top - bottom);
  const told = `${trials.metric} from ${textOf(numbers[0])} to ${textOf(numbers[numbers.length - 1])} over ${curve.length} reports`;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told });
  const words = (at, level, text, anchor) => draw("text",
    { x: at, y: level, class: "f-muted", "font-size": 11, "text-anchor": anchor }, text);
  const level = height - bottom;
  [low, high].forEach((value) => picture.append(
    draw("line", { class: "s-grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    words(left - 8, y(value) + 4, textOf(value), "end")));
  trials.rungs.filter((step) => step > first && step <= last).forEach((step) => picture.append(
    draw("line", { class: "s-muted", "stroke-dasharray": "4 4", x1: x(step), x2: x(step), y1: top, y2: level })));
  picture.append(words(left, level + 17, `step ${first}`, "start"), words(width - right, level + 17, String(last), "end"));
  const points = curve.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  picture.append(draw("polyline", { class: "line s-c1", points, "stroke-width": 2 }));
  const dot = draw("circle", { class: "dot f-c1", r: 4.5, visibility: "hidden" });
  const output = make("output", {}, told);
  picture.append(dot);
  picture.addEventListener("mousemove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const near = curve.reduce((a, b) => (Math.abs(x(b[0]) - at) < Math.abs(x(a[0]) - at) ? b : a));
    dot.setAttribute("cx", x(near[0]));
    dot.setAttribute("cy", y(near[1]));
    dot.setAttribute("visibility", "visible");
    output.textContent = `step ${near[0]}: ${textOf(near[1])}`;
  });
  return make("div", {}, picture, output);
}

function makeDrawer() {
  const heading = make("h2", { id: "drawer-title", tabindex: "-1" });
  const body = make("div", { class: "facts" });
  const turn = (words, by) => make("button", { type: "button", onclick: () => walk(by) }, words);
  const [back, on] = [turn("Previous", -1), turn("Next", 1)];
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = make("dialog", { id: "drawer", "aria-labelledby": "drawer-title" },
    make("header", {}, heading, back, on, close), body);
  document.body.append(dialog);
  let current = -1;

  // To the neighbour in the table, as it is sorted and filtered now.
  const neighbour = (by) => {
    const rows = table.rows();
    const at = rows.indexOf(current);
    return at < 0 ? undefined : rows[at + by];
  };
  function walk(by) {
    const row = neighbour(by);
    if (row !== undefined) location.replace(`#trial-${trials.numbers[row]}`);
  }

  function fill(row) {
    current = row;
    heading.textContent = `Trial ${trials.get("trial", row)}`;
    const pairs = values("metric", row);
    const metrics = pairs.length ? [section("Metrics of the last report", facts(pairs))] : [];
    body.replaceChildren(resultOf(row), ...curveOf(row), section("Config", facts(values("config", row))),
      reasonOf(row), endingOf(row), ...repeatsOf(row), ...metrics, filesOf(row));
    body.scrollTop = 0;
    [back.disabled, on.disabled] = [neighbour(-1) === undefined, neighbour(1) === undefined];
  }

  function follow() {
    const found = /^#trial-(\d+)$/.exec(location.hash);
    const row = found ? trials.rowOf.get(Number(found[1])) : undefined;
    if (row === undefined) {
      if (dialog.open) dialog.close();
      return;
    }
    fill(row);
    if (!dialog.open) {
      dialog.showModal();
      heading.focus();
    }
  }

  dialog.addEventListener("close", () => {
    if (location.hash.startsWith("#trial-")) history.replaceState(null, "", location.href.split("#")[0]);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside the drawer
  });
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const mark = event.target.closest && event.target.closest("svg [data-key]");
    const near = nearestCurve(event);
    const row = near ? near.row : mark ? rowOfKey(mark.dataset.key) : undefined;
    if (row !== undefined) location.hash = `trial-${trials.numbers[row]}`;
  });
  document.body.classList.add("has-trials");
  follow();
}

if (trials) makeDrawer();
