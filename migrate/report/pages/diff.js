"use strict";
const body = document.querySelector("tbody");
const rows = [...body.rows];
const filter = document.getElementById("filter");
const count = document.getElementById("count");
const totals = [...document.querySelectorAll(".totals button")];
const headings = [...document.querySelectorAll("thead th[data-kind]")];
const noun = rows.length === 1 ? "partition" : "partitions";
const words = new Map(
  rows.map((row) => [
    row,
    `${row.cells[0].textContent} ${row.cells[1].textContent} ${row.dataset.relation}`.toLowerCase(),
  ]),
);
let relation = "";

function show() {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = words.get(row);
    row.hidden =
      (relation !== "" && row.dataset.relation !== relation) ||
      !wanted.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = `${shown} of ${rows.length} ${noun}`;
}

// An offset has 64 bits, of which a Number holds 53.
function value(row, column, kind) {
  const cell = row.cells[column];
  if (kind === "text") return cell.textContent;
  const number = cell.dataset.value ?? cell.textContent;
  return number === "" ? null : BigInt(number);
}

function sort(heading) {
  const column = heading.cellIndex;
  const kind = heading.dataset.kind;
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const other of headings) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const keyed = rows.map((row) => [value(row, column, kind), row]);
  keyed.sort(([a], [b]) => {
    // What cannot be told comes last either way.
    if (a === null || b === null) return (a === null) - (b === null);
    return (falling ? -1 : 1) * ((a > b) - (a < b));
  });
  keyed.forEach(([, row], place) => (rows[place] = row));
  body.append(...rows);
}

filter.addEventListener("input", show);
for (const button of totals) {
  button.addEventListener("click", () => {
    relation = button.dataset.relation === relation ? "" : button.dataset.relation;
    for (const other of totals) {
      other.setAttribute("aria-pressed", String(other.dataset.relation === relation));
    }
    show();
  });
}
for (const heading of headings) {
  heading.firstElementChild.addEventListener("click", () => sort(heading));
}
