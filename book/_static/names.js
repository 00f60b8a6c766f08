// What the theme leaves without a name or a landmark for a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const fold of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const page = fold.closest("li")?.querySelector("a");
    fold.setAttribute("aria-label", `Pages of ${page?.textContent.trim() ?? "this part"}`);
  }
  const home = document.querySelector(".bd-sidebar-primary .navbar-brand")?.closest(".sidebar-primary-item");
  home?.setAttribute("role", "navigation");
  home?.setAttribute("aria-label", "First page");
});
