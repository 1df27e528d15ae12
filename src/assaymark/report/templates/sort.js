// Columns of facts sort by their numbers; the column of names brings the order of the page back.
for (const head of all("[data-sort]")) {
  const button = document.createElement("button"), body = head.closest("table").tBodies[0], rows = [...body.rows];
  button.append(...head.childNodes);
  head.append(button);
  const text = row => row.cells[head.cellIndex].textContent.replace("−", "-").replace(lang == "en" ? /,/g : /\./g, "");
  const value = row => head.cellIndex && parseFloat(text(row).replace(",", ".")) || 0;
  button.onclick = () => {
    const way = head.ariaSort == "descending" ? 1 : -1;
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = way < 0 ? "descending" : "ascending";
    body.append(...[...rows].sort((a, b) => way * (value(a) - value(b))));
  };
}
