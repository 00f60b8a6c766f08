// A film of an explorer: its controls choose among the pictures that the page carries.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".gemmlab-film").forEach(play));

function play(film) {
  const { images, pictures } = JSON.parse(film.querySelector("script").textContent);
  const controls = [...film.querySelectorAll("[data-pictures]")].map(control);
  const screen = film.querySelector(".film-picture"), caption = film.querySelector(".film-caption");
  film.querySelector(".film-controls").hidden = false;
  // Where the picture is wider than its place, the keyboard scrolls it.
  new ResizeObserver(() => {
    if (screen.scrollWidth > screen.clientWidth) screen.tabIndex = 0;
    else screen.removeAttribute("tabindex");
  }).observe(screen);
  // The caption has the room of its longest text, so that the picture below stays where it is.
  let width = 0;
  new ResizeObserver(() => {
    if (width === caption.clientWidth) return;
    width = caption.clientWidth;
    const shown = caption.textContent;
    caption.style.minHeight = "";
    const heights = pictures.map(([, text]) => ((caption.textContent = text), caption.offsetHeight));
    caption.textContent = shown;
    caption.style.minHeight = `${Math.max(...heights)}px`;
  }).observe(caption);
  for (const moved of controls)
    moved.element.addEventListener("input", () => {
      for (const other of controls) if (other !== moved) other.reset();
      moved.tell();
      const [picture, text] = pictures[moved.picture()];
      screen.innerHTML = picture.replace(/"@(\d+)"/g, (_, number) => `"${images[number]}"`);
      caption.textContent = text;
    });
}

// A slider or a list: which picture it asks for, and how to set it back to its first value.
function control(element) {
  const numbers = JSON.parse(element.dataset.pictures), first = numbers.indexOf(0);
  const position = element.matches("select") ? "selectedIndex" : "value";
  const labels = JSON.parse(element.dataset.labels ?? "[]");
  const tell = () => {
    if (!labels.length) return;
    element.setAttribute("aria-valuetext", labels[element.value]);
    element.nextElementSibling.textContent = labels[element.value];
  };
  const reset = () => { element[position] = first; tell(); };
  reset();  // a browser that goes back remembers another value
  return { element, tell, reset, picture: () => numbers[element[position]] };
}
