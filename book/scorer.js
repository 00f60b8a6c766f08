// How the search ranks what it finds: Sphinx's own scores, but a page that is named by what is asked first,
// and chapters and guides before decisions.
const asked = new URLSearchParams(location.search).get("q")?.toLowerCase() ?? "";
const words = asked.split(/\W+/).filter(Boolean);
const named = (title) => words.length && words.every((word) => title.toLowerCase().includes(word.slice(0, 6)));
const installs = /\b(install|set ?up|download|require|start|windows|macos|conda|proxy)/.test(asked);

var Scorer = {
  score([page, title, , , score]) {
    if (named(title.split(" > ")[0]) || (installs && page === "install")) score += 25;
    return score + (page.startsWith("notebooks/") ? 10 : page.startsWith("decisions/") ? -30 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
