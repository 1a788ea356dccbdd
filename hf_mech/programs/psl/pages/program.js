"use strict";
// The page of a program's run. `run` is ProgramRun.to_json(); cells, rows, registers and values are indices into it.
const run = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const NIL = "·";

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (mark) => escapes[mark]);
const word = (value) => run.values[value] ?? NIL;

// ---------------------------------------------------------------------------------------------------- states of cells

// Of each group: its first cell among all, its states before row 0, after each step, and the step of every row.
let cells = 0;
const groups = run.groups.map((group) => {
  const first = cells;
  cells += group.first.length;
  const states = [group.first];
  const stepOf = new Map();
  group.steps.forEach((step, index) => {
    let state = states[index];
    if (step.changes.length) {
      state = state.map((cell) => cell.slice());
      for (const [cell, register, value] of step.changes) state[cell][register] = value;
    }
    states.push(state);
    stepOf.set(step.row, index);
  });
  return { first, size: group.first.length, steps: group.steps, states, stepOf };
});
const groupOf = [];
groups.forEach((group, index) => { for (let i = 0; i < group.size; i++) groupOf.push(index); });
const symbol = (cell) => {
  const group = groups[groupOf[cell]];
  return word(group.states[0][cell - group.first][run.symbol]);
};

// The state of a cell at a row: {before, after, changed, read}; null if its group did not run the row. Row -1 is the input.
function stateAt(cell, row) {
  const group = groups[groupOf[cell]];
  const own = cell - group.first;
  if (row < 0) return { before: null, after: group.states[0][own], changed: new Set(), read: null };
  const step = group.stepOf.get(row);
  if (step === undefined) return null;
  const [before, after] = [group.states[step][own], group.states[step + 1][own]];
  const changed = new Set();
  if (before !== after) after.forEach((value, register) => { if (value !== before[register]) changed.add(register); });
  return { before, after, changed, read: group.steps[step].reads[own] ?? null };
}
// The input of a cell to a row: for the cell that is read. A group that left a block earlier replays its last repetition.
function inputAt(cell, row) {
  const group = groups[groupOf[cell]];
  for (let at = row; at >= 0; at--) {
    if (run.rows[at].layer === run.rows[row].layer && group.stepOf.has(at)) {
      return group.states[group.stepOf.get(at)][cell - group.first];
    }
  }
  return group.states[0][cell - group.first];
}

// ------------------------------------------------------------------------------------------------------------ choices

const shown = new Set(run.registers.flatMap((register, index) => (register.watched ? [index] : [])));
const chosen = { step: 0, cell: null, row: null, allLayers: false, allValues: false, tab: "cell" };
const last = () => (chosen.step === 0 ? groups[0].size : groups[chosen.step].first + groups[chosen.step].size);

function visibleRows() {
  const group = groups[chosen.step];
  const rows = [-1];
  group.steps.forEach((step) => {
    // A generated cell has few layers that do anything: those that change registers besides the shown ones, too.
    if (chosen.allLayers || step.changes.some(([, register]) => shown.has(register) || chosen.step > 0)) rows.push(step.row);
  });
  return rows;
}

function nameOf(layer) {
  const [head, ...rest] = layer.comment.split(":");
  return rest.length ? { name: head, about: rest.join(":").trim() } : { name: `Layer ${layer.number}`, about: layer.comment };
}
const repetition = (row) => (run.rows[row].repetitions.length ? `repetition ${run.rows[row].repetitions.join(".")}` : "");
function titleOf(row) {
  if (row < 0) return "before the first layer";
  const layer = run.layers[run.rows[row].layer - 1];
  const name = nameOf(layer).name;
  return [name.startsWith("Layer") ? name : `layer ${layer.number}, ${name}`, repetition(row)].filter(Boolean).join(", ");
}

// --------------------------------------------------------------------------------------------------------------- grid

const table = document.querySelector('[role="grid"]');
const scroller = find("scroller");
const arrow = document.querySelector("#canvas > svg path");

function drawGrid() {
  const from = chosen.step === 0 ? 0 : groups[chosen.step].first;
  const head = ['<tr><th scope="col" class="corner">layer</th>'];
  for (let cell = 0; cell < last(); cell++) {
    const kind = [cell >= groups[0].size && "made", chosen.step > 0 && cell >= from && "now"].filter(Boolean).join(" ");
    const position = word(groups[groupOf[cell]].states[0][cell - groups[groupOf[cell]].first][run.position]);
    head.push(`<th scope="col" class="${kind}" data-cell="${cell}"><span class="n">${escaped(position)}</span><span class="w">${escaped(symbol(cell))}</span></th>`);
  }
  table.tHead.innerHTML = `${head.join("")}</tr>`;
  const registers = run.registers.map((_, index) => index).filter((index) => shown.has(index));
  table.tBodies[0].innerHTML = visibleRows().map((row) => {
    const cellsOfRow = [];
    for (let cell = 0; cell < last(); cell++) cellsOfRow.push(drawCell(cell, row, registers, cell < from));
    const layer = row < 0 ? null : run.layers[run.rows[row].layer - 1];
    const again = layer !== null && run.rows[row].repetitions.some((number) => number > 1);
    const { name, about } = layer === null ? { name: "Input", about: "before the first layer" } : nameOf(layer);
    const count = row >= 0 && run.rows[row].repetitions.length ? `<span class="rep">↻ ${run.rows[row].repetitions.join(".")}</span>` : "";
    return `<tr data-row="${row}" class="${again ? "again" : ""}"><th scope="row"><button type="button" data-layer="${row}" tabindex="-1" aria-label="${escaped(titleOf(row))}"><span class="k">${layer === null ? "" : layer.number}</span><span><span class="name">${escaped(name)}</span>${count}</span><span class="about">${escaped(about)}</span></button></th>${cellsOfRow.join("")}</tr>`;
  }).join("");
}

function drawCell(cell, row, registers, past) {
  const state = stateAt(cell, row);
  const place = `role="gridcell" tabindex="-1" data-cell="${cell}"`;
  if (state === null) return `<td ${place} class="idle" aria-label="cell ${cell + 1} does not run this repetition"></td>`;
  const listed = chosen.step > 0 && !past ? run.registers.map((_, index) => index).filter((index) => shown.has(index) || state.changed.has(index)) : registers;
  const lines = listed
    .filter((register) => (row < 0 ? state.after[register] : chosen.allValues ? state.after[register] || state.changed.has(register) : state.changed.has(register)))
    .map((register) => `<span${state.changed.has(register) ? ' class="chg"' : ""}><i>${escaped(run.registers[register].short)}</i><b>${escaped(word(state.after[register]))}</b></span>`);
  const kind = [listed.some((register) => state.changed.has(register)) && "new", past && "past"].filter(Boolean).join(" ");
  return `<td ${place}${kind ? ` class="${kind}"` : ""} aria-label="${escaped(summary(cell, row, state))}">${lines.join("")}</td>`;
}

function summary(cell, row, state) {
  const parts = [`cell ${cell + 1}, ${symbol(cell)}`];
  const news = [...state.changed].map((register) => `${run.registers[register].name} becomes ${state.after[register] ? word(state.after[register]) : "nil"}`);
  if (row >= 0) parts.push(news.length ? news.join(", ") : "unchanged");
  if (state.read !== null) parts.push(state.read === cell ? "reads itself" : `reads cell ${state.read + 1}, ${symbol(state.read)}`);
  return parts.join("; ");
}

const cellAt = (row, cell) => table.querySelector(`tr[data-row="${row}"] td[data-cell="${cell}"]`);

// Marks the cell that `cell` reads in `row`, with an arrow from n to N.
function mark(cell, row) {
  for (const marked of table.querySelectorAll(".is-read")) marked.classList.remove("is-read");
  arrow.setAttribute("d", "");
  if (cell === null) return;
  const state = stateAt(cell, row);
  if (state === null || state.read === null || state.read === cell) return;
  const [from, to] = [cellAt(row, state.read), cellAt(row, cell)];
  if (!from || !to) return;
  from.classList.add("is-read");
  table.querySelector(`thead th[data-cell="${state.read}"]`).classList.add("is-read");
  const origin = find("canvas").getBoundingClientRect();
  const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
  const [x1, x2, y] = [(a.left + a.right) / 2 - origin.left, (b.left + b.right) / 2 - origin.left, a.top - origin.top];
  const lift = Math.min(30, 10 + Math.abs(x2 - x1) / 8);
  arrow.setAttribute("d", `M${x1} ${y}C${x1} ${y - lift} ${x2} ${y - lift} ${x2} ${y - 1}M${x2 - 4.5} ${y - 6.5}L${x2} ${y - 0.5}L${x2 + 4.5} ${y - 6.5}`);
}

function select(cell, row, focus = true) {
  table.querySelectorAll('[aria-selected="true"]').forEach((old) => { old.removeAttribute("aria-selected"); old.tabIndex = -1; });
  table.querySelectorAll("th.on").forEach((old) => old.classList.remove("on"));
  Object.assign(chosen, { cell, row });
  const element = cellAt(row, cell);
  if (element) {
    element.setAttribute("aria-selected", "true");
    element.tabIndex = 0;
    element.closest("tr").querySelector("th").classList.add("on");
    if (focus) {
      element.focus({ preventScroll: true });
      reveal(element);
    }
  }
  mark(cell, row);
  drawDetails();
}

// Scrolls the grid, and never the page, so that a cell is beside its sticky headers.
function reveal(element) {
  const box = scroller.getBoundingClientRect();
  const own = element.getBoundingClientRect();
  const top = box.top + table.tHead.offsetHeight;
  const left = box.left + table.tHead.querySelector(".corner").offsetWidth;
  if (own.top < top) scroller.scrollTop -= top - own.top;
  else if (own.bottom > box.bottom) scroller.scrollTop += Math.min(own.bottom - box.bottom, own.top - top);
  if (own.left < left) scroller.scrollLeft -= left - own.left + 4;
  else if (own.right > box.right) scroller.scrollLeft += Math.min(own.right - box.right + 4, own.left - left);
}

// ------------------------------------------------------------------------------------------------------------ details

function drawDetails() {
  for (const name of ["cell", "layer", "program"]) {
    const on = chosen.tab === name;
    find(`tab-${name}`).setAttribute("aria-selected", on);
    find(`tab-${name}`).tabIndex = on ? 0 : -1;
    find(name).hidden = !on;
  }
  ({ cell: drawCellPanel, layer: drawLayerPanel, program: drawProgramPanel })[chosen.tab]();
}

const text = (value) => (value ? word(value) : null);
const valueCell = (value, kind) => make("td", { class: `${kind}${value === null ? " nil" : ""}` }, value ?? NIL);

function drawCellPanel() {
  const { cell, row } = chosen;
  const state = stateAt(cell, row);
  const panel = find("cell");
  panel.replaceChildren(make("h2", {}, `Cell ${cell + 1}: `, make("code", {}, symbol(cell))), make("p", { class: "soft" }, row < 0 ? titleOf(row) : `after ${titleOf(row)}`));
  if (state === null) {
    panel.append(make("p", {}, "This cell had left the repeat block before this repetition."));
    return;
  }
  find("said").textContent = summary(cell, row, state);
  const read = row < 0 ? null : state.read;
  if (row >= 0) panel.append(readLine(cell, read, row));
  const other = read === null || read === cell ? null : inputAt(read, row);
  const head = make("tr", {}, make("th", { scope: "col" }, "register"), row < 0 ? null : make("th", { scope: "col" }, "before"), make("th", { scope: "col" }, row < 0 ? "value" : "after"), other && make("th", { scope: "col" }, `in cell ${read + 1}`));
  const body = make("tbody");
  run.registers.forEach((register, index) => {
    body.append(make("tr", { class: state.changed.has(index) ? "chg" : "" },
      make("th", { scope: "row" }, register.name, make("small", {}, register.short)),
      row < 0 ? null : valueCell(text(state.before[index]), "before"),
      valueCell(text(state.after[index]), "after"),
      other && valueCell(text(other[index]), "source")));
  });
  panel.append(make("table", { id: "cell-registers" }, make("thead", {}, head), body));
  if (row >= 0) panel.append(...production(run.layers[run.rows[row].layer - 1]));
}

function readLine(cell, read, row) {
  if (read === null) return make("p", {}, "No cell n matches: the cell keeps its state.");
  if (read === cell) return make("p", {}, "The tests hold in this cell: n = N.");
  return make("p", {}, "Reads n = ", make("button", { type: "button", class: "go", onclick: () => select(read, row) }, `cell ${read + 1}, ${symbol(read)}`), ": ", make("span", { class: "mono" }, `${read + 1} → ${cell + 1}`));
}

function production(layer) {
  if (!layer.text) return [];
  return [make("h3", {}, `Production ${layer.number}, line ${layer.line}`), make("pre", {}, make("code", {}, layer.text))];
}

const instruction = (source) => (Array.isArray(source) ? `${source[0]} ${source.slice(1).join(", ")}` : source);

function drawLayerPanel() {
  const panel = find("layer");
  if (chosen.row === null || chosen.row < 0) {
    panel.replaceChildren(make("p", {}, "The input: words, positions and flags. Choose a layer."));
    return;
  }
  const layer = run.layers[run.rows[chosen.row].layer - 1];
  const { q, k, v } = layer.qkvl.weights;
  const { name, about } = nameOf(layer);
  const flags = [layer.qkvl.right_match ? "reads the rightmost match" : "reads the leftmost match", layer.qkvl.causal_attn ? "causal: n ≤ N" : null].filter(Boolean).join("; ");
  const match = make("tbody", {}, ...Object.keys(q).map((target) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, target)), make("td", {}, make("code", {}, instruction(q[target]))), make("td", {}, make("code", {}, instruction(k[target]))))));
  const writes = make("tbody", {}, ...Object.entries(v).map(([target, source]) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, target)), make("td", {}, make("code", {}, instruction(source))))));
  panel.replaceChildren(
    make("h2", {}, name), about ? make("p", { class: "soft" }, about) : "",
    make("p", { class: "soft" }, flags),
    ...production(layer),
    make("h3", {}, "QKVL: the query of N must match the key of n"),
    make("table", { id: "match" }, columns("register", "query of N", "key of n"), match),
    make("h3", {}, "QKVL: the value of n"),
    make("table", {}, columns("register", "source"), writes),
    make("h3", {}, "Weights: every block that is not zero, a F + b J"),
    weightTable(layer),
    make("h3", {}, "Where the blocks are: from registers (rows) to registers (columns)"),
    make("div", { class: "maps" }, ...["query", "key", "value"].map((attribute) => blockMap(attribute, layer))),
    make("p", { class: "soft" }, "I: identity. A name: a function. J: all ones. e: one at the neurons of constants, in the bias, the last row of a map. ", `A block is ${run.sizes["values of a register"].toLocaleString("en")} wide and high.`),
    make("details", {}, make("summary", {}, "JSON of this layer"), make("pre", {}, make("code", {}, JSON.stringify(layer.qkvl, null, 1)))),
  );
}
const columns = (...names) => make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name))));
const minus = (number) => String(number).replace("-", "−");

function weightTable(layer) {
  const letters = { query: "q", key: "k", value: "v" };
  const rows = layer.blocks.map((block) => {
    const bias = block.source === null;
    const place = bias ? `b${letters[block.attribute]}[${block.target}]` : `W${letters[block.attribute]}[${block.source} → ${block.target}]`;
    const matrix = bias ? `e(${block.matrix})` : block.matrix;
    return make("tr", {}, make("th", { scope: "row" }, make("code", {}, place)), make("td", {}, make("code", {}, `${minus(block.scale)} ${matrix} + ${minus(block.shift)} ${bias ? "1" : "J"}`)));
  });
  return make("table", { id: "weights" }, columns("block", "a F + b J"), make("tbody", {}, ...rows));
}

// A map of one matrix: a square where a block is not zero. State registers down, the bias below them.
function blockMap(attribute, layer) {
  const blocks = layer.blocks.filter((block) => block.attribute === attribute);
  const sources = [...run.registers.map((register) => register.short), "b"];
  const targets = attribute === "value" ? run.registers.map((register) => register.short) : [...new Set(blocks.map((block) => block.target))];
  const [side, left, top] = [9, 20, 20];
  const [width, height] = [left + targets.length * side + 2, top + sources.length * side + 2];
  const parts = [`<rect x="${left}" y="${top}" width="${targets.length * side}" height="${sources.length * side}" fill="none" stroke="var(--edge)"/>`, `<line x1="${left}" x2="${width - 2}" y1="${height - 2 - side}" y2="${height - 2 - side}" stroke="var(--edge)" stroke-dasharray="2 2"/>`];
  for (const block of blocks) {
    const x = left + targets.indexOf(block.target) * side;
    const y = top + (block.source === null ? sources.length - 1 : sources.indexOf(block.source)) * side;
    parts.push(`<rect x="${x + 0.5}" y="${y + 0.5}" width="${side - 1}" height="${side - 1}" fill="var(--${block.shift ? "read" : "accent"})"/>`);
    parts.push(`<text x="${left - 3}" y="${y + side - 1.5}" text-anchor="end">${escaped(block.source ?? "b")}</text>`, `<text transform="translate(${x + side - 1.5} ${top - 3}) rotate(-90)">${escaped(block.target)}</text>`);
  }
  const figure = make("figure", {}, make("figcaption", {}, attribute));
  figure.insertAdjacentHTML("beforeend", `<svg role="img" aria-label="${attribute}: ${blocks.length} blocks" width="${width}" height="${height}">${parts.join("")}</svg>`);
  return figure;
}

function drawProgramPanel() {
  const panel = find("program");
  const layer = chosen.row === null || chosen.row < 0 ? null : run.layers[run.rows[chosen.row].layer - 1];
  const sizes = make("tbody", {}, ...Object.entries(run.sizes).map(([name, size]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, size.toLocaleString("en")))));
  const parts = [make("h2", {}, run.program), make("table", {}, sizes)];
  if (run.text) {
    const code = make("code");
    const height = layer ? layer.text.split("\n").length : 0;
    run.text.replace(/\n$/, "").split("\n").forEach((line, index) => {
      const own = layer !== null && layer.line > 0 && index + 1 >= layer.line && index + 1 < layer.line + height;
      const shownLine = [make("span", { class: "at", "aria-hidden": "true" }, index + 1), line];
      code.append(own ? make("mark", {}, ...shownLine) : make("span", {}, ...shownLine, "\n"));
    });
    parts.push(make("h3", {}, "PSL"), make("pre", { tabindex: "0" }, code));
  }
  parts.push(make("details", {}, make("summary", {}, "QKVL of the program, JSON"), make("pre", {}, make("code", {}, JSON.stringify(run.qkvl, null, 1)))));
  panel.replaceChildren(...parts);
  panel.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}

// -------------------------------------------------------------------------------------------------------------- steps

function drawSteps() {
  const prompt = make("button", { type: "button", "data-step": 0 }, run.prompt.join(" "));
  const made = run.completion.map((word, index) => make("button", { type: "button", "data-step": index + 1, disabled: index + 1 >= groups.length, title: index + 1 >= groups.length ? "The bound ended the run before this cell." : null, "aria-label": `generated word ${index + 1}: ${word}` }, word));
  find("words").replaceChildren(prompt, make("span", { class: "then", "aria-hidden": "true" }, "→"), ...made);
  if (!run.completion.length) find("words").append(make("span", { class: "soft" }, "no word"));
  if (!run.ended) find("words").append(make("span", { class: "soft" }, "… cut"));
}

function goTo(step, focus = false) {
  chosen.step = step;
  for (const button of find("words").querySelectorAll("button")) {
    const on = Number(button.dataset.step) === step;
    if (on) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    if (on) {
      const words = find("words");
      words.scrollLeft = step === 0 ? 0 : button.offsetLeft - words.offsetLeft - words.clientWidth / 2;
      if (focus) button.focus({ preventScroll: true });
    }
  }
  find("back").disabled = step === 0;
  find("forth").disabled = step === groups.length - 1;
  const next = run.completion[step];
  const says = next === undefined ? "then ends the completion" : `writes word ${step + 1}, ${next}`;
  find("where").textContent = step === 0
    ? `The prompt: ${groups[0].size} cells are updated at once; the last one ${says}.`
    : `Generated cell ${last()}, ${symbol(last() - 1)}: begins with the final state of cell ${last() - 1}, and ${says}.`;
  redraw(true);
}

function redraw(anew = false) {
  drawGrid();
  const rows = visibleRows();
  if (anew || chosen.row === null) {
    const group = groups[chosen.step];
    const cell = chosen.step > 0 ? group.first : chosen.cell !== null && chosen.cell < last() ? chosen.cell : 0;
    scroller.scrollTop = 0;
    select(cell, rows.includes(chosen.row) && chosen.step === 0 ? chosen.row : rows[Math.min(1, rows.length - 1)], false);
    if (chosen.step > 0) reveal(cellAt(rows[0], cell));
    return;
  }
  select(chosen.cell, rows.includes(chosen.row) ? chosen.row : rows[0], false);
}

// The first cell that a shown register of another cell changes: the page opens with it.
function firstRead() {
  for (const step of groups[0].steps) {
    for (const [cell, register] of step.changes) {
      if (shown.has(register) && (step.reads[cell] ?? cell) !== cell) return [cell, step.row];
    }
  }
  return null;
}

// ------------------------------------------------------------------------------------------------------------- events

const tip = find("tip");
function showTip(element) {
  const [cell, row] = [Number(element.dataset.cell), Number(element.parentElement.dataset.row)];
  const state = stateAt(cell, row);
  if (state === null) return;
  const list = make("dl");
  run.registers.forEach((register, index) => {
    const kind = state.changed.has(index) ? "chg" : "";
    if (state.after[index] || kind) list.append(make("dt", {}, register.name), make("dd", { class: kind }, word(state.after[index])));
  });
  const read = row < 0 || state.read === null ? "" : state.read === cell ? "n = N" : `reads ${state.read + 1} → ${cell + 1}`;
  tip.replaceChildren(make("strong", {}, `Cell ${cell + 1}, ${symbol(cell)}`), read ? `  ${read}` : "", list);
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const below = box.bottom + 6 + height < window.innerHeight;
  tip.style.left = `${Math.max(6, Math.min(box.left, window.innerWidth - width - 6))}px`;
  tip.style.top = `${below ? box.bottom + 6 : Math.max(6, box.top - height - 6)}px`;
}
let waiting = null;
function hideTip() { clearTimeout(waiting); tip.hidden = true; }

table.addEventListener("click", (event) => {
  const layer = event.target.closest("[data-layer]");
  if (layer) {
    const row = Number(layer.dataset.layer);
    chosen.tab = "layer";
    select(chosen.cell, row, false);
    return;
  }
  const cell = event.target.closest("td");
  if (cell) select(Number(cell.dataset.cell), Number(cell.parentElement.dataset.row));
});
table.addEventListener("pointerover", (event) => {
  const cell = event.target.closest("td");
  if (!cell || event.pointerType === "touch") return;
  mark(Number(cell.dataset.cell), Number(cell.parentElement.dataset.row));
  hideTip();
  waiting = setTimeout(() => showTip(cell), 350);
});
table.addEventListener("pointerleave", () => { hideTip(); mark(chosen.cell, chosen.row); });
scroller.addEventListener("scroll", hideTip, { passive: true });
table.addEventListener("keydown", (event) => {
  const cell = event.target.closest("td");
  if (!cell) return;
  const rows = visibleRows();
  const [column, place] = [Number(cell.dataset.cell), rows.indexOf(Number(cell.parentElement.dataset.row))];
  const to = { ArrowLeft: [column - 1, place], ArrowRight: [column + 1, place], ArrowUp: [column, place - 1], ArrowDown: [column, place + 1], Home: [0, place], End: [last() - 1, place], PageUp: [column, 0], PageDown: [column, rows.length - 1] }[event.key];
  if (event.key === "Escape") hideTip();
  if (!to) return;
  event.preventDefault();
  hideTip();
  select(Math.max(0, Math.min(last() - 1, to[0])), rows[Math.max(0, Math.min(rows.length - 1, to[1]))]);
});
find("words").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) goTo(Number(button.dataset.step));
});
find("back").addEventListener("click", () => goTo(chosen.step - 1));
find("forth").addEventListener("click", () => goTo(chosen.step + 1));
find("all-layers").addEventListener("change", (event) => { chosen.allLayers = event.target.checked; redraw(); });
find("all-values").addEventListener("change", (event) => { chosen.allValues = event.target.checked; redraw(); });
const tabs = ["cell", "layer", "program"];
for (const name of tabs) {
  find(`tab-${name}`).addEventListener("click", () => { chosen.tab = name; drawDetails(); });
  find(`tab-${name}`).addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!turn) return;
    chosen.tab = tabs[(tabs.indexOf(name) + turn + tabs.length) % tabs.length];
    drawDetails();
    find(`tab-${chosen.tab}`).focus();
  });
}
document.addEventListener("click", (event) => { if (!event.target.closest("#registers")) find("registers").open = false; });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") find("registers").open = false; });
window.addEventListener("resize", () => mark(chosen.cell, chosen.row));

document.querySelector("h1").textContent = run.program;
document.querySelector(".sizes").textContent = `${run.sizes.layers} layers, ${run.sizes.registers} registers, ${run.sizes["weights in blocks that are not zero"].toLocaleString("en")} weights in blocks that are not zero`;
find("registers").querySelector("fieldset").append(...run.registers.map((register, index) => make("label", {}, make("input", { type: "checkbox", checked: register.watched, onchange: (event) => { if (event.target.checked) shown.add(index); else shown.delete(index); redraw(); } }), register.name)));
drawSteps();
goTo(0);
const telling = firstRead();
if (telling) select(...telling, false);
