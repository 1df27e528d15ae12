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

addEventListener("beforeprint", () => {
  for (const el of all("details")) el.open = true;
});
