// The painter: solids in painter's order on a floor, on a 2-D canvas. films/drawing.py does the same in Python.

const FOCAL = 1.6, NEAR = 0.05, TILES = 14, LIGHT = [-0.35, -0.5, 0.79];
const LIT = [255, 209, 46], WHITE = [255, 255, 255], SHADOW = "#0a0e14";

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
    for (const one of [canvas, this.layer, this.shade]) {
      if (one.width !== w || one.height !== h) [one.width, one.height] = [w, h];
    }
    const yaw = camera.yaw * Math.PI / 180, pitch = camera.pitch * Math.PI / 180;
    const forward = [Math.sin(yaw) * Math.cos(pitch), Math.cos(yaw) * Math.cos(pitch), -Math.sin(pitch)];
    const right = [Math.cos(yaw), -Math.sin(yaw), 0];
    this.view = { ...camera, w, h, right, forward, up: cross(right, forward), scale: FOCAL * h / 2 };
    this.view.eye = plus(camera.target, forward, -camera.distance);
    this.colours = { sky: named("--sky"), tiles: [named("--tile-1"), named("--tile-2")], path: named("--path") };
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
      const colour = mixed(this.colours.tiles[(a + b + i + j) & 1], this.colours.sky, Math.max(0, 1.6 * far - 0.6));
      this.quad((a + i) * tile, (b + j) * tile, tile, tile, css(colour));
    }
  }

  lane(y, width, walked, tile) {  // a treadmill: it moves, the robot stays in the picture
    const reach = 9 * tile, first = Math.floor((walked - reach) / tile);
    for (let i = first; i * tile < walked + reach; i++) {
      const far = Math.abs((i + 0.5) * tile - walked) / reach;
      const fade = Math.min(1, Math.max(0, 2 * far - 0.8));
      const colour = mixed(this.colours.tiles[i & 1], this.colours.sky, fade);
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
      const place = [track.column(track.nq, f), track.column(track.nq + 1, f), 0];
      const [x, y, depth] = this.seen(plus(place, offset));
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
        for (const face of solid.faces) this.polygon(pen, face.map(i => flat[i]), SHADOW);
        if (!solid.faces.length) this.round(pen, flat, solid.radius, null);
      });
    }
    pen.globalAlpha = 1;
    this.pen.globalAlpha = 0.3;
    this.pen.drawImage(this.shade, 0, 0);
    this.pen.globalAlpha = 1;
  }

  round(pen, points, radius, colour) {
    const places = points.map(point => this.seen(point));
    const depth = places.reduce((sum, place) => sum + place[2], 0) / places.length;
    if (places.some(place => place[2] <= NEAR)) return;
    const width = 2 * radius * this.view.scale / depth;
    if (!colour) return this.stroke(pen, places, width, SHADOW);
    const layers = [  // dark at the edge, bright towards the light
      [0, 1, shaded(colour, 0.66)], [0.35, 0.86, shaded(colour, 0.88)], [0.7, 0.62, colour],
      [1.1, 0.26, mixed(colour, WHITE, 0.35)],
    ];
    for (const [by, thick, shown] of layers) {
      const moved = places.map(([x, y]) => [x - 0.16 * by * width, y - 0.2 * by * width]);
      this.stroke(pen, moved, thick * width, css(shown));
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
        const light = 0.72 + 0.33 * Math.max(0, dot(normal, LIGHT));
        this.polygon(pen, face.map(i => points[i]), css(shaded(colour, light)));
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
