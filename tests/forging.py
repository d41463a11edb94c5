"""Files of a run, damaged at random or forged with checksums that fit: what the fuzz harness feeds on."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Files = dict[str, bytes]
Rng = np.random.Generator

DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308, 1e-320,
    float("nan"), float("inf"), "", "x", "grid", "x" * 5000, "\x1b[31mred\x07\n", "$\\frac{", "\ud800",
    "../../elsewhere", "<script>", [], {}, [1, 2], [[0, 1]], {"a": 1}, DEEP, list(range(5000)),
]  # fmt: skip
BLOCK = struct.Struct("<IIIIIddd")


def pick(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# Damage: the checksums do not fit any more


def damaged(data: bytes, rng: Rng) -> bytes | None:
    """Bits flipped, cut, lengthened, moved, or lost altogether."""
    n, at = len(data), int(rng.integers(max(1, len(data))))
    length = int(rng.integers(1, 200))
    noise = rng.bytes(length)
    ways: list[Callable[[], bytes | None]] = [
        lambda: data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :] if n else b"x",
        lambda: data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :] if n else b"x",
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[:at] + noise + data[at:],
        lambda: data[:at] + noise + data[at + length :],
        lambda: data[:at] + bytes(length) + data[at + length :],
        lambda: data[:at] + data[at + length :],
        lambda: data + data,
        lambda: noise,
        lambda: b"",
        lambda: None,
    ]
    found: bytes | None = pick(rng, ways)()
    return found


# JSON


def changed(value: Any, rng: Rng) -> Any:
    """Return a JSON value with one place changed: another value, one less, one more."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = pick(rng, sorted(value))
        way = rng.random()
        if way < 0.08:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.16:
            return {**value, pick(rng, ["more", "", "\x1b[2J", key + "_"]): pick(rng, VALUES)}
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = int(rng.integers(len(value)))
        return pick(rng, [[*value[:i], changed(value[i], rng), *value[i + 1 :]], value[:i], value * 2])
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return pick(rng, [value + 1, value - 1, -value, value * 1000, float(value), str(value)])
    return pick(rng, VALUES)


def forged_record(data: bytes, rng: Rng) -> bytes:
    """run.json with one to three changes and a checksum that fits."""
    content = json.loads(data)
    content.pop("checksum")
    for _ in range(int(rng.integers(1, 4))):
        content = changed(content, rng)
        if not isinstance(content, dict):
            break
    return sealed(content)


def sealed(content: Any) -> bytes:
    """JSON with a checksum of its content."""
    crc = f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
    return json.dumps({**content, "checksum": crc} if isinstance(content, dict) else content).encode()


# Arrays


def forged_arrays(data: bytes, rng: Rng) -> bytes:
    """An .npz with one to three changed arrays, or a zip file that is not what it seems."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for _ in range(int(rng.integers(1, 4))):
        name = pick(rng, sorted(arrays))
        way = rng.random()
        if way < 0.08 and len(arrays) > 1:
            del arrays[name]
        elif way < 0.14:
            arrays[pick(rng, ["more", "state/x", "state/a/b/c", "point_9_rows", name + "x"])] = arrays[name]
        elif way < 0.2:
            arrays[name] = arrays[pick(rng, sorted(arrays))]
        else:
            arrays[name] = changed_array(arrays[name], rng)
    way = rng.random()
    if way < 0.8:
        return stored(arrays)
    return pick(rng, [lying, compressed, twice, objects, plain_member])(arrays, rng)  # type: ignore[no-any-return]


def changed_array(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    if array.dtype.kind == "U":
        return np.array(_changed_text(str(array), rng)) if not array.shape else array[:1]
    if array.size and rng.random() < 0.5:
        values: list[Any] = [0, 1, -1, 7, 2**31, 2**62, -(2**62)]
        values += [np.nan, np.inf, 1e300, -0.0] if array.dtype.kind == "f" else []
        array = array.copy()
        with np.errstate(all="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = np.array(pick(rng, values)).astype(array.dtype)
        return array
    ways: list[Callable[[], NDArray[Any]]] = [
        lambda: array[..., None],
        lambda: array.reshape(-1),
        lambda: np.concatenate([array, array]) if array.ndim else np.stack([array, array]),
        lambda: array[:0] if array.ndim else array[None][:0],
        lambda: array[:-1] if array.ndim else array.astype(np.float64),
        lambda: array.T,
        lambda: array[::-1] if array.ndim else array[None],
        lambda: np.asfortranarray(array),
        lambda: array.astype(pick(rng, ["f2", "f4", "i1", "u8", "?", "c16", "S8", "U9"])),
        lambda: array.astype(array.dtype.newbyteorder(">")),
        lambda: np.zeros((2**40, 0)),
        lambda: np.zeros(0, "m8[s]"),
        lambda: np.array(pick(rng, [0, -1, 2**40, 1.5, "text", True])),
    ]
    with np.errstate(all="ignore"):
        found: NDArray[Any] = pick(rng, ways)()
    return found


def _changed_text(text: str, rng: Rng) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return str(pick(rng, ["grid", "cvt", "unstructured", "", "x", "\x1b[1m"]))
    if rng.random() < 0.1:
        return text[: int(rng.integers(len(text)))]
    return json.dumps(changed(value, rng))


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def stored(
    arrays: dict[str, NDArray[Any]], others: Files | None = None, method: int = zipfile.ZIP_STORED
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", (others or {}).get(name, _npy(array)))
    return buffer.getvalue()


def lying(arrays: dict[str, NDArray[Any]], rng: Rng) -> bytes:
    """A header that promises more, less or something else than there is."""
    name = pick(rng, sorted(arrays))
    shape = pick(rng, ["(1000000000,)", "(10000000000000,)", "(0,)", "(-1,)", "(2, 2)", "()", "(True,)"])
    descr = pick(rng, ["<f8", "|O", "<U0", "|V0", "<f4", "|S1000000", "a8", "<M8[s]", "(1000000,)<f8"])
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    lie = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    return stored(arrays, {name: lie + _npy(arrays[name])[128:]})


def compressed(arrays: dict[str, NDArray[Any]], rng: Rng) -> bytes:
    return stored({**arrays, pick(rng, sorted(arrays)): np.zeros(10**6)}, method=zipfile.ZIP_DEFLATED)


def twice(arrays: dict[str, NDArray[Any]], rng: Rng) -> bytes:
    """One name for two members; the file says nothing of a third."""
    first, second = stored(arrays), pick(rng, sorted(arrays))
    return first.replace(f"{second}.npy".encode(), b"fitness.npy"[: len(second) + 4].ljust(len(second) + 4))


def objects(arrays: dict[str, NDArray[Any]], rng: Rng) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], object), allow_pickle=True)
    return stored(arrays, {pick(rng, sorted(arrays)): buffer.getvalue()})


def plain_member(arrays: dict[str, NDArray[Any]], rng: Rng) -> bytes:
    return stored(arrays, {pick(rng, sorted(arrays)): rng.bytes(100)})


# The log and the rows


def forged_log(data: bytes, rng: Rng) -> bytes:
    """told.log with changed, lost, doubled or exchanged blocks; every checksum fits."""
    (length,) = struct.unpack_from("<I", data, 8)
    at = 12 + length + 4
    head, blocks = data[:at], []
    while at + BLOCK.size <= len(data):
        n, dimensions, width = BLOCK.unpack_from(data, at)[2:5]
        end = at + BLOCK.size + n * (8 * (1 + dimensions) + width)
        blocks.append(data[at:end])
        at = end + 4
    i = int(rng.integers(len(blocks)))
    way = rng.random()
    if way < 0.1:
        text = json.dumps(changed(json.loads(head[12:-4]), rng)).encode()
        new = head[:8] + struct.pack("<I", len(text)) + text
        head = new + struct.pack("<I", zlib.crc32(new))
    elif way < 0.2:
        del blocks[i]
    elif way < 0.3:
        blocks.insert(i, blocks[i])
    elif way < 0.4:
        blocks[0], blocks[i] = blocks[i], blocks[0]
    else:
        numbers = list(BLOCK.unpack_from(blocks[i]))
        place = int(rng.integers(9))
        if place < 4:
            numbers[place] = pick(rng, [0, 1, numbers[place] + 1, 2**32 - 1])
        elif place < 8:
            numbers[place] = pick(rng, [0, 2, 3, 2**32 - 1] if place == 4 else [-1.0, np.nan, np.inf, 0.0])
        body = bytearray(blocks[i][BLOCK.size :])
        if place == 8:
            at = 8 * int(rng.integers(len(body) // 8))
            struct.pack_into("<d", body, at, pick(rng, [0.0, np.nan, 1e300]))
        blocks[i] = BLOCK.pack(*numbers) + body
    return head + b"".join(block + struct.pack("<I", zlib.crc32(block)) for block in blocks)


def forged_rows(files: Files, rng: Rng) -> Files:
    """metrics.csv with a changed number, and a run.json whose checksum of it fits."""
    rows = [line.split(",") for line in files["metrics.csv"].decode().splitlines()]
    i = int(rng.integers(len(rows)))
    j = int(rng.integers(len(rows[i])))
    way = rng.random()
    if way < 0.1:
        del rows[i]
    elif way < 0.2:
        del rows[i][j]
    elif way < 0.3:
        rows.insert(i, rows[i])
    else:
        numbers = ["nan", "inf", "-1", "0", "1e400", "9" * 30, "9" * 5000, "1_0", "1.5"]
        rows[i][j] = pick(rng, [*numbers, "", "x", "é", "\n" * 900])
    data = "\n".join(",".join(row) for row in rows).encode() + b"\n"
    record = json.loads(files["run.json"])
    record.pop("checksum")
    record["metrics"] = {"n_bytes": len(data), "crc32": zlib.crc32(data)}
    return {**files, "metrics.csv": data, "run.json": sealed(record)}
