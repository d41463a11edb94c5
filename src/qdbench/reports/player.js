"use strict";
// Plays the films of this page on a 2-D canvas: no library, no network, no WebGL.
// `films/packing.py` says how robots and tracks are written; `films/drawing.py` draws the same scene in Python.
(() => {
  const FOCAL = 1.6, NEAR = 0.05, TILES = 14, SMOOTH = 0.5, PAUSE = 0.8, LIGHT = [-0.35, -0.5, 0.79];
  const LIT = [255, 209, 46], WHITE = [255, 255, 255];
  const holder = document.getElementById("films");
  if (!holder || !window.DecompressionStream) return;  // the still pictures stay
  const { robots, casts, palette } = JSON.parse(holder.textContent);

  // Reading

  async function inflated(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function unpacked(track, robot) {
    const bytes = await inflated(track.data), n = track.frames, columns = robot.nq + 3, high = n * columns;
    const values = new Float32Array(high);
    for (let c = 0; c < columns; c++) {
      for (let f = 0, level = 0; f < n; f++) {
        const small = bytes[c * n + f] | (bytes[high + c * n + f] << 8);
        level += small & 1 ? -(small + 1) / 2 : small / 2;
        values[c * n + f] = track.low[c] + level * track.step[c];
      }
    }
    const column = (c, f) => values[c * n + f];
    return { n, rate: track.rate, end: (n - 1) / track.rate, column, nq: robot.nq,
      loaded: (foot, f) => bytes[2 * high + foot * n + f] > 0 };
  }

  // The robot at a time: MuJoCo's kinematics of hinges, slides and a free root

  const turn = (q, v) => {
    const [w, x, y, z] = q, [a, b, c] = v;
    const i = 2 * (y * c - z * b), j = 2 * (z * a - x * c), k = 2 * (x * b - y * a);
    return [a + w * i + y * k - z * j, b + w * j + z * i - x * k, c + w * k + x * j - y * i];
  };
  const times = ([a, b, c, d], [e, f, g, h]) => [a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
    a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e];
  const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = v => { const length = Math.hypot(...v) || 1; return v.map(x => x / length); };

  function placed(robot, q) {
    const bodies = [];
    for (const body of robot.bodies) {
      const parent = bodies[body.parent];
      let pos = parent ? plus(parent.pos, turn(parent.quat, body.pos)) : body.pos;
      let quat = parent ? times(parent.quat, body.quat) : body.quat;
      for (const joint of body.joints) {
        if (joint.kind === "free") {
          pos = q.slice(joint.at, joint.at + 3);
          quat = unit(q.slice(joint.at + 3, joint.at + 7));
          continue;
        }
        const by = q[joint.at] - joint.zero;
        if (joint.kind === "slide") { pos = plus(pos, turn(quat, joint.axis), by); continue; }
        const anchor = plus(pos, turn(quat, joint.pos)), half = Math.sin(by / 2);
        quat = times(quat, [Math.cos(by / 2), ...joint.axis.map(x => x * half)]);
        pos = plus(anchor, turn(quat, joint.pos), -1);
      }
      bodies.push({ pos, quat });
    }
    return bodies;
  }

  function sampled(track, time) {
    const at = Math.min(track.n - 1, Math.max(0, time * track.rate));
    const f = Math.floor(at), g = Math.min(track.n - 1, f + 1), s = at - f;
    const values = [];
    for (let c = 0; c < track.nq + 3; c++) values.push((1 - s) * track.column(c, f) + s * track.column(c, g));
    return { q: values.slice(0, track.nq), com: values.slice(track.nq), frame: Math.round(at) };
  }

  function around(track, time) {  // mean place near a time: a camera that follows it does not shake
    const frame = t => Math.min(track.n - 1, Math.max(0, Math.round(t * track.rate)));
    let x = 0, y = 0, from = frame(time - SMOOTH), to = frame(time + SMOOTH);
    for (let f = from; f <= to; f++) { x += track.column(track.nq, f); y += track.column(track.nq + 1, f); }
    return [x / (to - from + 1), y / (to - from + 1)];
  }

  // Drawing

  const css = ([r, g, b]) => `rgb(${r | 0},${g | 0},${b | 0})`;
  const mixed = (a, b, share) => a.map((part, i) => part + (b[i] - part) * share);
  const shaded = (colour, light) => colour.map(part => Math.min(255, part * light));
  const named = name => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16));
  };

  class Painter {
    constructor(canvas) {
      this.canvas = canvas;
      this.pen = canvas.getContext("2d");
      this.layer = document.createElement("canvas");
      this.shade = document.createElement("canvas");
    }

    begin(camera) {
      const { canvas } = this, sharp = Math.min(2, window.devicePixelRatio || 1);
      const w = Math.round(canvas.clientWidth * sharp), h = Math.round(canvas.clientHeight * sharp);
      for (const one of [canvas, this.layer, this.shade]) if (one.width !== w || one.height !== h) [one.width, one.height] = [w, h];
      const yaw = camera.yaw * Math.PI / 180, pitch = camera.pitch * Math.PI / 180;
      const forward = [Math.sin(yaw) * Math.cos(pitch), Math.cos(yaw) * Math.cos(pitch), -Math.sin(pitch)];
      const right = [Math.cos(yaw), -Math.sin(yaw), 0];
      this.view = { ...camera, w, h, right, forward, up: cross(right, forward), scale: FOCAL * h / 2 };
      this.view.eye = plus(camera.target, forward, -camera.distance);
      this.colours = { sky: named("--sky"), tiles: [named("--tile-1"), named("--tile-2")], path: named("--path"), ink: named("--ink") };
      this.pen.fillStyle = css(this.colours.sky);
      this.pen.fillRect(0, 0, w, h);
    }

    seen(point) {
      const v = this.view, away = plus(point, v.target, -1), depth = dot(away, v.forward) + v.distance;
      const shrunk = v.scale / Math.max(depth, NEAR);
      return [v.w / 2 + dot(away, v.right) * shrunk, v.h / 2 - dot(away, v.up) * shrunk, depth];
    }

    polygon(pen, points, colour) {
      const places = points.map(point => this.seen(point));
      if (places.some(place => place[2] <= NEAR)) return false;
      pen.beginPath();
      places.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
      pen.closePath();
      if (colour) { pen.fillStyle = colour; pen.fill(); }
      return true;
    }

    quad(x, y, dx, dy, colour) {
      return this.polygon(this.pen, [[x, y, 0], [x + dx, y, 0], [x + dx, y + dy, 0], [x, y + dy, 0]], colour);
    }

    tiles(tile) {
      const [a, b] = this.view.target.map(x => Math.floor(x / tile));
      for (let i = -TILES; i < TILES; i++) for (let j = -TILES; j < TILES; j++) {
        const far = Math.hypot(i + 0.5, j + 0.5) / TILES;
        if (far >= 1) continue;
        const colour = this.colours.tiles[(a + b + i + j) & 1];
        this.quad((a + i) * tile, (b + j) * tile, tile, tile, css(mixed(colour, this.colours.sky, Math.max(0, 1.6 * far - 0.6))));
      }
    }

    lane(y, width, walked, tile) {  // a treadmill: it moves, the robot stays in the picture
      const reach = 9 * tile, first = Math.floor((walked - reach) / tile);
      for (let i = first; i * tile < walked + reach; i++) {
        const far = Math.abs((i + 0.5) * tile - walked) / reach;
        const colour = mixed(this.colours.tiles[i & 1], this.colours.sky, Math.min(1, Math.max(0, 2 * far - 0.8)));
        this.quad(i * tile - walked, y - width / 2, tile, width, css(colour));
      }
    }

    archive(floor) {
      const { pen, view } = this, reach = 1.1 * TILES * view.tile;
      for (const [x, y, level] of floor.cells) {
        const far = Math.hypot(x - view.target[0], y - view.target[1]) / reach;
        if (far > 1) continue;
        pen.globalAlpha = Math.min(0.85, 1.7 * (1 - far));
        this.quad(x, y, 0.96 * floor.width[0], 0.96 * floor.width[1], css(palette[level]));
      }
      pen.globalAlpha = 1;
    }

    cell(corners) {
      const { pen } = this;
      if (!this.polygon(pen, corners.map(([x, y]) => [x, y, 0]))) return;
      pen.strokeStyle = css(this.colours.path);
      pen.lineWidth = this.view.h / 180;
      pen.stroke();
    }

    path(track, time, offset) {
      const { pen } = this, last = sampled(track, time);
      pen.beginPath();
      for (let f = 0; f <= last.frame; f++) {
        const [x, y, depth] = this.seen(plus([track.column(track.nq, f), track.column(track.nq + 1, f), 0], offset));
        if (depth > NEAR) pen.lineTo(x, y);
      }
      pen.strokeStyle = css(this.colours.path);
      pen.lineWidth = this.view.h / 200;
      pen.stroke();
    }

    stroke(pen, places, width, colour) {
      pen.lineCap = "round";
      pen.lineWidth = Math.max(1, width);
      pen.strokeStyle = colour;
      pen.beginPath();
      places.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
      if (places.length === 1) pen.lineTo(places[0][0] + 0.01, places[0][1]);
      pen.stroke();
    }

    // An actor is a robot at a time: { robot, points (per solid, in the world), track, frame, opacity }.
    shadows(actors) {
      const pen = this.shade.getContext("2d");
      pen.clearRect(0, 0, this.view.w, this.view.h);
      for (const actor of actors) {
        pen.globalAlpha = actor.opacity;
        actor.robot.solids.forEach((solid, i) => {
          const flat = actor.points[i].map(point => plus(point, LIGHT, -point[2] / LIGHT[2]));
          if (solid.faces.length) for (const face of solid.faces) this.polygon(pen, face.map(i => flat[i]), "#0a0e14");
          else this.round(pen, flat, solid.radius, null);
        });
      }
      pen.globalAlpha = 1;
      this.pen.globalAlpha = 0.3;
      this.pen.drawImage(this.shade, 0, 0);
      this.pen.globalAlpha = 1;
    }

    round(pen, points, radius, colour) {
      const places = points.map(point => this.seen(point)), depth = places.reduce((sum, place) => sum + place[2], 0) / places.length;
      if (places.some(place => place[2] <= NEAR)) return;
      const width = 2 * radius * this.view.scale / depth;
      if (!colour) return this.stroke(pen, places, width, "#0a0e14");
      const layers = [[0, 1, shaded(colour, 0.66)], [0.35, 0.86, shaded(colour, 0.88)], [0.7, 0.62, colour], [1.1, 0.26, mixed(colour, WHITE, 0.35)]];
      for (const [by, thick, shown] of layers) {
        this.stroke(pen, places.map(([x, y]) => [x - 0.16 * by * width, y - 0.2 * by * width]), thick * width, css(shown));
      }
    }

    robot(actor) {
      const pen = actor.opacity < 1 ? this.layer.getContext("2d") : this.pen;
      if (pen !== this.pen) pen.clearRect(0, 0, this.view.w, this.view.h);
      const order = actor.robot.solids.map((solid, i) => {
        const points = actor.points[i];
        return [points.reduce((sum, point) => sum + this.seen(point)[2], 0) / points.length, solid, points];
      }).sort((a, b) => b[0] - a[0]);
      for (const [, solid, points] of order) {
        const colour = solid.foot >= 0 && actor.track.loaded(solid.foot, actor.frame) ? LIT : solid.colour;
        if (!solid.faces.length) { this.round(pen, points, solid.radius, colour); continue; }
        for (const face of solid.faces) {
          const [a, b, c] = face.map(i => points[i]), normal = unit(cross(plus(b, a, -1), plus(c, b, -1)));
          if (dot(normal, plus(this.view.eye, a, -1)) <= 0) continue;
          this.polygon(pen, face.map(i => points[i]), css(shaded(colour, 0.72 + 0.33 * Math.max(0, dot(normal, LIGHT)))));
        }
      }
      if (pen === this.pen) return;
      this.pen.globalAlpha = actor.opacity;
      this.pen.drawImage(this.layer, 0, 0);
      this.pen.globalAlpha = 1;
    }

    label(text, point) {
      const { pen } = this, [x, y, depth] = this.seen(point), size = this.view.h / 26;
      if (depth <= NEAR) return;
      pen.beginPath();
      pen.arc(x, y, 0.85 * size, 0, 7);
      pen.fillStyle = css(this.colours.path);
      pen.fill();
      pen.font = `600 ${size}px system-ui, sans-serif`;
      [pen.textAlign, pen.textBaseline, pen.fillStyle] = ["center", "middle", "#fff"];
      pen.fillText(text, x, y + 0.05 * size);
    }
  }

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
      this.cards = [...place.querySelectorAll(".card")].concat([...(place.closest(".watch") || place).querySelectorAll(".spot")]);
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
      this.canvas.addEventListener("keydown", event => { if (event.key === " ") { event.preventDefault(); this.toggle(); } });
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
      this.scrub.addEventListener("input", () => { this.play(false); this.time = Number(this.scrub.value); this.draw(); });
      this.clock = element("output", bar);
      const speeds = element("select", bar, { onchange: () => { this.speed = Number(speeds.value); } });
      speeds.setAttribute("aria-label", "speed");
      for (const [value, text] of [[0.25, "¼×"], [0.5, "½×"], [1, "1×"], [2, "2×"]]) element("option", speeds, { value, text, selected: value === 1 });
      if (this.cast.elites.some(elite => elite.ghosts.length)) {
        const label = element("label", bar);
        this.ghosts = element("input", label, { type: "checkbox", checked: true, onchange: () => this.draw() });
        label.append(" ghosts");
      }
      if (this.cast.elites.length > 1) this.all = element("button", bar, { type: "button", className: "all", textContent: "all together", onclick: () => this.show(-1) });
      this.play(false);
    }

    async appear(visible) {
      this.visible = visible;
      if (visible && !this.tracks) {
        this.tracks = [];  // once
        const read = track => unpacked(track, this.robot);
        const found = await Promise.all(this.cast.elites.map(elite => Promise.all([elite.track, ...elite.ghosts].map(read))));
        if (this.cast.floor) await this.readFloor(this.cast.floor);
        this.tracks = found;
        this.show(this.chosen);
        if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play(true);
      }
      if (visible && this.playing) this.run();
    }

    async readFloor(floor) {
      const levels = await inflated(floor.data), [, rows] = floor.shape, [wide, high] = floor.width;
      floor.cells = [];
      levels.forEach((level, i) => {
        if (level) floor.cells.push([floor.low[0] + Math.floor(i / rows) * wide, floor.low[1] + (i % rows) * high, level - 1]);
      });
    }

    show(which) {
      this.chosen = which;
      for (const card of this.cards) card.setAttribute("aria-pressed", which < 0 || Number(card.dataset.elite) === which);
      if (this.all) this.all.setAttribute("aria-pressed", which < 0);
      if (this.ghosts) this.ghosts.disabled = which < 0;
      if (!this.tracks || !this.tracks.length) return;
      this.end = Math.max(...this.shown().flatMap(([track, ...ghosts]) => [track, ...(which < 0 ? [] : ghosts)].map(one => one.end)));
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
        this.time += this.speed * Math.min(0.1, (now - before) / 1000);
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
      if (lanes) this.shown().forEach(([track], i) => painter.lane((middle - i) * spacing, 0.92 * spacing, around(track, this.time)[0], cast.tile));
      else painter.tiles(cast.tile);
      if (cast.onFloor && cast.floor) painter.archive(cast.floor);
      const actors = [], labels = [];
      this.shown().forEach(([track, ...ghosts], i) => {
        const number = together ? i : this.chosen, elite = cast.elites[number];
        if (elite.cell) painter.cell(elite.cell);
        if (!lanes) painter.path(track, this.time, offsets[i]);
        if (!together && this.ghosts && this.ghosts.checked) actors.push(...ghosts.map(ghost => this.actor(ghost, offsets[i], 0.3)));
        const actor = this.actor(track, offsets[i], 1);
        actors.push(actor);
        if (together) labels.push([String(number + 1), plus(actor.com, [0, 0, 0.55 * robot.size])]);
      });
      painter.shadows(actors);
      const far = actor => painter.seen(actor.com)[2];
      actors.sort((a, b) => (together ? 0 : a.opacity - b.opacity) || far(b) - far(a)).forEach(actor => painter.robot(actor));
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
        const ends = [[0, 0], ...this.tracks.map(([track]) => [track.column(track.nq, track.n - 1), track.column(track.nq + 1, track.n - 1)])];
        const low = [0, 1].map(k => Math.min(...ends.map(end => end[k]))), high = [0, 1].map(k => Math.max(...ends.map(end => end[k])));
        target = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, 0];
        distance = (Math.max(high[0] - low[0], high[1] - low[1]) + 1.4 * robot.size) * Math.max(0.95, 1.5 / wide);
        pitch = 38;
      } else {
        const [x, y] = around(this.tracks[this.chosen][0], this.time);
        target = [x, y, 0.32 * robot.size];
      }
      const tilted = Math.min(85, Math.max(3, pitch + this.orbit[1]));
      return { target, distance, yaw: yaw - this.orbit[0], pitch: tilted, tile: this.cast.tile };
    }
  }

  document.querySelectorAll(".replay").forEach(place => new Stage(place));
  document.querySelectorAll(".tabs").forEach(tabs => {  // one algorithm at a time
    const blocks = [...tabs.parentElement.querySelectorAll(":scope > .watch")];
    const choose = shown => blocks.forEach((block, i) => {
      block.hidden = i !== shown;
      tabs.children[i].setAttribute("aria-pressed", i === shown);
    });
    blocks.forEach((block, i) => element("button", tabs, { type: "button", textContent: block.dataset.name, onclick: () => choose(i) }));
    choose(0);
  });
})();
