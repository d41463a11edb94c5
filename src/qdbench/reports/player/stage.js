// The stages of a page. No library, no network, no WebGL.

const PAUSE = 0.8;  // seconds between the end and the next beginning
const holder = document.getElementById("films");
const { robots, casts, palette } = JSON.parse(holder.textContent);

// A stage: one canvas with its controls, and the elites that it can show

const element = (name, parent, attributes = {}) => {
  const made = Object.assign(document.createElement(name), attributes);
  parent.append(made);
  return made;
};

class Stage {
  constructor(place) {
    this.cast = casts[place.dataset.cast];
    this.robot = robots[this.cast.robot];
    this.cards = place.querySelectorAll(".card, .spot");
    this.time = 0;
    this.speed = 1;
    this.orbit = [0, 0];
    const box = place.querySelector(".stage");
    this.canvas = element("canvas", box, { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", this.cast.label);
    this.painter = new Painter(this.canvas);
    this.buildControls(element("div", box, { className: "controls" }));
    for (const card of this.cards) card.addEventListener("click", () => this.show(Number(card.dataset.elite)));
    this.canvas.addEventListener("keydown", event => {
      if (event.key !== " ") return;
      event.preventDefault();
      this.toggle();
    });
    this.canvas.addEventListener("pointermove", event => {
      if (!event.buttons) return;
      this.orbit = [this.orbit[0] + event.movementX / 3, this.orbit[1] + event.movementY / 4];
      this.draw();
    });
    place.classList.add("live");
    this.show(this.cast.elites.length > 1 ? -1 : 0);
    new IntersectionObserver(([entry]) => this.appear(entry.isIntersecting)).observe(this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  buildControls(bar) {
    this.button = element("button", bar, { type: "button", className: "play", onclick: () => this.toggle() });
    this.scrub = element("input", bar, { type: "range", min: 0, max: 1, step: 0.01, value: 0 });
    this.scrub.setAttribute("aria-label", "time");
    this.scrub.addEventListener("input", () => {
      this.play(false);
      this.time = Number(this.scrub.value);
      this.draw();
    });
    this.clock = element("output", bar);
    const speeds = element("select", bar, { onchange: () => { this.speed = Number(speeds.value); } });
    speeds.setAttribute("aria-label", "speed");
    for (const [value, text] of [[0.25, "¼×"], [0.5, "½×"], [1, "1×"], [2, "2×"]]) {
      element("option", speeds, { value, text, selected: value === 1 });
    }
    if (this.cast.elites.some(elite => elite.ghosts.length)) {
      const label = element("label", bar);
      this.ghosts = element("input", label, { type: "checkbox", checked: true, onchange: () => this.draw() });
      label.append(" ghosts");
    }
    if (this.cast.elites.length > 1) {
      const how = { type: "button", className: "all", textContent: "all together", onclick: () => this.show(-1) };
      this.all = element("button", bar, how);
    }
    this.play(false);
  }

  async appear(visible) {
    this.visible = visible;
    if (visible && !this.tracks) {
      this.tracks = [];  // once
      const read = elite => Promise.all([elite.track, ...elite.ghosts].map(track => unpacked(track, this.robot)));
      const found = await Promise.all(this.cast.elites.map(read));
      if (this.cast.floor) await this.readFloor(this.cast.floor);
      this.tracks = found;
      this.show(this.chosen);
      if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play(true);
    }
    if (visible && this.playing) this.run();
  }

  async readFloor(floor) {
    const levels = await inflated(floor.data), [, rows] = floor.shape, [x, y] = floor.low, [wide, high] = floor.width;
    floor.cells = [];
    levels.forEach((level, i) => {
      if (level) floor.cells.push([x + Math.floor(i / rows) * wide, y + (i % rows) * high, level - 1]);
    });
  }

  show(which) {
    this.chosen = which;
    for (const card of this.cards) {
      card.setAttribute("aria-pressed", which < 0 || Number(card.dataset.elite) === which);
    }
    if (this.all) this.all.setAttribute("aria-pressed", which < 0);
    if (this.ghosts) this.ghosts.disabled = which < 0;
    if (!this.tracks || !this.tracks.length) return;
    const seen = which < 0 ? this.tracks.map(([track]) => track) : this.tracks[which];
    this.end = Math.max(...seen.map(track => track.end));
    this.scrub.max = this.end;
    this.time = Math.min(this.time, this.end);
    this.draw();
  }

  shown() { return this.chosen < 0 ? this.tracks : [this.tracks[this.chosen]]; }

  toggle() { this.play(!this.playing); }

  play(on) {
    this.playing = on;
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", on ? "pause" : "play");
    if (on) this.run();
  }

  run() {
    if (this.running) return;
    this.running = true;
    let before = performance.now();
    const step = now => {
      this.running = this.playing && this.visible;
      if (!this.running) return;
      this.time += this.speed * Math.max(0, Math.min(0.1, (now - before) / 1000));
      before = now;
      if (this.time > this.end + PAUSE * this.speed) this.time = 0;
      this.draw();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  actor(track, offset, opacity) {
    const now = sampled(track, this.time), bodies = placed(this.robot, now.q);
    const points = this.robot.solids.map(solid => solid.points.map(point => {
      const body = bodies[solid.body];
      return plus(body ? plus(body.pos, turn(body.quat, point)) : point, offset);
    }));
    return { robot: this.robot, points, track, frame: now.frame, opacity, com: plus(now.com, offset) };
  }

  draw() {
    if (!this.tracks || !this.tracks.length || !this.canvas.clientWidth) return;
    const { painter, robot, cast } = this, together = this.chosen < 0, lanes = together && !cast.onFloor;
    const spacing = robot.planar ? 0.55 * robot.size : robot.size, middle = (this.tracks.length - 1) / 2;
    const offsets = this.shown().map(([track], i) => {
      if (!lanes) return [0, 0, 0];
      const [x, y] = around(track, this.time);
      return [-x, (middle - i) * spacing - (robot.planar ? 0 : y), 0];
    });
    painter.begin(this.camera(together, lanes, spacing));
    if (!lanes) painter.tiles(cast.tile);
    else this.shown().forEach((_, i) => painter.lane((middle - i) * spacing, 0.92 * spacing, -offsets[i][0], cast.tile));
    if (cast.onFloor && cast.floor) painter.archive(cast.floor);
    const actors = [], labels = [];
    this.shown().forEach(([track, ...ghosts], i) => {
      const number = together ? i : this.chosen, elite = cast.elites[number];
      if (elite.cell) painter.cell(elite.cell);
      if (!lanes) painter.path(track, this.time, offsets[i]);
      if (!together && this.ghosts && this.ghosts.checked) {
        actors.push(...ghosts.map(ghost => this.actor(ghost, offsets[i], 0.3)));
      }
      const actor = this.actor(track, offsets[i], 1);
      actors.push(actor);
      const cell = elite.cell && elite.cell.reduce((sum, [x, y]) => plus(sum, [x, y, 0], 0.25), [0, 0, 0]);
      if (together) labels.push([String(number + 1), cell || plus(actor.com, [0, 0, 0.55 * robot.size])]);
    });
    if (cast.onFloor) labels.splice(0).forEach(([text, point]) => painter.label(text, point));  // below the robots
    painter.shadows(actors);
    const far = actor => painter.seen(actor.com)[2];
    actors.sort((a, b) => a.opacity - b.opacity || far(b) - far(a)).forEach(actor => painter.robot(actor));
    labels.forEach(([text, point]) => painter.label(text, point));
    this.scrub.value = Math.min(this.time, this.end);
    this.clock.textContent = `${Math.min(this.time, this.end).toFixed(1)} s`;
  }

  camera(together, lanes, spacing) {
    const { robot } = this, wide = this.canvas.clientWidth / this.canvas.clientHeight;
    let [yaw, pitch] = robot.planar ? [14, 9] : [32, 24], distance = robot.size * Math.max(1.4, 2.2 / wide);
    let target = [0, 0, 0.32 * robot.size];
    if (lanes) {
      const across = spacing * this.tracks.length;
      target = [0.05 * across, -0.12 * across, 0.3 * robot.size];  // the near ones look larger
      [yaw, pitch] = [robot.planar ? 28 : 56, 22];
      distance = Math.max(1.2 * robot.size, 0.66 * across) * Math.max(1.15, 1.9 / wide);
    } else if (together) {
      const end = (track, k) => track.column(track.nq + k, track.n - 1);
      const low = [0, 1].map(k => Math.min(0, ...this.tracks.map(([track]) => end(track, k))));
      const high = [0, 1].map(k => Math.max(0, ...this.tracks.map(([track]) => end(track, k))));
      target = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, 0];
      const reach = Math.max(high[0] - low[0], high[1] - low[1]) + 1.4 * robot.size;
      distance = reach * Math.max(0.72, 1.15 / wide);
      pitch = 38;
    } else {
      const [x, y] = around(this.tracks[this.chosen][0], this.time);
      target = [x, y, 0.32 * robot.size];
    }
    const tilted = Math.min(85, Math.max(3, pitch + this.orbit[1]));
    return { target, distance, yaw: yaw - this.orbit[0], pitch: tilted, tile: this.cast.tile };
  }
}

if (window.DecompressionStream) document.querySelectorAll(".replay").forEach(place => new Stage(place));
document.querySelectorAll(".tabs").forEach(tabs => {  // one algorithm at a time
  const blocks = [...tabs.parentElement.querySelectorAll(":scope > .watch")];
  const choose = shown => blocks.forEach((block, i) => {
    block.hidden = i !== shown;
    tabs.children[i].setAttribute("aria-pressed", i === shown);
  });
  blocks.forEach((block, i) => {
    element("button", tabs, { type: "button", textContent: block.dataset.name, onclick: () => choose(i) });
  });
  choose(0);
});
