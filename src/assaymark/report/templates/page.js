const all = (what, root = document) => [...root.querySelectorAll(what)];
const { lang } = document.documentElement;
const fill = (text, ...values) => text.replace(/#/g, () => values.shift().toLocaleString(lang));
for (const el of all("[data-js]")) el.hidden = false;

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw 0;
  }
}
for (const button of all("[data-copy]")) {
  button.onclick = () => {
    const { copy: text, said } = button.dataset, name = button.textContent;
    copy(text).then(() => 0, () => 1).then(at => {
      button.textContent = said.split("|")[at];
      setTimeout(() => button.textContent = name, 1600);
    });
  };
}

addEventListener("beforeprint", () => {
  for (const el of all("details")) el.open = true;
});
