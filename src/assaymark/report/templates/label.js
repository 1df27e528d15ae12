const at = id => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const served = data.labels !== null;
const [low, high] = data.scale, wide = high - low > 10;
const items = data.cycles.flatMap((cycle, number) => cycle.texts.map(text => ({ text, cycle, number })));
const key = ["assaymark", data.run, data.grader, served ? 0 : data.part[0]].join("-");
const past = [], spent = {};
let labels = { ...data.labels }, unsent = {}, here = 0, now = 0, shown = -1, since = 0, running = false, sending = false;

function make(tag, text, more) {
  const el = Object.assign(document.createElement(tag), more);
  if (text !== undefined) el.textContent = text;
  return el;
}
function warn(text) {
  at("warn").textContent = text;
  at("warn").hidden = !text;
}

// Keeping: on disk through the server, else in the browser; what could not be sent stays in the browser. Each label has
// a place of its own, so that a second tab takes none away.
const place = id => key + "-" + id;
function keep(id) {
  const label = (served ? unsent : labels)[id];
  try {
    if (label) localStorage.setItem(place(id), JSON.stringify(label));
    else localStorage.removeItem(place(id));
  } catch {
    if (!served) warn("This browser keeps no grades. Download the CSV before you close the page.");
  }
}
try {
  for (const { text } of items) {
    const found = JSON.parse(localStorage.getItem(place(text.id)));
    if (found) labels[text.id] = found;
    if (found && served) unsent[text.id] = found;
  }
} catch {
  keep();
}
addEventListener("storage", event => {
  const item = items.find(one => place(one.text.id) == event.key);
  if (!item || !event.newValue) return;
  labels[item.text.id] = JSON.parse(event.newValue);
  count();
  if (item == items[here]) paint();
});
async function send() {
  if (!served || sending) return;
  sending = true;
  try {
    for (let id; id = Object.keys(unsent)[0];) {
      const label = unsent[id], body = JSON.stringify({ id, ...label });
      const reply = await fetch("save", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      if (!reply.ok) throw reply.status;
      if (unsent[id] === label) delete unsent[id];
      keep(id);
      warn("");
    }
    kept();
  } catch {
    warn("Not on disk yet: the server does not answer. This browser keeps " + Object.keys(unsent).length + " unsent; run the same command again and open its new address.");
    setTimeout(send, 2000);
  }
  sending = false;
}
function kept() {
  if (served && !Object.keys(unsent).length) at("ended").textContent = "Every grade is on disk. You can close this page.";
}
function put(id, label) {
  tick();
  labels[id] = { ...label, at: new Date().toISOString(), seconds: Math.round((spent[id] || 0) / 100) / 10 };
  if (served) unsent[id] = labels[id];
  keep(id);
  send();
  count();
}

// Time is counted while a text is on the screen.
function tick() {
  const time = performance.now(), item = items[here];
  if (running && item) spent[item.text.id] = (spent[item.text.id] || 0) + time - since;
  since = time;
  const seconds = item ? Math.floor((spent[item.text.id] || 0) / 1000) : 0;
  at("clock").textContent = Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
}
function run(on) {
  tick();
  running = on;
}
setInterval(tick, 500);
document.onvisibilitychange = () => run(!document.hidden && !at("work").hidden);

const scores = () => labels[items[here].text.id]?.scores || {};
const done = item => data.questions.every(one => one.name in (labels[item.text.id]?.scores || {}));
function count() {
  const graded = items.filter(done).length;
  at("bar").max = items.length;
  at("bar").value = graded;
  at("count").textContent = graded + " of " + items.length + " graded";
  at("undo").disabled = !past.length;
}

// What is shown.
function sections(into, found) {
  into.replaceChildren();
  for (const [name, content] of found) {
    if (name) into.append(make("h2", name));
    if (typeof content == "string") {
      into.append(make("div", content, { className: "prose" }));
      continue;
    }
    const [head, ...rows] = content, table = make("table"), scroll = make("div", undefined, { className: "scroll", tabIndex: 0 });
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", name);
    const top = table.createTHead().insertRow(), body = table.createTBody();
    for (const cell of head) top.append(make("th", cell, { scope: "col" }));
    for (const row of rows) {
      const line = body.insertRow();
      for (const cell of row) line.append(make("td", cell));
    }
    scroll.append(table);
    into.append(scroll);
  }
}
function panel(name) {
  for (const one of ["work", "rest", "end"]) at(one).hidden = one != name;
  at("pause").disabled = name != "work";
  run(name == "work" && !document.hidden);
}
function show(index, focus = true) {
  tick();
  here = index;
  const item = items[here];
  if (!item) return end();
  panel("work");
  const label = labels[item.text.id];
  if (label && !(item.text.id in spent)) spent[item.text.id] = 1000 * (label.seconds || 0);
  const fresh = item.number != shown;
  if (fresh) {
    sections(at("given"), item.cycle.material);
    at("material").hidden = !item.cycle.material.length;
    at("given").scrollTop = 0;
    shown = item.number;
  }
  sections(at("text"), item.text.sections);
  at("title").textContent = document.title = "Text " + (here + 1) + " of " + items.length;
  at("said").textContent = !item.cycle.material.length ? "" : fresh ? "New material" : "Same material as before";
  at("back").disabled = !here;
  at("comment").value = label?.comment || "";
  paint();
  count();
  tick();
  scrollTo(0, 0);
  const open = data.questions.findIndex(one => !(one.name in scores()));
  turn(open < 0 ? 0 : open, focus);
}
function end() {
  const cannot = Object.values(labels).flatMap(one => Object.values(one.scores)).filter(one => one === null).length;
  panel("end");
  at("title").textContent = document.title = "All " + items.length + " texts are graded";
  at("said").textContent = cannot ? "Cannot say: " + cannot : "";
  const [part, parts] = data.part;
  at("ended").textContent = served ? "" : "Download the CSV and send it back." + (part < parts ? " Part " + (part + 1) + " of " + parts + " is a file of its own." : "");
  at("take").hidden = served;
  kept();
  at("title").focus();
  known();
}
async function known() {
  if (!self.crypto?.subtle) return;
  let right = 0, all = 0;
  for (const { text } of items) for (const name in text.check || {}) {
    const said = [data.salt, text.id, name, labels[text.id]?.scores[name]].join("|");
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(said)));
    all += 1;
    right += text.check[name] == [...hash].map(one => one.toString(16).padStart(2, "0")).join("");
  }
  at("gold").textContent = all ? right + " of " + all + " questions with a known answer were answered as expected." : "";
}

// Questions: radio buttons for up to eleven points, else a number.
const fields = data.questions.map((one, q) => {
  const field = make("fieldset"), box = make("div", undefined, { className: "points" }), said = new Map(one.anchors);
  field.append(make("legend", one.title));
  if (one.question) field.append(make("p", one.question));
  const choice = (value, text) => {
    const label = make("label"), input = make("input", undefined, { type: "radio", name: "q" + q, value });
    if (said.has(value)) input.setAttribute("aria-describedby", "a" + q + "-" + value);
    input.onchange = () => give(q, value);
    label.append(input, text);
    box.append(label);
  };
  if (wide) {
    const input = make("input", undefined, { type: "text", inputMode: "numeric", id: "n" + q });
    input.setAttribute("aria-label", one.title + ", " + low + " to " + high);
    input.onchange = () => typed(q);
    box.append(input, make("span", low + " to " + high));
  } else {
    for (let value = low; value <= high; value++) choice(value, low == 0 && high == 1 ? ["0 fail", "1 pass"][value] : String(value));
  }
  choice("", "Cannot say");
  field.append(box);
  if (one.anchors.length) {
    const list = make("ul", undefined, { className: "anchors" });
    for (const [value, text] of one.anchors) {
      const line = make("li", undefined, { id: "a" + q + "-" + value });
      line.append(make("b", value), make("span", text));
      list.append(line);
    }
    field.append(list);
  }
  field.addEventListener("focusin", () => mark(q));
  at("questions").append(field);
  return field;
});
at("who").textContent = data.grader;
at("save").hidden = served;
at("instructions").textContent = data.instructions;
at("rules").hidden = !data.instructions;

const input = (q, value) => [...fields[q].querySelectorAll("input[type=radio]")].find(one => one.value === String(value));
const number = q => fields[q].querySelector("input[type=text]");
function paint() {
  data.questions.forEach(({ name }, q) => {
    const given = scores(), value = given[name];
    for (const one of fields[q].querySelectorAll("input[type=radio]")) one.checked = name in given && one.value === String(value ?? "");
    if (wide) {
      number(q).value = value ?? "";
      number(q).removeAttribute("aria-invalid");
    }
    for (const line of fields[q].querySelectorAll(".anchors li")) line.classList.toggle("on", line.id == "a" + q + "-" + value);
  });
}
function mark(q) {
  now = q;
  fields.forEach((one, index) => one.classList.toggle("now", index == q));
}
function turn(q, focus = true) {
  mark(q);
  const first = number(q) || fields[q].querySelector("input:checked") || fields[q].querySelector("input");
  if (focus) first.focus({ preventScroll: true });
  if (focus && q) fields[q].scrollIntoView({ block: "nearest" });
}
function give(q, value) {
  const { id } = items[here].text, label = labels[id] || { comment: at("comment").value };
  past.push([here, labels[id]]);
  put(id, { ...label, scores: { ...label.scores, [data.questions[q].name]: value === "" ? null : value } });
  paint();
}
function typed(q) {
  const field = number(q), text = field.value.trim();
  if (!text) return true;
  const good = /^-?[0-9]{1,6}$/.test(text) && +text >= low && +text <= high;
  if (!good) {
    field.setAttribute("aria-invalid", "true");
    at("said").textContent = "A whole number from " + low + " to " + high;
  } else if (scores()[data.questions[q].name] !== +text) {
    give(q, +text);
  }
  return good;
}
function comment() {
  const item = items[here];
  if (!item || at("comment").value === (labels[item.text.id]?.comment || "")) return;
  put(item.text.id, { scores: scores(), comment: at("comment").value });
}
at("comment").oninput = () => {
  clearTimeout(comment.timer);
  comment.timer = setTimeout(comment, 400);
};
at("comment").onchange = comment;

// Moving.
function next() {
  if (wide && !data.questions.every((_, q) => typed(q))) return;
  comment();
  const name = q => data.questions[q].name, all = data.questions.map((_, q) => q);
  const open = [...all.slice(now), ...all.slice(0, now)].find(q => !(name(q) in scores()));
  if (open !== undefined) {
    at("said").textContent = data.questions[open].title + " has no grade yet";
    return turn(open);
  }
  const left = items.findIndex(item => !done(item));
  show(here + 1 < items.length ? here + 1 : left < 0 ? items.length : left);
}
function back() {
  if (!here) return;
  comment();
  show(here - 1);
}
function undo() {
  const [index, before] = past.pop() || [];
  if (index === undefined) return;
  if (!at("work").hidden) comment();
  const { id } = items[index].text;
  put(id, { scores: before?.scores || {}, comment: labels[id].comment });
  show(index);
}
function pause() {
  comment();
  panel("rest");
  at("title").textContent = "Paused";
  at("said").textContent = "";
  at("resume").focus();
}
at("ask").onsubmit = event => {
  event.preventDefault();
  next();
};
at("back").onclick = at("again").onclick = back;
at("undo").onclick = undo;
at("pause").onclick = pause;
at("resume").onclick = () => show(here);

// Two digits in a row make a number where the scale has one.
let digits = "";
function digit(sign) {
  const points = Array.from({ length: high - low + 1 }, (_, index) => low + index);
  const value = [digits + sign, sign, sign == "0" ? "10" : sign].map(Number).find(one => points.includes(one));
  digits = "";
  if (value === undefined) return;
  give(now, value);
  if (points.some(one => one > 9 && String(one).startsWith(value))) digits = String(value);
  turn(digits || now + 1 == fields.length ? now : now + 1);
}
const letters = { c: () => { give(now, ""); turn(Math.min(now + 1, fields.length - 1)); }, b: back, u: undo, p: pause, m: () => { at("material").open = !at("material").open; } };
document.onkeydown = event => {
  const { key: sign, target } = event, asked = target.closest("#questions");
  const take = act => {
    event.preventDefault();
    act();
  };
  if (sign == "Enter" && event.ctrlKey && !at("work").hidden) return take(next);
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (target.id == "comment") return sign == "Escape" ? take(() => turn(now)) : undefined;
  if (at("work").hidden) {
    if (at("letters").checked && sign == "p" && !at("rest").hidden) take(() => show(here));
    if (at("letters").checked && sign == "u") take(undo);
    if (at("letters").checked && sign == "b" && !at("end").hidden) take(back);
    return;
  }
  const waited = digits;
  if (sign == "Enter" && !target.closest("button,summary,a")) return take(next);
  if (asked && sign == "ArrowUp") return take(() => turn(Math.max(now - 1, 0)));
  if (asked && sign == "ArrowDown") return take(() => turn(Math.min(now + 1, fields.length - 1)));
  if (!at("letters").checked) return;
  if (/^[0-9]$/.test(sign) && target.type != "text") return take(() => digit(sign));
  if (waited) digits = "";
  if (letters[sign]) take(letters[sign]);
};

// What comes back: one row for each grade.
function csv() {
  // A comment that begins like a formula is text to a spreadsheet, too.
  const mark = String.fromCharCode(34), plain = one => (/^[=+@\t\r-]/.test(one) ? "'" : "") + one;
  const cell = one => mark + plain(one ?? "").split(mark).join(mark + mark) + mark;
  const rows = [["run", "id", "grader", "dimension", "grade", "at", "seconds", "comment"].join(",")];
  for (const { text } of items) {
    const label = labels[text.id];
    for (const { name } of data.questions) if (label && name in label.scores) {
      rows.push([data.run, text.id, data.grader, name, label.scores[name] ?? "cannot say", label.at, label.seconds, cell(label.comment)].join(","));
    }
  }
  return rows.join("\n") + "\n";
}
at("save").onclick = at("take").onclick = () => {
  comment();
  const link = make("a", undefined, { href: URL.createObjectURL(new Blob([csv()], { type: "text/csv" })), download: data.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

count();
send();
const first = items.findIndex(item => !done(item));
show(first < 0 ? items.length : first);
