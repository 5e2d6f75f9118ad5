"""The picture of the demo's report: `make demo`, then

    python docs/pictures/report.py demo/report.html docs/pictures/report.png

Needs chromium, and Pillow, which comes with matplotlib.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

SIZE = (1280, 2210)  # down to the first segments


def main(report: Path, picture: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "page.png"
        command = [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--user-data-dir={folder}/profile",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={raw}",
            report.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        # A palette holds all that lines and letters need, in half the bytes.
        Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
