"use strict";
// The page is complete without this script: it only hides what is still to come. Labels and numbers of the story
// are text and stay text: they are put in with textContent, and nothing is ever evaluated.
(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const { nodes, edges, steps, frames } = story;
  const $ = (id) => document.getElementById(id);
  const parts = (list) => new Map(list.map((x) => [x.id, document.getElementById(x.id)]));
  const drawn = parts(nodes), wires = parts(edges);
  const indexOf = new Map(nodes.map((x, i) => [x.id, i]));
  const edgeIndex = new Map(edges.map((x, i) => [x.id, i]));
  const board = document.querySelector(".board"), told = document.querySelector(".told");
  let at = 0, frame = 0, timer = null, playing = "", pointed = null, focused = null;

  const say = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
  const make = (name, text, parent) => {
    const element = document.createElement(name);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  const brief = (text) => text.replace(/(\([\d, ]*\)) \w+ {2}mean .*/, "$1");
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  /** What is known after `at` steps: values, gradients, and how each gradient came about. */
  function state() {
    const f = frames[frame], known = new Set(), gradients = new Map(), history = nodes.map(() => []);
    const flown = new Set(), returned = new Set();
    nodes.forEach((node, i) => {
      if (!node.inputs) { known.add(node.id); history[i].push(`given: ${f.data[i]}`); }
    });
    steps.slice(0, at).forEach((step, k) => {
      const i = indexOf.get(step.node);
      if (step.phase === "forward") {
        known.add(step.node);
        step.edges.forEach((e) => flown.add(e));
        history[i].push(`step ${k + 1}: computed, ${f.say[k].formulas[0]}`);
        return;
      }
      if (i === nodes.length - 1) {
        gradients.set(step.node, f.grad[i]);
        history[i].push(`step ${k + 1}: gradient ${f.grad[i]}, where the way back starts`);
      }
      step.edges.forEach((e) => {
        const source = edges[edgeIndex.get(e)].source, [before, after] = f.sums[e];
        returned.add(e);
        gradients.set(source, after);
        history[indexOf.get(source)].push(
          `step ${k + 1}: ${before ? "gradient grows to" : "gradient"} ${after}, from ${nodes[i].name}`);
      });
    });
    return { known, gradients, history, flown, returned };
  }

  function show() {
    const f = frames[frame], now = state(), step = at ? steps[at - 1] : null;
    const receivers = new Set(step && step.phase === "backward" ? step.edges.map((e) => edges[edgeIndex.get(e)].source) : []);
    document.body.classList.toggle("backward", Boolean(step) && step.phase === "backward");
    nodes.forEach((node, i) => {
      const g = drawn.get(node.id), grad = now.gradients.get(node.id) || "";
      g.classList.toggle("later", !now.known.has(node.id));
      g.classList.toggle("now", Boolean(step) && step.node === node.id);
      g.classList.toggle("given", receivers.has(node.id));
      say(g.querySelector("text.data"), f.shown[i]);
      say(g.querySelector("text.grad"), brief(grad));
      g.querySelectorAll("text.grad, text.row_grad").forEach((t) => t.classList.toggle("gone", !grad));
      g.setAttribute("aria-label", now.known.has(node.id)
        ? `${node.name}: data ${f.data[i]}${grad ? `, gradient ${grad}` : ""}` : `${node.name}: not computed yet`);
    });
    edges.forEach((edge, i) => {
      const g = wires.get(edge.id), [slope, product] = f.chips[i], back = now.returned.has(edge.id);
      g.classList.toggle("later", !now.flown.has(edge.id));
      restart(g, "now", step && step.phase === "forward" && step.edges.includes(edge.id));
      restart(g, "returning", step && step.phase === "backward" && step.edges.includes(edge.id));
      say(g.querySelector("text.slope"), slope);
      say(g.querySelector("text.product"), product);
      g.querySelectorAll(".back_wire, text.product").forEach((x) => x.classList.toggle("gone", !back));
      const text = g.querySelector("text.slope"), chip = g.querySelector(".chip");
      if (chip) chip.classList.toggle("gone", !slope && !back);
      if (text) { text.classList.remove("passing"); text.classList.toggle("gone", back && Boolean(product)); }
    });
    tell(f, step);
    inspect();
    $("scrub").value = at;
    $("scrub").setAttribute("aria-valuetext", told.querySelector(".phase").textContent);
    $("first").disabled = $("back").disabled = at === 0;
    $("next").disabled = $("last").disabled = at === steps.length;
    say($("which"), `${frame + 1} of ${frames.length}`);
    $("frame").value = frame;
  }

  /** Let an animation run again, not only for the first time. */
  function restart(element, name, wanted) {
    element.classList.remove(name);
    if (wanted) { void element.getBoundingClientRect(); element.classList.add(name); }
  }

  function tell(f, step) {
    const phase = told.querySelector(".phase"), list = told.querySelector(".formulas");
    phase.replaceChildren();
    make("b", step ? step.phase : "inputs", phase);
    phase.append(` · step ${at} of ${steps.length}` + (frames.length > 1 ? ` · training step ${frame + 1}` : ""));
    const words = step ? f.say[at - 1] : { sentence: story.start, formulas: [] };
    say(told.querySelector(".sentence"), words.sentence);
    list.replaceChildren();
    words.formulas.forEach((text) => make("li", text, list));
  }

  /** The panel for one number: the one pointed at, else the one in focus, else that of the present step. */
  function inspect() {
    const id = pointed || focused || (at ? steps[at - 1].node : nodes[nodes.length - 1].id);
    const i = indexOf.get(id), node = nodes[i], f = frames[frame], now = state();
    const panel = document.querySelector(".inspector"), list = panel.querySelector("dl"), events = panel.querySelector("ul");
    say(panel.querySelector("h2"), node.name);
    list.replaceChildren();
    [["is", node.what], ["data", now.known.has(id) ? f.data[i] : "not computed yet"],
      ["gradient", node.kind === "constant" ? "none: a constant" : now.gradients.get(id) || "none yet"]]
      .forEach(([name, text]) => { make("dt", name, list); make("dd", text, list); });
    events.replaceChildren();
    now.history[i].forEach((text) => make("li", text, events));
    const over = panel.querySelector(".over");
    over.replaceChildren();
    if (frames.length > 1) ["data", "gradient"].forEach((name, k) => spark(over, name, frames.map((x) => x.numbers[i][k]), k));
  }

  /** A line of a number over training, with a dot at the present frame. */
  function spark(parent, name, values, k) {
    const known = values.filter((x) => x !== null);
    if (!known.length) return;
    const low = Math.min(...known), high = Math.max(...known), span = high - low || 1;
    const x = (j) => 4 + (192 * j) / (values.length - 1), y = (v) => 40 - (34 * (v - low)) / span;
    const text = `${name} over training, between ${+low.toPrecision(3)} and ${+high.toPrecision(3)}`;
    make("div", text, parent);
    const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
    svg.setAttribute("class", "spark");
    svg.setAttribute("viewBox", "0 0 200 46");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", values.map((v, j) => v === null ? "" : `${j ? "L" : "M"}${x(j)},${y(v)}`).join("").replace(/^L/, "M"));
    const colour = k ? "var(--backward)" : "var(--forward)";
    path.style.stroke = colour;
    svg.append(path);
    if (values[frame] !== null) {
      const dot = document.createElementNS(space, "ellipse");
      [["cx", x(frame)], ["cy", y(values[frame])], ["rx", 3], ["ry", 5]].forEach(([a, v]) => dot.setAttribute(a, v));
      dot.style.fill = colour;
      svg.append(dot);
    }
    parent.append(svg);
  }

  function go(to) {
    at = clamp(to, 0, steps.length);
    show();
    const step = at ? drawn.get(steps[at - 1].node) : null;
    if (step) {                                         // a large graph: bring the present step to the middle
      const inside = step.getBoundingClientRect(), around = board.getBoundingClientRect();
      board.scrollLeft += inside.left + inside.width / 2 - around.left - around.width / 2;
      board.scrollTop += inside.top + inside.height / 2 - around.top - around.height / 2;
    }
  }

  function goFrame(to) {
    frame = clamp(to, 0, frames.length - 1);
    show();
  }

  const PLAY = "M4 2v14l11-7z", PAUSE = "M4 2h4v14H4zM10 2h4v14h-4z";
  function play(what) {
    clearTimeout(timer);
    playing = playing === what ? "" : what;
    $("play").setAttribute("aria-label", playing === "steps" ? "Pause" : "Play");
    $("play").querySelector("path").setAttribute("d", playing === "steps" ? PAUSE : PLAY);
    say($("train"), playing === "frames" ? "pause" : "train");
    if (!playing) return;
    if (playing === "steps" && at === steps.length) go(0);
    if (playing === "frames" && frame === frames.length - 1) goFrame(0);
    tick();
  }

  function tick() {
    timer = setTimeout(() => {
      if (playing === "steps") go(at + 1); else goFrame(frame + 1);
      if (playing === "steps" ? at === steps.length : frame === frames.length - 1) play(playing); else tick();
    }, (playing === "steps" ? 1600 : 700) / Number($("speed").value));
  }

  const stop = () => { if (playing) play(playing); };
  const moves = {
    first: () => go(0), back: () => go(at - 1), next: () => go(at + 1), last: () => go(steps.length),
  };
  Object.entries(moves).forEach(([id, move]) => $(id).addEventListener("click", () => { stop(); move(); }));
  $("play").addEventListener("click", () => play("steps"));
  $("train").addEventListener("click", () => play("frames"));
  $("scrub").addEventListener("input", (event) => { stop(); go(Number(event.target.value)); });
  $("frame").addEventListener("input", (event) => { stop(); goFrame(Number(event.target.value)); });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const tag = event.target.tagName, native = tag === "SELECT" || (tag === "INPUT" && event.key !== " ");
    if (native || (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY"))) return;
    const keys = {
      ArrowRight: moves.next, ArrowLeft: moves.back, Home: moves.first, End: moves.last,
      ArrowDown: () => goFrame(frame + 1), ArrowUp: () => goFrame(frame - 1),
    };
    if (event.key === " ") play("steps");
    else if (!keys[event.key] || (event.key.match(/Up|Down/) && frames.length === 1)) return;
    else { stop(); keys[event.key](); }
    event.preventDefault();
  });
  nodes.forEach((node) => {
    const g = drawn.get(node.id);
    g.setAttribute("tabindex", "0");
    g.addEventListener("mouseenter", () => { pointed = node.id; inspect(); });
    g.addEventListener("mouseleave", () => { pointed = null; inspect(); });
    g.addEventListener("focus", () => { focused = node.id; inspect(); });
    g.addEventListener("blur", () => { focused = null; inspect(); });
  });

  $("scrub").max = steps.length;
  $("frame").max = frames.length - 1;
  document.querySelector(".frames").hidden = document.querySelector(".many").hidden = frames.length === 1;
  document.body.classList.add("ready");
  go(parseInt(location.hash.slice(1), 10) || 0);
})();
