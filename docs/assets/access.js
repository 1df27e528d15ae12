/* What the theme makes of a page while it loads, for those who read it by keyboard or by ear: wide tables can be
   scrolled, and the buttons of a code block are no place of their own. */
const accessible = () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "none");
};
new MutationObserver(accessible).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("resize", accessible);
