// How the site's search ranks pages: Sphinx's own numbers, with what readers look for first before what was decided and measured along the way.
var Scorer = {
  score: (result) => {
    const [page, title, anchor, description, score, filename] = result;
    if (page.startsWith("adr/") || page.startsWith("development/")) return score - 20;
    if (page.startsWith("user/") || page === "citing") return score + 8;
    if (page === "questions") return score + 4;
    return score;
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
