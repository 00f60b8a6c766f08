// What the theme leaves without a name, a landmark or the keyboard's focus.
document.addEventListener("DOMContentLoaded", () => {
  for (const fold of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const page = fold.closest("li")?.querySelector("a");
    fold.setAttribute("aria-label", _("Pages of %s").replace("%s", page?.textContent.trim() ?? _("this part")));
  }
  const home = document.querySelector(".bd-sidebar-primary .navbar-brand")?.closest(".sidebar-primary-item");
  home?.setAttribute("role", "navigation");
  home?.setAttribute("aria-label", _("First page"));
  // The other language opens at the section that is read here.
  for (const other of document.querySelectorAll(".btn-language"))
    other.addEventListener("click", () => (other.hash = location.hash));
  // A picture that is wider than a phone is moved in its paragraph, by keys, too.
  for (const image of document.querySelectorAll(".bd-article p > img:only-child"))
    new ResizeObserver(() => {
      const box = image.parentElement;
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }).observe(image.parentElement);
  // Whether code scrolls, and so takes the focus, is found anew when the window changes: what was
  // folded has no width before.
  const again = () => window.dispatchEvent(new Event("resize"));
  document.addEventListener("toggle", again, true);
  // Formulas and fonts that come late make tables wider.
  addEventListener("load", () => Promise.all([document.fonts.ready, globalThis.MathJax?.startup?.promise]).then(again));
});
