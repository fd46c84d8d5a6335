// Learning curves: the nearest one under the pointer with its value there, and those of a subspace.
const REACH = 14;
const figures = [...document.querySelectorAll("figure")];
const curveFigure = trials && figures.find((one) => one.dataset.figure === "learning-curves");
const curveImage = curveFigure && curveFigure.querySelector("svg");
let curveLines = null;

function linesOf(image) {
  if (!curveLines) {
    const lines = [...image.querySelectorAll("polyline[data-key]")];
    curveLines = lines.map((shape) => {
      const numbers = shape.getAttribute("points").split(/[ ,]/).map(Number);
      const xs = numbers.filter((_, at) => at % 2 === 0);
      const ys = numbers.filter((_, at) => at % 2 === 1);
      return { shape, row: rowOfKey(shape.dataset.key), xs, ys };
    });
  }
  return curveLines;
}

function heightAt({ xs, ys }, x) {
  if (x < xs[0] - 3 || x > xs[xs.length - 1] + 3) return NaN;
  let at = xs.findIndex((one) => one >= x);
  if (at <= 0) at = at === 0 ? 0 : xs.length - 1;
  if (at === 0 || xs[at] === xs[at - 1]) return ys[at];
  const part = Math.min((x - xs[at - 1]) / (xs[at] - xs[at - 1]), 1);
  return ys[at - 1] + part * (ys[at] - ys[at - 1]);
}

// The curve nearest to the pointer, if it is near at all.
function nearestCurve(event) {
  if (!curveImage || !curveImage.contains(event.target)) return null;
  const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(curveImage.getScreenCTM().inverse());
  let [best, least] = [null, REACH];
  linesOf(curveImage).forEach((line) => {
    const isHidden = ["away", "off"].some((kind) => line.shape.classList.contains(kind));
    if (isHidden || line.row === undefined) return;
    const apart = Math.abs(heightAt(line, place.x) - place.y);
    if (apart < least) [best, least] = [line, apart];
  });
  if (!best) return null;
  const { xs, row, shape } = best;
  const at = xs.reduce((a, x, b) => (Math.abs(x - place.x) < Math.abs(xs[a] - place.x) ? b : a), 0);
  const [step, value] = trials.curve(row)[at];
  return { shape, row, text: `${wordsOf(row)}${shape.dataset.label || ""}\nstep ${step}: ${textOf(value)}` };
}

function filterCurves() {
  const names = trials.columns.get("subspace").values;
  const marks = [...curveImage.querySelectorAll("[data-key]")].map((mark) => [mark, rowOfKey(mark.dataset.key)]);
  const known = [...new Set(marks.map(([, row]) => names[row]))].filter((name) => name !== undefined).sort();
  if (known.length < 2) return;
  const options = ["", ...known].map((name) => make("option", { value: name }, name || "all"));
  const select = make("select", { onchange: () => marks.forEach(([mark, row]) =>
    mark.classList.toggle("away", select.value !== "" && names[row] !== select.value)) }, ...options);
  curveFigure.querySelector("h2").after(make("div", { class: "filters" }, make("label", {}, "subspace", select)));
}

if (curveImage) filterCurves();
