"use strict";
// The page of memlog serve. The address after # chooses what is shown: nothing is all processes,
// #4711 the functions of one. Rows come by server-sent events, a second apart.

const kViews = {
  processes: {
    rows: "processes", key: (row) => String(row.pid),
    name: (row) => [`${row.name}[${row.pid}]`, row.program, `#${row.pid}`],
    columns: [["bytes", "live", "bytes"], ["growth_bytes_per_s", "growth/s", "change"],
              ["peak_bytes", "peak", "bytes", "less"], ["resident_bytes", "resident", "bytes"],
              ["blocks", "blocks", "count", "less"]],
    none: "No process with a readable ledger. Start one with memlog run, or with MTRACE_LEDGER." },
  functions: {
    rows: "functions", key: (row) => [state.pid, row.function, row.source || ""].join("\n"),
    name: (row) => [row.function, row.source || "", ""], opens: true,
    columns: [["bytes", "live", "bytes"], ["blocks", "blocks", "count"],
              ["peak_bytes", "at the peak", "bytes", "less"],
              ["allocated_blocks_per_s", "allocs/s", "count", "less"],
              ["stack_count", "stacks", "count", "less"]],
    none: "The process holds no memory." } };

const state = { view: kViews.processes, pid: "", answer: null, mark: null, sort: "bytes",
                source: null, all: false };
const lines = new Map();  // of the table, by key of the row
const kFirstRows = 60;

const sizeOf = (value, sign) => (sign && value > 0 ? '+' : '') + sizeText(value);
const countOf = (value, sign) => (sign && value > 0 ? '+' : '') + grouped(value);

// The row's number, since the mark if there is one and the column has a past.
function quantity(row, column) {
  const base = state.mark && (column === "bytes" || column === "blocks");
  const before = base ? state.mark.get(state.view.key(row)) : null;
  return row[column] - (before ? before[column] : 0);
}

function rows() {
  const words = at("search").value.trim().toLowerCase();
  return state.answer[state.view.rows]
    .filter((row) => !words || state.view.name(row).join(" ").toLowerCase().includes(words))
    .filter((row) => !state.mark || quantity(row, "bytes") !== 0 || quantity(row, "blocks") !== 0)
    .sort((a, b) => quantity(b, state.sort) - quantity(a, state.sort));
}

function putCell(td, row, [column, , kind]) {
  const signed = kind === "change" || (state.mark && (column === "bytes" || column === "blocks"));
  const value = quantity(row, column);
  const text = kind === "count" ? countOf(value, signed) : sizeOf(value, signed);
  const color = signed && value ? (value > 0 ? "up" : "down") : "";
  if (td.textContent !== text) td.textContent = text;
  td.classList.toggle("up", color === "up");
  td.classList.toggle("down", color === "down");
  td.title = grouped(value);
}

function nameCell(row) {
  const [name, detail, link] = state.view.name(row);
  return make("td", {}, link ? make("a", { href: link }, name)
    : make("button", { type: "button", "class": "stack", "aria-expanded": "false" }, name),
              make("small", {}, detail));
}

// The row's line in the table: the one that it had, if its name is still the same. Those far below
// keep the course that they had: a thousand of them take as long as all else.
function line(row, i) {
  const shown = i < kFirstRows;
  const key = state.view.key(row);
  const name = state.view.name(row).join("\n");
  let one = lines.get(key);
  if (!one || one.name !== name) {
    const cells = state.view.columns.map(([, , , less]) => make("td", { "class": less || "" }));
    const course = make("td", { "class": "less" });
    one = { name, cells, course, tr: make("tr", {}, nameCell(row), ...cells, course), more: [] };
    one.tr.classList.toggle("opens", Boolean(state.view.opens));
    if (state.view.opens) one.tr.onclick = () => openRow(one, row);
    lines.set(key, one);
  }
  state.view.columns.forEach((column, i) => putCell(one.cells[i], row, column));
  if (shown) one.course.replaceChildren(smallCourse(key));
  return [one.tr, ...one.more];
}

// Opens the row of a function to its stacks, or closes it.
function openRow(one, row) {
  const place = make("td", { colspan: one.cells.length + 2, "class": "more" });
  one.more = one.more.length ? [] : [make("tr", {}, place)];
  one.tr.querySelector(".stack").setAttribute("aria-expanded", String(one.more.length !== 0));
  if (one.more.length) fillStacks(place, state.pid, row);
  draw();
}

function drawTitles() {
  const first = document.createElement("th");
  first.textContent = state.view === kViews.processes ? "process" : "function";
  first.scope = "col";
  at("titles").replaceChildren(first, ...state.view.columns.map(([column, title, , less]) => {
    const th = document.createElement("th");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    button.onclick = () => { state.sort = column; drawTitles(); draw(); };
    th.scope = "col";
    th.className = less || "";
    if (state.sort === column) th.setAttribute("aria-sort", "descending");
    th.append(button);
    return th;
  }));
  at("titles").append(make("th", { scope: "col", "class": "less" }, "live since opened"));
}

// The first rows are there at once, the others one frame later: a browser needs as long for a
// thousand rows as for all else.
function draw() {
  if (!state.answer) return;
  const found = rows();
  place(found.slice(0, state.all ? found.length : kFirstRows).flatMap(line));
  if (!state.all) requestAnimationFrame(() => setTimeout(() => { state.all = true; draw(); }));
  at("empty").hidden = found.length !== 0;
  at("empty").textContent = state.mark ? "Nothing changed since the mark."
    : at("search").value ? "No row matches the search." : state.view.none;
  drawCourse(state.answer.process);
  tell();
}

// Changes nothing when the order is the same. Otherwise the focus stays where it is.
function place(wanted) {
  const there = at("rows").children;
  if (there.length === wanted.length && wanted.every((tr, i) => tr === there[i])) return;
  const focused = document.activeElement;
  at("rows").replaceChildren(...wanted);
  if (focused && at("rows").contains(focused)) focused.focus({ preventScroll: true });
}

// Lines of what is not in the answer any more.
function forget() {
  const keys = new Set(state.answer[state.view.rows].map(state.view.key));
  for (const key of lines.keys()) if (!keys.has(key)) lines.delete(key);
}

// Of the program's own resources, by kind: a kind has a unit of its own.
const besides = ({ kinds = {} }) => Object.entries(kinds).map(
  ([kind, { bytes, blocks }]) => `, @${kind} ${countOf(bytes)} in ${countOf(blocks)}`).join("");

function tell() {
  const time = clockText(state.answer.taken_ms);
  const one = state.answer.process;
  const what = one
    ? `${sizeOf(one.bytes)} live in ${countOf(one.blocks)} blocks, ` +
      `${sizeOf(one.growth_bytes_per_s, true)}/s, peak ${sizeOf(one.peak_bytes)}, ` +
      `resident ${sizeOf(one.resident_bytes)}${besides(one)}`
    : state.answer.processes.length === 1 ? "1 process"
    : `${state.answer.processes.length} processes`;
  at("told").textContent = `${what}, at ${time}` + (state.mark ? `, since ${state.since}` : "");
  if (one) at("title").textContent = `${one.name}[${one.pid}]`;
}

function mark() {
  if (!state.answer) return;
  state.mark = state.mark ? null
    : new Map(state.answer[state.view.rows].map((row) => [state.view.key(row), row]));
  state.since = clockText(state.answer.taken_ms);
  at("mark").setAttribute("aria-pressed", String(Boolean(state.mark)));
  draw();
}

// The process that is shown has the key that it has among all of them.
function noteAll({ rows, key }, answer) {
  const { pid } = state;
  if (pid) noteCourses([answer.process], kViews.processes.key, pid + "!", answer.taken_ms);
  noteCourses(answer[rows], key, pid ? pid + "\n" : "", answer.taken_ms);
}

function listen(path) {
  if (state.source) state.source.close();
  const source = new EventSource(path);
  const { pid, view } = state;
  state.source = source;
  // Also when it connects again: memlog run may have recorded more.
  source.onopen = async () => {
    const found = pid && await readRecorded(pid);
    if (!found || source !== state.source) return;
    Object.assign(recorded, found);
    drawCourse(state.answer?.process);
  };
  source.onmessage = (event) => {
    at("ask").hidden = true;
    state.answer = JSON.parse(event.data);
    noteAll(view, state.answer);
    if (pid && moment.pid !== pid) takeMoment(pid);
    showActions(state.pid, Boolean(state.answer.actions));
    forget();
    draw();
  };
  source.addEventListener("gone", (event) => {
    source.close();
    at("told").textContent = JSON.parse(event.data).error;
  });
  source.onerror = async () => {
    if (source !== state.source || source.readyState !== EventSource.CLOSED) {
      at("told").textContent = "connection lost: trying again";
      return;
    }
    const answer = await fetch("api/reports").catch(() => null);  // only for its status
    at("ask").hidden = !answer || answer.status !== 401;
    at("told").textContent = answer && answer.status === 401 ? "needs the token"
      : "the process has ended, or the server has";
  };
}

function open() {
  const where = tableOf(location.hash);
  if (where) return openStill(where);
  at("filter").hidden = true;
  for (const id of ["mark", "find"]) at(id).hidden = false;
  at("done").textContent = "";
  state.pid = /^#[0-9]+$/.test(location.hash) ? location.hash.slice(1) : "";
  state.view = state.pid ? kViews.functions : kViews.processes;
  Object.assign(state, { answer: null, mark: null, sort: "bytes", all: false });
  lines.clear();
  at("mark").setAttribute("aria-pressed", "false");
  at("title").textContent = state.pid ? `Process ${state.pid}` : "Processes";
  at("search").value = "";
  at("rows").replaceChildren();
  for (const id of ["empty", "course", "at-moment"]) at(id).hidden = true;
  for (const id of ["back", "stacks", "page", "pprof", "rows-title"]) at(id).hidden = !state.pid;
  moment.pid = "";
  const process = `api/processes/${state.pid}`;
  at("stacks").href = `#${state.pid}/stacks`;
  at("page").href = `${process}/export/html`;
  at("pprof").href = `debug/pprof/heap?pid=${state.pid}`;
  drawTitles();
  listen(state.pid ? `${process}/events` : "api/events");
}

// Of reports, or of stacks, nothing comes by itself.
function openStill(where) {
  if (state.source) state.source.close();
  Object.assign(state, { source: null, answer: null, mark: null, pid: "" });
  for (const id of ["mark", "find", "stacks", "page", "pprof", "actions", "course", "at-moment",
                    "rows-title", "empty"]) {
    at(id).hidden = true;
  }
  for (const id of ["titles", "rows"]) at(id).replaceChildren();
  at("back").hidden = false;
  openTable(where);
}

at("mark").onclick = mark;
at("search").oninput = () => {
  searchMoment(at("search").value.trim());
  draw();
};
onresize = () => {
  drawCourse(state.answer?.process);
  if (moment.data) picture.graph.layout();
};
at("ask").onsubmit = async (event) => {
  event.preventDefault();
  const token = at("token").value;
  const answer = await fetch("api/session", { headers: { Authorization: `Bearer ${token}` } });
  at("told").textContent = answer.ok ? "connecting" : "this is not the token";
  if (answer.ok) open();
};
addEventListener("hashchange", open);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
  if (event.key === "Escape" && typing) {
    event.target.value = "";
    event.target.blur();
    if (event.target === at("search")) event.target.oninput();
  } else if (event.key === "Escape" && location.hash) {
    location.hash = "";
  } else if (event.key === "m" && !typing && state.answer) {
    mark();
  } else if (event.key === "n" && !typing && moment.data) {
    takeMoment(moment.pid);
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    at("search").focus();
  }
});
open();
