// How the search ranks what it finds: Sphinx's own scores, but chapters and guides before decisions.
var Scorer = {
  score: ([page, , , , score]) => score + (page.startsWith("notebooks/") ? 10 : page.startsWith("decisions/") ? -30 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
