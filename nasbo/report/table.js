// The table of all trials: sorted, filtered, searched, and shown a page at a time.
const PAGE_ROWS = 25;
const COMPARISON = /^([^<>=\s]+)(<=|>=|<|>|=)(.+)$/;

function columnOf(name) {
  const { columns, metric } = trials;
  if (name === metric) return columns.get("value");
  const found = [`config.${name}`, name, `metrics.${name}`].map((one) => columns.get(one));
  return found.find((one) => one && one.kind !== "detail");
}

function holds(value, sign, wanted) {
  if (Array.isArray(value)) {
    return (sign === "=" && textOf(value) === wanted) || value.some((v) => holds(v, sign, wanted));
  }
  if (value === null) return false;
  const number = Number(wanted);
  if (sign === "=") {
    const isSame = typeof value === "number" && wanted !== "" && value === number;
    return isSame || textOf(value).toLowerCase() === wanted;
  }
  if (typeof value !== "number" || Number.isNaN(number)) return false;
  if (sign === "<") return value < number;
  if (sign === ">") return value > number;
  return sign === "<=" ? value <= number : value >= number;
}

let configTexts = null;
function configText(row) {
  if (!configTexts) configTexts = new Array(trials.n);
  if (configTexts[row] === undefined) {
    const own = [...trials.columns.values()].filter((one) => one.kind === "config");
    const known = own.filter((one) => one.values[row] !== null);
    const parts = known.map((one) => `${one.title}=${textOf(one.values[row])}`);
    configTexts[row] = parts.join(" ").toLowerCase();
  }
  return configTexts[row];
}

// A query is words and comparisons, all of which must hold; quotes keep words together.
function parseQuery(query) {
  const terms = query.match(/"[^"]*"|\S+/g) || [];
  return terms.map((term) => {
    const found = COMPARISON.exec(term);
    const column = found && columnOf(found[1]);
    if (column) return (row) => holds(column.values[row], found[2], found[3].toLowerCase());
    const word = term.replaceAll('"', "").toLowerCase();
    return (row) => configText(row).includes(word);
  });
}

function chosenRows(view) {
  const tests = parseQuery(view.query);
  ["subspace", "state", "cause"].forEach((name) => {
    const column = trials.columns.get(name);
    if (view[name] && column) tests.push((row) => String(column.values[row]) === view[name]);
  });
  const { values } = trials.columns.get("value") || { values: [] };
  const low = parseFloat(view.low);
  const high = parseFloat(view.high);
  const isKnown = (row) => typeof values[row] === "number";
  if (!Number.isNaN(low)) tests.push((row) => isKnown(row) && values[row] >= low);
  if (!Number.isNaN(high)) tests.push((row) => isKnown(row) && values[row] <= high);
  const rows = [];
  for (let row = 0; row < trials.n; row++) if (tests.every((test) => test(row))) rows.push(row);
  return rows;
}

function sortRows(rows, name, isDown) {
  const { values } = trials.columns.get(name);
  const plain = (value) => (typeof value === "number" ? value : textOf(value));
  const keys = values.map((value) => (value === null ? null : plain(value)));
  return rows.sort((a, b) => {
    const [one, other] = [keys[a], keys[b]];
    if (one === other) return a - b;
    if (one === null || other === null) return one === null ? 1 : -1; // none always comes last
    const [left, right] = typeof one === typeof other ? [one, other] : [typeof one, typeof other];
    const order = left < right ? -1 : 1;
    return isDown ? -order : order;
  });
}

function makeTable(place) {
  const { columns } = trials;
  const offered = [...columns.values()].filter((one) => one.kind !== "detail");
  const start = {
    query: "", subspace: "", state: "", cause: "", low: "", high: "",
    sort: columns.has("rank") ? "rank" : "trial", isDown: false, page: 0,
    shown: offered.filter((one) => one.shown).map((one) => one.name), marks: false,
  };
  // A served page that draws itself anew keeps what its reader had chosen.
  const isServed = Boolean(document.body.dataset.version);
  const memory = `nasbo-trials:${location.pathname}`;
  const view = { ...start, ...(isServed && JSON.parse(sessionStorage.getItem(memory) || "{}")) };
  let rows = [];

  const labelled = (words, control, kind = "") => make("label", { class: kind }, words, control);
  const changed = (name) => (event) => {
    view[name] = event.target.value;
    view.page = 0;
    apply();
  };
  const input = (name, attributes) =>
    make("input", { value: view[name], oninput: changed(name), ...attributes });
  function select(name) {
    const column = columns.get(name);
    if (!column) return [];
    const known = [...new Set(column.values)].filter((value) => value !== null).sort();
    const options = known.map((value) =>
      make("option", { value, selected: value === view[name] }, String(value))
    );
    const all = make("option", { value: "" }, "all");
    return [labelled(column.title, make("select", { onchange: changed(name) }, all, ...options))];
  }

  const count = make("output", { "aria-live": "polite" });
  const head = make("tr");
  const body = make("tbody");
  const position = make("span");
  const pager = make("nav", { "aria-label": "pages of trials", class: "pager" });
  const turns = [["First", () => 0], ["Previous", () => view.page - 1],
    ["Next", () => view.page + 1], ["Last", () => lastPage()]].map(([words, to]) =>
    make("button", { type: "button", onclick: () => { view.page = to(); render(); } }, words));
  pager.append(turns[0], turns[1], position, turns[2], turns[3]);

  const lastPage = () => Math.max(Math.ceil(rows.length / PAGE_ROWS) - 1, 0);

  function chooser() {
    const boxes = offered.map((one) => {
      const box = make("input", {
        type: "checkbox",
        checked: view.shown.includes(one.name),
        disabled: one.name === "trial",
        onchange: () => {
          view.shown = offered.map((o) => o.name).filter((name) =>
            name === one.name ? box.checked : view.shown.includes(name));
          render();
        },
      });
      return make("label", {}, box, one.title);
    });
    return make("details", { class: "columns" }, make("summary", {}, "Columns"),
      make("div", {}, ...boxes));
  }

  function sortBy(column) {
    const isSame = view.sort === column.name;
    const isBestDown = ["value", "expected"].includes(column.name) && trials.mode === "max";
    view.isDown = isSame ? !view.isDown : isBestDown;
    view.sort = column.name;
    view.page = 0;
    apply();
  }

  function title(column) {
    const isSorted = view.sort === column.name;
    const sign = make("span", { "aria-hidden": "true" }, isSorted ? (view.isDown ? " ▼" : " ▲") : "");
    const button = make("button", {
      type: "button", "data-column": column.name, onclick: () => sortBy(column),
    }, column.title, sign);
    const sort = isSorted ? (view.isDown ? "descending" : "ascending") : null;
    return make("th", { scope: "col", "aria-sort": sort }, button);
  }

  function cell(column, row) {
    const value = column.values[row];
    const text = textOf(value);
    if (column.name === "trial") {
      return make("th", { scope: "row" }, make("a", { href: `#trial-${value}` }, text));
    }
    const kind = typeof value === "number" ? "n" : column.name === "state" ? `state ${value}` : "";
    return make("td", { class: kind, title: text.length > 24 ? text : null }, text);
  }

  function render() {
    view.page = Math.min(Math.max(view.page, 0), lastPage());
    const first = view.page * PAGE_ROWS;
    const shown = offered.filter((one) => view.shown.includes(one.name));
    const focused = document.activeElement && document.activeElement.dataset.column;
    head.replaceChildren(...shown.map(title));
    if (focused) head.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus();
    const lines = rows.slice(first, first + PAGE_ROWS).map((row) =>
      make("tr", { "data-row": row }, ...shown.map((column) => cell(column, row))));
    body.replaceChildren(...lines);
    const last = Math.min(first + PAGE_ROWS, rows.length);
    position.textContent = rows.length ? `${first + 1}–${last} of ${rows.length}` : "none";
    turns.forEach((button, at) => {
      button.disabled = at < 2 ? view.page === 0 : view.page === lastPage();
    });
    if (isServed) sessionStorage.setItem(memory, JSON.stringify(view));
  }

  function apply() {
    rows = sortRows(chosenRows(view), view.sort, view.isDown);
    count.textContent = `${rows.length} of ${trials.n} trials`;
    const hasFilter = ["query", "subspace", "state", "cause", "low", "high"].some((n) => view[n]);
    reset.disabled = !hasFilter;
    render();
    fadeMarks(view.marks && hasFilter ? new Set(rows) : null);
  }

  const reset = make("button", { type: "button", onclick: () => {
    Object.assign(view, start, { sort: view.sort, isDown: view.isDown, shown: view.shown,
      marks: view.marks });
    form.querySelectorAll("input:not([type=checkbox]), select").forEach((one) => { one.value = ""; });
    apply();
  } }, "Reset");
  const marks = make("input", { type: "checkbox", checked: view.marks, onchange: () => {
    view.marks = marks.checked;
    apply();
  } });
  const form = make("form", { class: "filters", role: "search", onsubmit: (e) => e.preventDefault() },
    labelled("search in configs", input("query", { type: "search", placeholder: "words, name=value, name>value" }), "grow"),
    ...select("subspace"), ...select("state"), ...select("cause"),
    labelled(`${trials.metric} from`, input("low", { type: "number", step: "any" })),
    labelled("to", input("high", { type: "number", step: "any", "aria-label": `${trials.metric} to` })),
    reset,
    make("label", { class: "check" }, marks, "also in the figures"), chooser());
  const table = make("table", { class: "trials" },
    make("caption", { class: "unseen" }, "All trials that match the filters"),
    make("thead", {}, head), body);
  const box = make("div", { class: "scroll", role: "region", "aria-label": "all trials" }, table);
  place.replaceChildren(form, make("div", { class: "bar" }, count, pager), box);
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (!line || event.target.closest("a") || String(getSelection())) return;
    location.hash = `trial-${trials.numbers[line.dataset.row]}`;
  });
  apply();
  return { rows: () => rows };
}

// Marks of trials that are filtered out fade in all figures.
let keyed = null;
function fadeMarks(rows) {
  if (!keyed && !rows) return;
  if (!keyed) {
    const marks = [...document.querySelectorAll("svg [data-key]")];
    keyed = marks.map((mark) => [mark, rowOfKey(mark.dataset.key)]);
  }
  keyed.forEach(([mark, row]) => mark.classList.toggle("off", Boolean(rows) && !rows.has(row)));
}

const table = trials && makeTable(document.getElementById("trials"));
