// Left and right lead from a call to the one before and after it.
addEventListener("keydown", e => {
  const way = { ArrowLeft: "prev", ArrowRight: "next" }[e.key];
  if (way && !(e.altKey || e.ctrlKey || e.metaKey || e.shiftKey || /INPUT|PRE/.test(e.target.tagName)))
    document.querySelector(":target [rel=" + way + "]")?.click();
});
