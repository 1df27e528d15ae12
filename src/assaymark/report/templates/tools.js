for (const bar of all("[data-tools]")) {
  const id = bar.dataset.tools, rows = all(`#${id}>tbody>tr,#${id}>li,#${id}>section`);
  const buttons = all("button", bar), [box, out] = all("input,output", bar);
  let key, texts;
  const show = () => {
    const want = box.value.trim().toLowerCase();
    let n = 0;
    if (want) texts ||= rows.map(row => row.textContent.toLowerCase());
    rows.forEach((row, at) => {
      const { k, x = "" } = row.dataset;
      row.hidden = key && k != key && !x.split(" ").includes(key) || want && !texts[at].includes(want);
      n += !row.hidden;
    });
    out.textContent = fill(out.dataset.shown, n, rows.length);
  };
  for (const button of buttons) {
    button.onclick = () => {
      key = button.dataset.f;
      for (const other of buttons) other.ariaPressed = other == button;
      show();
    };
    if ("#" + button.id == location.hash) button.click();
  }
  box.oninput = show;
  show();
}
