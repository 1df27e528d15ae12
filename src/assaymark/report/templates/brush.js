for (const fig of all("[data-brush]")) {
  const [from, to] = all("[type=range]", fig), [out] = all("output", fig), say = out.dataset;
  const days = fig.dataset.brush.split("|"), last = days.length - 1;
  const list = text => text.split(" ").map(Number);
  const share = ratio => {
    const n = +(100 * ratio - 100).toFixed(1) || 0;
    return (n > 0 ? "+" : "") + n.toFixed(1).replace("-", "−").replace(".", say.point);
  };
  const show = () => {
    const ends = [+from.value, +to.value], a = Math.min(...ends), b = Math.max(...ends), on = b > a && b - a < last;
    for (const mark of all(".sel", fig)) {
      const [left, width] = list(mark.dataset.x);
      mark.setAttribute("x", left + a / last * width + "%");
      mark.setAttribute("width", on * (b - a) / last * width + "%");
    }
    for (const el of all("p,ul,output", fig)) el.hidden = on == (el.tagName == "P");
    out.textContent = fill(say.said, a, days[a], b, days[b], b - a);
    for (const row of all("[data-v]", fig)) {
      const nav = list(row.dataset.v).slice(a, b + 1);
      let top = 0;
      const fall = Math.min(...nav.map(nv => nv / (top = Math.max(top, nv))));
      row.lastChild.textContent = fill(say.line, share(nav[b - a] / nav[0]), share(fall));
    }
  };
  const set = (a, b) => {
    from.value = a;
    to.value = b;
    show();
  };
  fig.oninput = show;
  addEventListener("keydown", e => e.key == "Escape" && set(0, last));
  for (const svg of all(".fig", fig)) {
    const [left, width] = list(svg.querySelector(".sel").dataset.x);
    let start;
    svg.onpointerdown = svg.onpointermove = e => {
      const box = svg.getBoundingClientRect(), x = (100 * (e.clientX - box.left) / box.width - left) / width;
      const day = Math.round(x * last);
      if (e.type == "pointerdown") {
        start = day;
        svg.setPointerCapture(e.pointerId);
      } else if (svg.hasPointerCapture(e.pointerId)) set(start, day);
    };
  }
  show();
}
