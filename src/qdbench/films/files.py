"""Write films as files: a GIF, an MP4 video, or a filmstrip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from qdbench.errors import InvalidInput, QdbenchError
from qdbench.films.drawing import THEMES
from qdbench.films.scenes import Scene

Progress = Callable[[int, int], None]
STRIP = 6
"""Frames of a filmstrip."""
_GAP = 4
_GIF_COLOURS = 128


def require_can_draw(video: bool) -> None:
    """Refuse, before the work starts, a file that could not be made."""
    if find_spec("PIL") is None:
        raise InvalidInput("films need Pillow: pip install 'qdbench[film]'")
    if video and find_spec("imageio_ffmpeg") is None:
        raise InvalidInput("an .mp4 file needs imageio-ffmpeg: pip install 'qdbench[film]'; or write a .gif")


def filmstrip(scene: Scene, n: int = STRIP, *, columns: int = 0, labels: bool = True) -> Any:
    """Return `n` pictures of an episode, from its start to its end, in one; as a Pillow image."""
    from PIL import Image, ImageDraw

    columns = columns or min(n, 3)
    rows = -(-n // columns)
    theme = THEMES[scene.theme]
    size = columns * (scene.width + _GAP) - _GAP, rows * (scene.height + _GAP) - _GAP
    strip = Image.new("RGB", size, theme.background)
    draw = ImageDraw.Draw(strip)
    whole = (len(scene.performer.take) - 1) / scene.performer.take.rate
    for i in range(n):
        time = whole * i / max(1, n - 1)
        x, y = (i % columns) * (scene.width + _GAP), (i // columns) * (scene.height + _GAP)
        strip.paste(scene.picture(time), (x, y))
        if labels:
            draw.text((x + 10, y + 8), f"{time:.1f} s", fill=theme.ink, font_size=max(11, scene.height // 20))
    return strip


def png(image: Any, colours: int = 0) -> bytes:
    """Return a picture as a PNG file; with few colours it is much smaller."""
    file = BytesIO()
    shown = image.quantize(colours) if colours else image
    shown.save(file, format="PNG", optimize=True)
    return file.getvalue()


def gif(scene: Scene, rate: float, speed: float, progress: Progress) -> bytes:
    """Return a film as a GIF file that repeats."""
    hundredths = max(2, round(100 / rate))  # GIF's unit of time; browsers slow down anything shorter
    first, *others = [
        picture.quantize(_GIF_COLOURS) for picture in _pictures(scene, 100 / hundredths, speed, progress)
    ]
    file = BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=10 * hundredths, loop=0)
    return file.getvalue()


def mp4(scene: Scene, rate: float, speed: float, progress: Progress) -> bytes:
    """Return a film as an H.264 video, by the ffmpeg program that imageio-ffmpeg brings."""
    import imageio_ffmpeg

    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        writer = imageio_ffmpeg.write_frames(
            str(path), (scene.width, scene.height), fps=rate, macro_block_size=2, quality=8
        )
        try:
            writer.send(None)
            for picture in _pictures(scene, rate, speed, progress):
                writer.send(np.asarray(picture).tobytes())
            writer.close()
            return path.read_bytes()
        except OSError as error:
            raise QdbenchError(f"ffmpeg could not make the video: {error}") from None


def _pictures(scene: Scene, rate: float, speed: float, progress: Progress) -> Iterator[Any]:
    n = max(2, round(scene.seconds / speed * rate) + 1)
    for i in range(n):
        yield scene.picture(i * speed / rate)
        progress(i + 1, n)
