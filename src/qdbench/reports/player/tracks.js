// Tracks: reading what films/packing.py wrote, and where a robot's bodies are at a time.

const SMOOTH = 0.5;  // seconds that the camera looks ahead and back

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
