
// A click on a column's name sorts by it: numbers falling first, names rising first; another click turns it round.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const header = table.tHead.rows[0].cells;
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent;
    return cell.dataset.value === "inf" ? Infinity : cell.dataset.value === "-inf" ? -Infinity : Number(cell.dataset.value);
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a < b ? -1 : a > b ? 1 : 0);
  for (let column = 0; column < header.length; column++) {
    header[column].querySelector("button").addEventListener("click", () => {
      const rows = Array.from(table.tBodies[0].rows);
      if (rows.length === 0) return;
      const current = header[column].getAttribute("aria-sort");
      const rising = current ? current === "descending" : typeof key(rows[0], column) === "string";
      rows.sort((a, b) => (rising ? 1 : -1) * compare(key(a, column), key(b, column)));
      for (const cell of header) cell.removeAttribute("aria-sort");
      header[column].setAttribute("aria-sort", rising ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    });
  }
}
