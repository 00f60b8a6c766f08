// An explorer of a page comes alive: the film of it gives way to the explorer itself, whose kernels
// run in this browser. Python comes with the first one that is asked for, and serves them all.
import { Python } from "./python.js";

const RESTS = 800; // ms without a change of the film after which its explorer may take its place
const BUSY = 700; // ms of work after which the page says so, and offers to stop it
const COMING = [_("Python is fetched"), _("Python starts")]; // as worker.js tells; `_` is Sphinx's
const films = [...document.querySelectorAll(".gemmlab-film[data-expression]")].map((element) => new Film(element));
let python;

function begin() {
  python ??= new Python({
    progress: (told) => films.forEach((film) => film.state === "coming" && film.tell(told)),
    idle: (busy) => films.forEach((film) => film.work(busy)),
  });
  return python;
}

function stop(reason = "") {
  python?.stop();
  python = undefined;
  for (const film of films) film.rest(reason);
}

function Film(element) {
  const note = element.querySelector(".film-note"), controls = element.querySelector(".film-controls");
  const made = (tag, text = "", props = {}) => Object.assign(document.createElement(tag), { textContent: text, ...props });
  // What changes each second is seen and not announced.
  const words = made("span", "", { role: "status" }), count = made("span", "", { ariaHidden: "true" });
  const start = made("button", _("Make it live")), halt = made("button", _("Stop"));
  const bar = made("progress", "", { max: 1, hidden: true });
  bar.setAttribute("aria-label", COMING[0]);
  note.lang = document.documentElement.lang;
  note.replaceChildren(words, count, bar, start, halt);
  for (const button of [start, halt]) Object.assign(button, { type: "button", className: "film-button" });
  const say = (text, counted = "") => {
    if (words.textContent !== text) words.textContent = text;
    count.textContent = counted;
  };
  let box, moved, changed = 0, timer;

  this.rest = (reason) => {
    this.state = "film";
    clearTimeout(timer);
    box?.remove();
    element.removeAttribute("data-live");
    say(reason || _("Drawn beforehand: one control moves at a time. Live, all of them move, and kernels run here, "
      + "in your browser (20 MB, fetched once)."));
    [bar.hidden, start.hidden, halt.hidden] = [true, false, true];
  };
  this.tell = ({ told, bytes, all }) => {
    say(_(told), bytes ? `${(bytes / 1e6).toFixed(0)} MB` : "");
    if (all) bar.value = bytes / all; else bar.removeAttribute("value");
  };
  this.work = (busy) => {
    clearTimeout(timer);
    if (this.state !== "live") return;
    const since = Date.now();
    const tick = () => {
      say(_("At work"), _("for %s s").replace("%s", Math.round((Date.now() - since) / 1000)));
      halt.hidden = false;
      timer = setTimeout(tick, 1000);
    };
    say(_("Live: what you move runs here, in your browser, on the simulated GPU."));
    halt.hidden = true;
    if (busy) timer = setTimeout(tick, BUSY);
  };
  this.come = async () => {
    if (this.state !== "film") return;
    this.state = "coming";
    [bar.hidden, start.hidden, halt.hidden] = [false, true, false];
    this.tell({ told: COMING[0] });
    const mine = begin();
    try {
      await mine.started;
      if (mine !== python) return;
      this.tell({ told: _("The explorer is drawn") });
      // Not under the reader's hand: what is being moved is moved to its end first.
      while (Date.now() - changed < RESTS) await new Promise((later) => setTimeout(later, RESTS / 4));
      const had = controls.contains(document.activeElement) && moved;
      const view = await mine.show(element.dataset.expression, moved);
      if (mine !== python) return;
      box = made("div", "", { className: "film-live" });
      controls.before(box);
      element.dataset.live = "";
      await view(box);
      this.state = "live";
      bar.hidden = true;
      this.work(false);
      if (had) await focus(box, had[0]);
    } catch (error) {
      const reason = _("It cannot come alive here:") + " " + String(error.message ?? error).split("\n").at(-1);
      if (mine.runs) this.rest(reason); else stop(reason); // one explorer, or Python itself
    }
  };

  start.addEventListener("click", this.come);
  halt.addEventListener("click", () => stop());
  controls.addEventListener("input", ({ target }) => {
    changed = Date.now();
    const name = target.closest("label").querySelector("span").textContent;
    moved = [name, target.matches("select") ? target.selectedOptions[0].text : JSON.parse(target.dataset.labels)[target.value]];
    if (!navigator.connection?.saveData) this.come();
  });
  this.rest("");
}

// The control that was moved in the film keeps the keyboard; views come one after the other.
async function focus(box, name) {
  for (let frames = 0; frames < 60; frames++) {
    const label = [...box.querySelectorAll(".widget-label")].find((found) => found.textContent === name);
    const control = label?.parentElement.querySelector("[role=slider], select, input");
    if (control) return control.focus({ preventScroll: true });
    await new Promise(requestAnimationFrame);
  }
}

// "Run here" opens the notebook at the section that is read now: section.js goes there.
const headings = [...document.querySelectorAll(".bd-article section > :is(h1, h2, h3, h4)")];
for (const link of document.querySelectorAll("a[href*='lite/notebooks/']"))
  link.addEventListener("click", () => {
    const read = headings.findLastIndex((heading) => heading.getBoundingClientRect().top < innerHeight / 3);
    link.hash = read > 0 ? `section-${read}` : "";
  });
