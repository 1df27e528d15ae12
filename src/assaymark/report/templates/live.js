(function () {
  "use strict";
  var doc = document;
  var said = doc.getElementById("said");
  var body = doc.getElementById("rows");
  var named = {};
  Array.prototype.forEach.call(body.rows, function (row) { named[row.getAttribute("data-model")] = row; });
  function ask() {
    fetch("live.json", { cache: "no-store" }).then(function (reply) { return reply.json(); }).then(function (now) {
      if (said.textContent !== now.said) { said.textContent = now.said; }
      now.rows.forEach(function (one) {
        var row = named[one.model];
        if (!row) { location.reload(); return; }
        row.cells[1].textContent = one.planned.toLocaleString("en");
        row.cells[2].textContent = one.answered.toLocaleString("en");
        var bar = row.querySelector("progress");
        bar.max = one.planned;
        bar.value = one.answered;
      });
      setTimeout(ask, now.done ? 10000 : 2000);
    }).catch(function () {
      said.textContent = "The server has stopped; what it showed last stands below.";
    });
  }
  setTimeout(ask, 2000);
})();
