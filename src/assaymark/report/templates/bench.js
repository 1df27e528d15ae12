// The sentence bench: four selects and a rule decide which record of its data is shown.
const B = JSON.parse(document.getElementById("b-data").textContent);
const at = id => document.getElementById("b-" + id);
const LEVELS = ["headline", "qualified", "no-claim"], TAGS = ["Supported", "Only with its condition", "Not supported"];
const NAMES = [...document.querySelectorAll("#b-gates h3")].map(h => h.textContent);
const make = (tag, text, kind) => {
  const el = document.createElement(tag);
  if (text) el.textContent = text;
  if (kind) el.className = kind;
  return el;
};
const SVG = "http://www.w3.org/2000/svg";
const draw = (parent, tag, attributes, text) => {
  const el = document.createElementNS(SVG, tag);
  for (const name in attributes) el.setAttribute(name, attributes[name]);
  if (text) el.textContent = text;
  parent.append(el);
  return el;
};
const mark = (level, words) => {
  const el = make("span", "", "lvw " + level), icon = draw(el, "svg", { class: "g " + level, "aria-hidden": "true" });
  draw(icon, "use", { href: "#g-" + level });
  el.append(" " + words);
  return el;
};
const round = x => Math.round(x * 10) / 10;
function strip([[low, high], cuts, points, marks]) {
  const x = v => round(8 + (Math.min(Math.max(v, low), high) - low) / (high - low) * 164);
  const tall = cuts.some(c => c[1]) ? 37 : 22;
  const svg = draw(make("p"), "svg", { class: "strip", viewBox: `0 0 180 ${tall}`, width: 180, height: tall, "aria-hidden": "true" });
  draw(svg, "line", { class: "rule", x1: 8, y1: 11, x2: 172, y2: 11 });
  for (const [v, words, dashed] of cuts) {
    const half = words.length * 3.6;
    draw(svg, "line", { class: dashed ? "gd" : "gs", x1: x(v), y1: 2, x2: x(v), y2: 20 });
    if (words) draw(svg, "text", { class: "tk am", x: Math.min(Math.max(x(v), half), 180 - half), y: 33 }, words);
  }
  points.forEach(([v, from, to], k) => {
    if (to !== undefined) draw(svg, "line", { class: "now", x1: x(from), y1: 11, x2: x(to), y2: 11 });
    const m = marks[k], kind = m == "q" ? "mq" : "mn";
    if (m == "p") return draw(svg, "path", { class: "ink", d: `M${round(x(v) - 4)},7h8v8h-8z` });
    draw(svg, "path", { class: `open ${kind}s`, d: `M${round(x(v) - 4.5)},6.5h9v9h-9z` });
    if (m == "q") draw(svg, "path", { class: "mq", d: `M${round(x(v) - 4.5)},6.5h4.5v9h-4.5z` });
  });
  return svg;
}

const score = () => +at("score").value;
const key = (how, one, two, where) =>
  how == "first" ? `f.${where}.${one}` : `${how == "within" ? "w" : "p"}.${where}.${[one, two].sort((a, b) => a - b).join(".")}`;
const fillIn = (text, names, where) =>
  text.replace(/\{([01])\}/g, (all, k) => B.names[names[k]]).replace("{s}", B.scores[where][1]);
const sentence = (k, record = B.records[k]) => {
  const [, where, ...names] = k.split(".").map(Number);
  return fillIn(B.texts[record[1]], record[10] || names, where);
};
const rule = () => document.querySelector("[name=rule]:checked")?.value | 0;
const levelOf = (record, r) => r ? +record[6][r - 1] : record[0];

function nearest(k, one, two, where) {
  const tries = [key("above", one, two, where), key("within", one, two, where), key("first", one, 0, where),
    key("first", two, 0, where), key("above", one, two, 0), key("within", one, two, 0), key("first", one, 0, 0),
    key("first", two, 0, 0), ...Object.keys(B.records).filter(n => n.split(".")[1] == where)];
  return tries.find(n => B.records[n] && B.records[n][0] < 2 && n != k);
}

function show() {
  const how = at("how").value, where = score();
  const one = +at("one").value, two = +at("two").value, r = rule();
  at("two").hidden = how == "first";
  if (B.pages[where]) {
    location = B.pages[where] + link(how, one, two, where);
    return;
  }
  const k = key(how, one, two, where), record = B.records[k];
  const same = one == two && how != "first";
  const turned = record && record[2] >= 0 && how != "within" && record[2] != (how == "above" ? one : two);
  let level = !record || same || turned ? 2 : levelOf(record, r), about = "";
  if (same) about = "An agent is compared with another one.";
  else if (!record) about = how == "within" ? "Equivalence was tested on the overall score alone." : "This study did not test this sentence.";
  else if (turned) about = "The other direction is supported.";
  else if (record[0] == 2) about = sentence(k);
  else if (level > 1) about = fillIn(B.texts[record[1]], record[10], where).replace(/\.$/, "") + (level == 3 ? ": this test cannot tell, whatever the data." : ": not by this rule.");
  const plain = level > 1 || record[0] == 2, name = plain ? "no-claim" : LEVELS[level];
  const [, words, why, tally] = B.rules[r];
  at("other").textContent = r ? "Decided by " + words + ", not by the preregistered rule. For comparison only; copying is off. " + (why || (record && record[0] == 2 && level < 2 ? "This rule would support one direction, which is not shown." : "")) : "";
  document.querySelectorAll(".counts b").forEach((b, n) => b.textContent = tally[n].toLocaleString("en"));
  at("answer").className = "answer " + name;
  at("level").replaceChildren(mark(name, level == 3 ? "Not testable by this rule" : TAGS[plain ? 2 : level]));
  at("said").textContent = plain ? about : `“${sentence(k)}”`;
  const also = plain ? [] : record[3].map(n => fillIn(B.texts[n], record[10], where));
  at("also").replaceChildren(...also.length ? [make("b", "Say also:"), " " + also.join(" ")] : []);
  const may = !plain && !r && B.copy, copy = at("copy");
  copy.disabled = !may;
  copy.textContent = may ? also.length ? "Copy sentence and condition" : "Copy sentence" : "Nothing to copy";
  const built = record && record[9] >= 0 ? B.texts[record[9]] : "";
  copy.dataset.copy = may ? `“${sentence(k)}” ${[built, ...also].filter(Boolean).join(" ")}`.trim() + B.copy.slice(B.copy.indexOf(" (assaymark")) : "";
  const proof = at("proof");
  if (proof) {
    proof.hidden = !record || same;
    if (record) proof.href = B.texts[record[7]] + "#" + record[8];
  }
  const helps = [];
  if (plain && !r) {
    const near = nearest(turned ? "" : k, one, two, where);
    helps.push(make("p", "Nearest supported sentence", "sub"));
    if (near) {
      const p = make("p");
      p.append(mark(LEVELS[B.records[near][0]], TAGS[B.records[near][0]].toLowerCase()));
      helps.push(make("p", `“${sentence(near)}”`, "near"), p);
    } else helps.push(make("p", "No nearby sentence on this score is supported. What the agents did is on the page of agents."));
  }
  if (record && !same && !turned && record[4].length) {
    helps.push(make("p", plain ? "What would help" : level ? "What would remove the condition" : "What would overturn it", "sub"));
    helps.push(...record[4].map(n => make("p", B.texts[n])));
  }
  at("helps").replaceChildren(...helps);
  const shown = same || turned || !record ? [] : record[5];
  at("gates").replaceChildren(...NAMES.map((title, n) => {
    const gate = B.gates[shown[n]], li = make("li", "", gate ? gate[0] : "unreached"), p = make("p");
    const head = make("h3"), way = make("a", title);
    if (gate && gate[3]) way.href = B.texts[gate[3]];
    head.append(gate && gate[3] ? way : title);
    li.append(head);
    if (!gate) li.append(make("p", "", "void"), make("p", "not reached"));
    else {
      if (gate[2]) li.append(strip(gate[2]));
      else if (gate[0] == "stops") li.append(make("p", "", "void"));
      if (gate[0]) p.append(make("b", gate[0] == "stops" ? "Stops here." : "Condition."), " ");
      p.append(B.texts[gate[1]]);
      li.append(p);
    }
    return li;
  }));
  at("link").href = link(how, one, two, where);
}

const safe = text => encodeURIComponent(text).replace(/\./g, "%2E");
const link = (how, one, two, where) =>
  "#say=" + [B.agents[one], how, ...how == "first" ? [] : [B.agents[two]], B.scores[where][0]].map(safe).join(".");
function read() {
  const found = location.hash.match(/^#say=(.*)/);
  if (!found) return;
  let parts = [];
  try {
    parts = found[1].split(".").map(decodeURIComponent);
  } catch {}
  const how = parts[1], first = how == "first", one = B.agents.indexOf(parts[0]), two = first ? 0 : B.agents.indexOf(parts[2]);
  const where = B.scores.findIndex(s => s[0] == parts[first ? 2 : 3]);
  if (one < 0 || two < 0 || where < 0 || !/^(above|below|first|within)$/.test(how)) {
    at("other").textContent = "This link names an agent or score that this study does not have";
    return;
  }
  [at("one").value, at("how").value, at("two").value] = [one, how, first ? at("two").value : two];
  at("score").value = where;
  show();
}
for (const el of document.querySelectorAll(".ask select,[name=rule]")) {
  el.onchange = () => {
    show();
    try {
      history.replaceState(null, "", at("link").href);
    } catch {}
  };
}
addEventListener("hashchange", read);
read();
