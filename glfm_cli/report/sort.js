for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, row = head.parentElement;
    const body = row.closest("table").tBodies[0], at = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of row.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (tr) => tr.cells[at].dataset.value ?? tr.cells[at].textContent;
    const rows = [...body.rows];
    const numeric = rows.every((tr) => key(tr) === "" || !isNaN(Number(key(tr))));
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
      return down ? -order : order;
    });
    body.append(...rows);
  });
}
