(function () {
  "use strict";
  var doc = document;
  function written(count) { return count.toLocaleString(doc.documentElement.lang); }
  function each(list, fn) { Array.prototype.forEach.call(list, fn); }
  each(doc.querySelectorAll("[data-js]"), function (el) { el.hidden = false; });

  function fallback(text) {
    var area = doc.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    doc.body.appendChild(area);
    area.select();
    var done = doc.execCommand("copy");
    doc.body.removeChild(area);
    return done ? Promise.resolve() : Promise.reject(new Error("copy"));
  }
  function copy(text) {
    if (!navigator.clipboard) { return fallback(text); }
    return navigator.clipboard.writeText(text).catch(function () { return fallback(text); });
  }
  each(doc.querySelectorAll("[data-copy]"), function (button) {
    var name = button.textContent;
    button.addEventListener("click", function () {
      var words = button.getAttribute("data-said").split("|");
      function say(word) {
        button.textContent = word;
        setTimeout(function () { button.textContent = name; }, 1600);
      }
      copy(button.getAttribute("data-copy")).then(say.bind(null, words[0]), say.bind(null, words[1]));
    });
  });

  each(doc.querySelectorAll("[data-tools]"), function (tools) {
    var list = doc.getElementById(tools.getAttribute("data-tools"));
    var rows = list.tBodies ? list.tBodies[0].rows : list.children;
    var buttons = tools.querySelectorAll("button");
    var box = tools.querySelector("input");
    var out = tools.querySelector("output");
    var key = "";
    var texts = null;
    function show() {
      var want = box.value.trim().toLowerCase();
      var count = 0;
      if (want && !texts) {
        texts = Array.prototype.map.call(rows, function (row) { return row.textContent.toLowerCase(); });
      }
      each(rows, function (row, at) {
        var also = " " + row.getAttribute("data-x") + " ";
        var mine = !key || row.getAttribute("data-k") === key || also.indexOf(" " + key + " ") >= 0;
        var on = mine && (!want || texts[at].indexOf(want) >= 0);
        row.hidden = !on;
        count += on ? 1 : 0;
      });
      out.textContent = out.getAttribute("data-shown").replace("#", written(count)).replace("#", written(rows.length));
    }
    each(buttons, function (button) {
      button.addEventListener("click", function () {
        key = button.getAttribute("data-f");
        each(buttons, function (other) { other.setAttribute("aria-pressed", String(other === button)); });
        show();
      });
    });
    box.addEventListener("input", show);
    show();
  });

  window.addEventListener("beforeprint", function () {
    each(doc.querySelectorAll("details"), function (el) { el.open = true; });
  });
})();
