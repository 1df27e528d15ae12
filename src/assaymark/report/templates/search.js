// Every judgment of the study and its call, found by the words of who judged what.
const S = JSON.parse(document.getElementById("s-data").textContent), [box] = all("#s-box"), [list] = all("#s-list");
const link = (page, anchor, text) => {
  const a = document.createElement("a");
  a.href = S.pages[page] + "#" + anchor;
  a.textContent = text;
  return a;
};
box.oninput = () => {
  const want = box.value.toLowerCase().split(/\s+/), hits = [];
  for (const [judge, answer, trial, page, anchor, part, key, state] of S.rows) {
    const said = S.judges[judge] + " on " + S.answers[answer] + ", trial " + trial + state;
    if (!want.every(word => said.toLowerCase().includes(word) || word[5] && key.includes(word))) continue;
    const li = document.createElement("li");
    li.append(link(page, anchor, said), ...key ? [" ", link(part, key, "call")] : []);
    hits.push(li);
  }
  list.replaceChildren(...box.value.trim() ? hits.slice(0, 50) : []);
  all("output")[0].textContent = box.value.trim() ? fill("# of #", hits.length, S.rows.length) : "";
};
