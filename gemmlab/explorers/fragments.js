// The explorer of fragments: draws the two maps from the bits of each layout, and keeps them in
// step. No library, no kernel: it runs wherever the page that holds it does.
(() => {
  "use strict";
  const LANES = 32;

  // What the bits of `lane` and `register` add to matrix, row and column: as Layout.element.
  const place = (layout, lane, register) => layout.steps.map((steps) => steps.reduce(
    (sum, step, bit) => sum + step * ((bit < 5 ? lane >> bit : register >> (bit - 5)) & 1), 0));

  const make = (parent, tag, name, text, attributes = {}) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    for (const key of Object.keys(attributes)) node.setAttribute(key, attributes[key]);
    parent.appendChild(node);
    return node;
  };
  const list = (items) => items.length < 2 ? items.join("")
    : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
  // JupyterLab takes arrows and letters for its own from whatever has the focus without this mark.
  const keys = { "data-lm-suppress-shortcuts": "true" };
  const several = (name, items) => `${name}${items.length > 1 ? "s" : ""} ${list(items)}`;

  const start = (box) => {
    const layouts = JSON.parse(box.dataset.layouts);
    let at = JSON.parse(box.dataset.start);  // layout, lane, register; register null: a whole lane
    let cells = [];  // all of both maps, with what each stands for
    box.querySelector(".static").remove();

    const bar = make(box, "div", "");
    const chooser = (text) => make(make(bar, "label", "", text), "select", "", undefined, keys);
    const instructions = chooser("Instruction"), operands = chooser("Operand");
    for (const name of new Set(layouts.map((l) => l.instruction)))
      make(instructions, "option", "", name, { value: name });
    const told = make(box, "div", "f-told", undefined, { role: "status" });
    const key = make(box, "div", "f-key"), maps = make(box, "div", "f-maps");
    for (const [name, text] of [["f-chosen", "the element that is chosen"],
      ["f-with", "what the same lane holds"],
      ["f-cell f-even", "every other group of four lanes"]]) {
      const entry = make(key, "span");
      make(entry, "span", name, "", { "aria-hidden": "true" });
      entry.append(text);
    }
    make(key, "span", "", "Click an element or a lane, or move by arrow keys.");

    const layout = () => layouts[at.layout];
    const name = ([q, i, j]) =>
      layout().matrices > 1 ? `(${i}, ${j}) of matrix ${q}` : `(${i}, ${j})`;
    const holders = (element) => {
      const found = [];
      for (let lane = 0; lane < LANES; lane++)
        for (let register = 0; register < layout().registers; register++)
          if (String(place(layout(), lane, register)) === String(element))
            found.push({ lane, register });
      return found;
    };

    const choose = (next, focus) => {
      at = { ...at, ...next };
      light();
      if (focus) focus.focus();
    };

    // One map is a grid in which arrow keys move the choice; `lines` are rows of cells or gaps.
    const walk = (lines) => lines.forEach((line, y) => line.forEach((node, x) => {
      if (!node) return;
      node.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
          Home: [0, -x], End: [0, line.length - 1 - x], PageUp: [-y, 0],
          PageDown: [lines.length - 1 - y, 0] }[event.key];
        if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        const next = (lines[y + step[0]] || [])[x + step[1]];
        if (next) choose(next.means, next);
      });
      node.addEventListener("click", () => choose(node.means, node));
    }));

    const grid = (title, kind, widths) => {
      const part = make(maps, "div", `f-${kind}`);
      make(part, "p", "f-title", title);
      const node = make(part, "div", "f-map", undefined, { role: "grid", "aria-label": title });
      node.style.gridTemplateColumns = widths;
      return node;
    };
    const cell = (row, map, text, element, means, label) => {
      const lane = means.lane;
      const node = make(row, "div", "f-cell" + (lane >> 2 & 1 ? " f-even" : ""), text,
        { role: "gridcell", tabindex: "-1", "aria-label": label, ...keys });
      Object.assign(node, { map, element: String(element), means });
      cells.push(node);
      return node;
    };

    const draw = () => {
      const { rows, cols, matrices, registers, operand, halves, wide } = layout();
      cells = [];
      maps.replaceChildren();

      // Matrices stand side by side in pairs.
      const across = Math.min(matrices, 2), lines = [];
      const size = `${rows}×${cols}`, columns = `repeat(${cols}, ${wide ? 34 : 22}px)`;
      const what = matrices > 1 ? `${matrices} matrices` : "Matrix";
      const title = `${what}${operand && ` ${operand}`}, ${size}: the lane of each element`;
      const matrix = grid(title, "matrix",
        `26px ${Array(across).fill(columns).join(" 10px ")}`);
      for (let below = 0; below < matrices; below += across) {
        if (matrices > 1) {
          const names = make(matrix, "div", "f-row", undefined, { "aria-hidden": "true" });
          make(names, "div");
          for (let q = below; q < below + across; q++) {
            if (q > below) make(names, "div");
            make(names, "div", "f-head", `matrix ${q}`).style.gridColumn = `span ${cols}`;
          }
        }
        const head = make(matrix, "div", "f-row", undefined, { role: "row" });
        make(head, "div", "f-head f-corner", "i \\ j", { role: "columnheader" });
        for (let q = 0; q < across; q++) {
          if (q) make(head, "div", "", "", { "aria-hidden": "true" });
          for (let j = 0; j < cols; j++)
            make(head, "div", "f-head", j, { role: "columnheader" });
        }
        for (let i = 0; i < rows; i++) {
          const row = make(matrix, "div", "f-row", undefined, { role: "row" }), line = [];
          make(row, "div", "f-head f-corner", i, { role: "rowheader" });
          for (let q = below; q < below + across; q++) {
            if (q > below) make(row, "div", "", "", { "aria-hidden": "true" });
            for (let j = 0; j < cols; j++) {
              const element = [q, i, j], held = holders(element);
              const lanes = [...new Set(held.map((h) => h.lane))];
              line.push(cell(row, "matrix", lanes.join(" "), element, held[0],
                `element ${name(element)}, ${several("lane", lanes)}`));
            }
          }
          lines.push(line);
        }
      }
      walk(lines);

      const unit = halves ? ": a pair is a 32-bit register" : "";
      const map = grid(`Registers${unit}`, "registers",
        `30px repeat(${registers}, ${matrices > 1 ? "42px" : "36px"})`);
      const head = make(map, "div", "f-row", undefined, { role: "row" });
      make(head, "div", "f-head f-corner", "lane", { role: "columnheader" });
      const word = (x) => halves && x && x % 2 === 0 ? " f-word" : "";
      for (let x = 0; x < registers; x++)
        make(head, "div", "f-head" + word(x), x, { role: "columnheader" });
      const table = [];
      for (let lane = 0; lane < LANES; lane++) {
        const row = make(map, "div", "f-row", undefined, { role: "row" });
        const whole = make(row, "div", "f-head f-corner f-choice", lane,
          { role: "rowheader", tabindex: "-1", "aria-label": `lane ${lane}, all registers`, ...keys });
        Object.assign(whole, { map: "registers", means: { lane, register: null } });
        cells.push(whole);
        const line = [whole];
        for (let register = 0; register < registers; register++) {
          const element = place(layout(), lane, register), [q, i, j] = element;
          const text = matrices > 1 ? `${q}: ${i},${j}` : `${i},${j}`;
          const node = cell(row, "registers", text, element, { lane, register },
            `lane ${lane}, register ${register}, element ${name(element)}`);
          node.className += word(register);
          line.push(node);
        }
        table.push(line);
      }
      walk(table);
      light();
    };

    // Colour both maps by the choice, say it in words, and let Tab stop at the chosen cells.
    const light = () => {
      const { registers, halves } = layout(), { lane, register } = at;
      const own = Array.from({ length: registers }, (_, x) => place(layout(), lane, x));
      const mine = new Set(own.map(String));
      const chosen = register === null ? null : own[register];
      const first = String(chosen || own[0]);
      for (const node of cells) {
        const matrix = node.map === "matrix";
        const is = chosen !== null && node.element === String(chosen);
        const beside = matrix ? mine.has(node.element) : node.means.lane === lane;
        const stop = matrix ? node.element === first
          : node.means.lane === lane && node.means.register === register;
        node.classList.toggle("f-chosen", is);
        node.classList.toggle("f-with", beside && !is);
        node.setAttribute("aria-selected", String(is || (chosen === null && beside)));
        node.tabIndex = stop ? 0 : -1;
      }
      const one = new Set(own.map(([q]) => q)).size === 1 && layout().matrices > 1;
      const held = [...new Set(own.map(one ? ([, i, j]) => `(${i}, ${j})` : name))];
      told.replaceChildren();
      if (chosen !== null) {
        const half = (x) => !halves ? ""
          : ` (${x % 2 ? "high" : "low"} half of 32-bit register ${x >> 1})`;
        const where = holders(chosen).map(
          (h) => `lane ${h.lane}, register ${h.register}${half(h.register)}`);
        make(told, "p", "", `Element ${name(chosen)}${layout().operand ? " of " : ""}`
          + `${layout().operand} is in ${where.join("; and in ")}.`);
      }
      const times = held.length < registers ? `, each ${registers / held.length} times` : "";
      const of = one ? `of matrix ${own[0][0]}: ` : "";
      make(told, "p", "", `Lane ${lane} holds ${of}${list(held)}${times}.`);
    };

    const fill = () => {
      operands.replaceChildren();
      layouts.forEach((l, index) => {
        if (l.instruction === instructions.value)
          make(operands, "option", "", l.title, { value: index });
      });
    };
    instructions.addEventListener("change", () => {
      fill();
      at = { layout: Number(operands.value), lane: at.lane, register: 0 };
      draw();
    });
    operands.addEventListener("change", () => {
      at = { layout: Number(operands.value), lane: at.lane, register: 0 };
      draw();
    });
    instructions.value = layout().instruction;
    fill();
    operands.value = at.layout;
    draw();
  };

  for (const box of document.querySelectorAll(".gemmlab-fragments:not([data-drawn])")) {
    box.setAttribute("data-drawn", "");
    start(box);
  }
})();
