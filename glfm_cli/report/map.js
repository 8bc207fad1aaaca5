// Draws the map that its element describes, and tells of the row under the pointer.
for (const box of document.querySelectorAll("[data-map]")) {
  const map = JSON.parse(box.dataset.map);
  const canvas = box.querySelector("canvas"), note = box.querySelector("output");
  const choice = box.querySelector("select"), legend = box.querySelector(".legend");
  const pen = canvas.getContext("2d"), n = map.x.length;
  const spread = (a) => a.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)],
                                 [Infinity, -Infinity]);
  const [west, east] = spread([...map.x, ...map.base.x]);
  const [south, north] = spread([...map.y, ...map.base.y]);
  let view, column = map.columns[map.color], at = -1, grip = null;

  const colour = (shade) => (column.ramp ? map.ramp : map.levels)[shade];
  const px = (x) => view.left + (x - west) * view.scale;
  const py = (y) => view.top + (north - y) * view.scale;

  function fit() {
    const width = canvas.clientWidth, height = canvas.clientHeight, edge = 24;
    const scale = Math.min((width - 2 * edge) / (east - west || 1),
                           (height - 2 * edge) / (north - south || 1));
    view = { scale, left: (width - scale * (east - west)) / 2,
             top: (height - scale * (north - south)) / 2 };
  }

  function ellipse(i, fill) {
    pen.beginPath();
    pen.ellipse(px(map.x[i]), py(map.y[i]), map.major[i] * view.scale, map.minor[i] * view.scale,
                -map.angle[i], 0, 2 * Math.PI);
    pen.globalAlpha = fill;
    pen.fill();
    pen.globalAlpha = 0.6;
    pen.stroke();
    pen.globalAlpha = 1;
  }

  function dot(i, radius) {
    pen.beginPath();
    pen.arc(px(map.x[i]), py(map.y[i]), radius, 0, 2 * Math.PI);
  }

  function draw() {
    const style = getComputedStyle(document.body), ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style.getPropertyValue("--line");
    for (let i = 0; i < map.base.x.length; i++) {
      pen.fillRect(px(map.base.x[i]) - 1, py(map.base.y[i]) - 1, 2, 2);
    }
    const radius = Math.max(2.2, Math.min(4.5, 140 / Math.sqrt(n)));
    for (const i of map.unsure) {
      pen.fillStyle = pen.strokeStyle = colour(column.shade[i]);
      ellipse(i, 0.08);
    }
    for (let i = 0; i < n; i++) {
      dot(i, radius);
      if (column.given[i]) {
        pen.fillStyle = colour(column.shade[i]);
        pen.fill();
      } else {
        pen.strokeStyle = colour(column.shade[i]);
        pen.lineWidth = 1.4;
        pen.stroke();
        pen.lineWidth = 1;
      }
    }
    if (at >= 0) {
      pen.fillStyle = pen.strokeStyle = style.getPropertyValue("--ink");
      ellipse(at, 0.15);
      dot(at, radius + 1.5);
      pen.lineWidth = 2;
      pen.stroke();
      pen.lineWidth = 1;
    }
  }

  function name() {
    legend.replaceChildren(...column.stops.map(([shade, text]) => {
      const item = document.createElement("span"), mark = document.createElement("i");
      mark.style.background = colour(shade);
      item.append(mark, text);
      return item;
    }));
  }

  function tell(event) {
    const frame = canvas.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    let nearest = -1, least = 14 * 14;
    for (let i = 0; i < n; i++) {
      const d = (px(map.x[i]) - x) ** 2 + (py(map.y[i]) - y) ** 2;
      if (d < least) [nearest, least] = [i, d];
    }
    if (nearest !== at) {
      at = nearest;
      draw();
    }
    note.hidden = at < 0;
    if (at < 0) return;
    const lines = [map.label[at],
                   `${column.name}: ${column.text[at]}${column.given[at] ? "" : " (completed)"}`,
                   `place ${map.x[at].toFixed(2)}, ${map.y[at].toFixed(2)}; sd ${map.sd[at]}`];
    lines.push(map.odd[at] ? `unusual: ${map.odd[at]}` : "nothing unusual for its place");
    note.replaceChildren(...lines.map((text, i) => {
      const line = document.createElement(i ? "span" : "b");
      line.textContent = text;
      return line;
    }));
    const right = x > frame.width / 2;
    note.style.left = right ? "" : `${x + 14}px`;
    note.style.right = right ? `${frame.width - x + 14}px` : "";
    note.style.top = `${y + 10}px`;
  }

  choice.addEventListener("change", () => {
    column = map.columns[choice.value];
    name();
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip) return tell(event);
    view.left += event.clientX - grip[0];
    view.top += event.clientY - grip[1];
    grip = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("pointerdown", (event) => {
    grip = [event.clientX, event.clientY];
    note.hidden = true;
    canvas.setPointerCapture(event.pointerId);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => { grip = null; });
  }
  canvas.addEventListener("pointerleave", () => {
    at = -1;
    note.hidden = true;
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const frame = canvas.getBoundingClientRect(), by = Math.exp(-event.deltaY / 400);
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    view = { scale: view.scale * by, left: x - (x - view.left) * by, top: y - (y - view.top) * by };
    draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => {
    fit();
    draw();
  });
  window.addEventListener("resize", () => {
    fit();
    draw();
  });
  choice.value = map.color;
  fit();
  name();
  draw();
}
