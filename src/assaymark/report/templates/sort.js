// Columns of facts sort by their numbers; the column of names brings the order of the page back.
for (const head of all("[data-sort]")) {
  const button = document.createElement("button"), body = head.closest("table").tBodies[0], rows = [...body.rows];
  button.append(...head.childNodes);
  head.append(button);
  const sign = lang == "en" ? /,/g : /\./g;
  const number = text => parseFloat(text.replace("−", "-").replace(sign, "").replace(",", ".")) || 0;
  const value = row => head.cellIndex && number(row.cells[head.cellIndex].textContent);
  button.onclick = () => {
    const down = head.ariaSort != "descending";
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = down ? "descending" : "ascending";
    body.append(...[...rows].sort((a, b) => down ? value(b) - value(a) : value(a) - value(b)));
  };
}
