// What ipywidgets leave undone in JupyterLab: keys, names for screen readers, and kernels that end.
if (!window.gemmlabExplorers) {
  window.gemmlabExplorers = true;
  const OWN = ".gemmlab-explorer";

  // JupyterLab takes plain keys for commands: b inserts a cell. Those with Ctrl, Cmd or Alt are
  // let through, as is Shift+Enter; a text field lets none through, so Ctrl+S is sent on from it.
  const plain = (event) =>
    !event.ctrlKey && !event.metaKey && !event.altKey && !(event.shiftKey && event.key === "Enter");
  const saves = (event) =>
    (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s";
  function keep(box) {
    box.addEventListener("keydown", (event) => plain(event) && event.stopPropagation());
    box.addEventListener("keydown", (event) => {
      if (event.target.matches("input") && saves(event)) {
        event.stopPropagation();
        if (!box.dispatchEvent(new KeyboardEvent("keydown", event))) event.preventDefault();
      }
    }, true);
  }

  // A slider over stops tells its place; a reader hears the number that it stands for.
  function say(handle) {
    const told = handle.closest(".gemmlab-number")?.querySelector("[data-stops]")?.dataset;
    const place = Math.round(handle.getAttribute("aria-valuenow"));
    const text = !told
      ? handle.closest(".widget-inline-hbox")?.querySelector(".widget-readout")?.textContent
      : String(place === Number(told.at) ? told.value : JSON.parse(told.stops)[place]);
    if (text && handle.getAttribute("aria-valuetext") !== text)
      handle.setAttribute("aria-valuetext", text);
  }

  // The room of a caption is that of its longest text so far, so that the picture below stays.
  const rooms = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const room = target.closest(".gemmlab-caption");
      if (room.clientWidth !== target.gemmlabWidth) room.style.minHeight = "";
      target.gemmlabWidth = room.clientWidth;
      room.style.minHeight = `${Math.max(room.offsetHeight, target.offsetHeight)}px`;
    }
  });

  function look() {
    for (const box of document.querySelectorAll(OWN))
      if (!box.gemmlabSeen) {
        box.gemmlabSeen = true;
        keep(box);
        for (const text of box.querySelectorAll(".gemmlab-caption > *")) rooms.observe(text);
      }
    // A slider's label names its handle, and the tooltip a field without a label.
    for (const handle of document.querySelectorAll(`${OWN} [role=slider]`)) {
      const name = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label");
      if (name && !handle.hasAttribute("aria-label")) handle.setAttribute("aria-label", name.textContent);
      say(handle);
    }
    for (const field of document.querySelectorAll(`${OWN} input[title]:not([aria-label])`))
      field.setAttribute("aria-label", field.title);
  }
  const watched = { childList: true, subtree: true, attributeFilter: ["aria-valuetext"] };
  new MutationObserver(look).observe(document.body, watched);
  look();

  // ipywidgets notice a restart, but not a kernel that is shut down or cannot be started again.
  const ENDS = ["terminating", "dead"];
  new MutationObserver((changes) => {
    for (const { target } of changes)
      if (ENDS.includes(target.dataset.status))
        for (const box of target.closest(".jp-NotebookPanel")?.querySelectorAll(OWN) ?? [])
          box.classList.add("gemmlab-ended");
  }).observe(document.body, { subtree: true, attributeFilter: ["data-status"] });
}
