// A notebook of the live site opens at the section that its link names: #section-5 is its sixth heading.
const asked = /^#section-(\d+)$/.exec(location.hash);
let tries = 300; // in tenths of a second
const look = asked && setInterval(() => {
  const heading = document.querySelectorAll(".jp-RenderedMarkdown :is(h1, h2, h3, h4)")[asked[1]];
  heading?.scrollIntoView();
  // What stands above takes its room little by little, so it is gone to for two seconds.
  tries = heading ? Math.min(tries, 20) - 1 : tries - 1;
  if (!tries) clearInterval(look);
}, 100);
if (asked)
  for (const hand of ["wheel", "pointerdown", "keydown", "touchstart"])
    addEventListener(hand, () => clearInterval(look), { once: true, capture: true });
