// What the pointer tells, and the page of a server that draws itself anew.
{
  const hint = document.getElementById("hint");
  let lit = [];

  function show(text, event) {
    hint.textContent = text;
    hint.style.visibility = "visible";
    const box = hint.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const below = event.clientY + 16;
    const top = below + box.height > window.innerHeight ? event.clientY - box.height - 12 : below;
    hint.style.left = Math.max(left, 4) + "px";
    hint.style.top = Math.max(top, 4) + "px";
  }

  function hide() {
    hint.style.visibility = "hidden";
    lit.forEach((shape) => shape.classList.remove("on"));
    lit = [];
  }

  // All marks of one trial light up together, in every figure of its sweep.
  function light(shape) {
    const key = shape.dataset.key;
    const own = shape.closest("[data-sweep]");
    const scope = own ? `[data-sweep="${own.dataset.sweep}"] ` : "";
    lit = key ? [...document.querySelectorAll(`${scope}[data-key="${key}"]`)] : [shape];
    lit.forEach((one) => one.classList.add("on"));
  }

  const matrices = new WeakMap();
  function matrix(image) {
    if (!matrices.has(image)) {
      const { values, labels } = image.dataset;
      matrices.set(image, { values: JSON.parse(values), labels: JSON.parse(labels) });
    }
    return matrices.get(image);
  }

  function cell(image, event) {
    const box = image.getBoundingClientRect();
    const { values, labels } = matrix(image);
    const row = Math.floor(((event.clientY - box.top) / box.height) * values.length);
    const column = Math.floor(((event.clientX - box.left) / box.width) * values[0].length);
    const value = (values[row] || [])[column];
    return value === undefined ? "" : `${labels[row]}\nattends to ${labels[column]}: ${value}`;
  }

  // Marks of trials say only what the data of the page does not.
  function hintOf(shape, event) {
    const { label, key, values } = shape.dataset;
    if (values) return cell(shape, event);
    const row = rowOfKey(key);
    const isMore = !label || label.startsWith("\n");
    return (isMore && row !== undefined ? wordsOf(row) : "") + (label || "");
  }

  document.addEventListener("mousemove", (event) => {
    const near = nearestCurve(event);
    const found = event.target.closest && event.target.closest("[data-label], [data-key], .heat");
    const shape = near ? near.shape : found;
    if (!shape) {
      hide();
      return;
    }
    if (!lit.includes(shape)) {
      hide();
      light(shape);
    }
    const text = near ? near.text : hintOf(shape, event);
    if (text) show(text, event);
  });
  document.addEventListener("mouseleave", hide);

  // What can be scrolled sideways can be reached by keyboard.
  function reachScrolling() {
    document.querySelectorAll(".scroll").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("resize", reachScrolling);
  requestAnimationFrame(reachScrolling);

  // A served page looks whether the sweep has gone on, and draws itself anew if so.
  const version = document.body.dataset.version;
  if (version) {
    setInterval(async () => {
      try {
        const answer = await fetch("version", { cache: "no-store" });
        if (answer.ok && (await answer.text()) !== version) location.reload();
      } catch (error) {
        document.title = "(server ended) " + document.title.replace("(server ended) ", "");
      }
    }, 2000);
  }
}
