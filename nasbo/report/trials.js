// The trials of the page: columns in short forms become arrays with a value per row.
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

function decode(column) {
  const { levels, codes, at, mask, values } = column;
  if (codes !== undefined) {
    const levelOf = new Map([...ALPHABET].map((sign, number) => [sign, levels[number]]));
    return Array.from(codes, (sign) => levelOf.get(sign));
  }
  if (at) return at.map((number) => levels[number]);
  if (!mask) return values;
  let next = 0;
  return Array.from(mask, (bit) => (bit === "1" ? values[next++] : null));
}

function readTrials() {
  const holder = document.getElementById("trial-data");
  if (!holder) return null;
  const told = JSON.parse(holder.textContent);
  const columns = new Map(
    told.columns.map((one) => [one.name, { ...one, values: decode(one) }])
  );
  const numbers = columns.get("trial").values;
  const rowOf = new Map(numbers.map((number, row) => [number, row]));
  const get = (name, row) => (columns.has(name) ? columns.get(name).values[row] : null);
  numbers.forEach((_, row) => {
    (get("repeats", row) || []).forEach(([run]) => rowOf.set(run, row));
  });
  const listOf = decode(told.curves.of);
  const curves = decode({ mask: told.curves.mask, values: told.curves.values });
  const curve = (row) => {
    if (!curves[row]) return [];
    const steps = told.curves.steps[listOf[row]];
    return curves[row].map((value, place) => [steps[place], value]);
  };
  return { ...told, columns, numbers, rowOf, get, curve, n: numbers.length };
}

function textOf(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.map(textOf).join(" ");
  if (typeof value === "object") {
    return Object.entries(value).map(([key, item]) => `${key}=${textOf(item)}`).join(" ");
  }
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(5)));
}

// An element with attributes, listeners ("onclick") and children, which may be text.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  });
  made.append(...children);
  return made;
}

function rowOfKey(key) {
  const found = trials && /^t(\d+)$/.exec(key || "");
  return found ? trials.rowOf.get(Number(found[1])) : undefined;
}

function originOf(row) {
  const round = trials.get("round", row);
  return `${round === null ? "" : `round ${round}, `}${trials.get("source", row)}`;
}

// A trial in a few lines, for the pointer.
function wordsOf(row) {
  const { get, metric } = trials;
  const value = get("value", row);
  const how = get("cause", row) || get("state", row);
  const result = value === null ? how : `${metric} ${textOf(value)}`;
  return `trial ${get("trial", row)}: ${result}\n${textOf(get("subspace", row))}\n${originOf(row)}`;
}

const trials = readTrials();
