const all = (what, root = document) => [...root.querySelectorAll(what)];
const { lang } = document.documentElement;
const fill = (text, ...values) => text.replace(/#/g, () => values.shift().toLocaleString(lang));
for (const el of all("[data-js]")) el.hidden = false;

function select(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw 0;
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    select(text);
  }
}
for (const button of all("[data-copy]")) {
  button.onclick = () => {
    const { copy: text, said } = button.dataset, name = button.textContent;
    const say = at => {
      button.textContent = said.split("|")[at];
      setTimeout(() => button.textContent = name, 1600);
    };
    copy(text).then(() => say(0), () => say(1));
  };
}

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

addEventListener("beforeprint", () => {
  for (const el of all("details")) el.open = true;
});
