// Slides of a chapter (book/slides.py): its blocks are laid on as many slides as they need.
const seconds = 20; // that formulas may take
let slides = [], at = 0;

addEventListener("load", async () => {
  const late = new Promise((done) => setTimeout(done, seconds * 1000));
  await Promise.race([Promise.all([document.fonts.ready, globalThis.MathJax?.startup?.promise]), late]);
  slides = lay([...document.querySelectorAll(".block")]);
  document.body.classList.add("laid");
  bar();
  go(Number(location.hash.slice(1)) - 1 || 0);
  addEventListener("resize", fit);
  addEventListener("hashchange", () => go(Number(location.hash.slice(1)) - 1 || 0));
});

// One slide after the other: a block that no longer fits begins the next, with what leads to it.
function lay(blocks) {
  const made = [], article = document.querySelector("article");
  let part = "", body, notes;
  const begin = () => {
    const slide = document.createElement("section");
    slide.className = "slide";
    slide.innerHTML = '<p class="slide-part"></p><div class="slide-body"></div><aside class="slide-notes"></aside>';
    slide.firstChild.textContent = part;
    [, body, notes] = slide.children;
    article.append(slide);
    made.push(slide);
  };
  const full = () => body.scrollHeight > body.clientHeight + 1;
  for (const block of blocks) {
    const kind = block.dataset.kind;
    if (kind === "heading") {
      // A heading of a heading: both begin one slide.
      if (!body || [...body.children].some((one) => one.dataset.kind !== "heading")) begin();
      if (block.querySelector("h1, h2")) part = block.textContent.trim();
      body.append(block);
      continue;
    }
    if (kind === "note") {
      notes.append(block);
      continue;
    }
    const before = body.lastElementChild;
    body.append(block);
    if (full() && before && before.dataset.kind !== "heading") {
      begin();
      if (before.dataset.kind === "lead") body.append(before);
      body.append(block);
    }
    shrink(block);
  }
  return made.filter((slide) => slide.querySelector(".slide-body").children.length);

  // What is too high alone becomes smaller, and is scrolled where that would be illegible.
  function shrink(block) {
    const least = 0.62;
    for (let scale = 0.95; full() && scale >= least; scale -= 0.05) block.style.zoom = scale;
    if (full()) body.classList.add("scrolls");
  }
}

function go(number) {
  at = Math.max(0, Math.min(slides.length - 1, number));
  slides.forEach((slide, index) => slide.classList.toggle("shown", index === at));
  document.querySelector(".slide-count").textContent = `${at + 1} / ${slides.length}`;
  history.replaceState(null, "", `#${at + 1}`);
  for (const box of slides[at].querySelectorAll(".scrolls")) box.tabIndex = 0;
  fit();
}

// The slide is as large as the window lets it be; its notes take a part of the window.
function fit() {
  const room = document.body.classList.contains("noted") ? 0.7 : 1;
  const scale = Math.min(innerWidth / 1280, (innerHeight * room - 40) / 720);
  document.documentElement.style.setProperty("--scale", scale);
}

function bar() {
  const nav = document.createElement("nav");
  nav.className = "slide-bar";
  nav.setAttribute("aria-label", "Slides");
  nav.innerHTML =
    '<button data-step="-1" aria-label="Back">←</button><output class="slide-count" aria-live="polite"></output>' +
    '<button data-step="1" aria-label="On">→</button><button data-notes>Notes (n)</button><span>f: whole screen</span>';
  nav.addEventListener("click", ({ target }) => {
    if (target.dataset.step) go(at + Number(target.dataset.step));
    if ("notes" in target.dataset) note();
  });
  document.body.append(nav);
}

function note() {
  document.body.classList.toggle("noted");
  fit();
}

const steps = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1, Home: -Infinity, End: Infinity };
addEventListener("keydown", (event) => {
  // A control and a summary keep their keys.
  if (event.ctrlKey || event.metaKey || event.altKey || !slides.length) return;
  if (event.target.closest("input, select, textarea, summary, button, [role=gridcell]")) return;
  if (event.key in steps) go(at + steps[event.key]);
  else if (event.key === "n") note();
  else if (event.key === "f") document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen();
  else return;
  event.preventDefault();
});
