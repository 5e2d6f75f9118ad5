"""Headless Chromium, as a reader of reports would have it: no network needed, a profile of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

CHROMIUM = shutil.which("chromium")


class Browser:
    def __init__(self, profile: Path) -> None:
        self.profile = profile

    def _run(self, page: Path, *options: str) -> tuple[str, list[str]]:
        assert CHROMIUM is not None
        done = subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--enable-logging=stderr",
                f"--user-data-dir={self.profile}",
                *options,
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=240,
        )
        console = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if ":CONSOLE" in line]
        return done.stdout.decode("utf-8"), console

    def dom(self, page: Path) -> tuple[str, list[str]]:
        """The page as it is after its scripts have run, and what it has said on the console."""
        return self._run(page, "--dump-dom")

    def screenshot(self, page: Path, *options: str, size: tuple[int, int] = (1280, 2600)) -> Any:
        """Pixels, shape (height, width, 3), of whole numbers from 0 to 255."""
        picture = self.profile / "page.png"
        self._run(page, f"--screenshot={picture}", f"--window-size={size[0]},{size[1]}", *options)
        return np.rint(imread(picture)[..., :3] * 255).astype(int)


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    if CHROMIUM is None and "CI" not in os.environ:
        pytest.skip("chromium is not installed: scripts/bootstrap --test brings it")
    assert CHROMIUM is not None, "chromium is not installed, and in CI its tests must run"
    return Browser(tmp_path_factory.mktemp("profile"))


class Page(HTMLParser):
    """What a page's text and tables say: `tables` by caption, each a list of rows of cell texts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self.data = ""
        self._rows: list[list[str]] = []
        self._caption = ""
        self._inside: str | None = None
        self._script: dict[str, str | None] | None = None
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
            self._inside = "cell"
        elif tag == "caption":
            self._inside = "caption"
        elif tag == "script":
            self._script = dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.tables[self._caption] = self._rows
        elif tag in ("td", "th", "caption"):
            self._inside = None
        elif tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            if self._script.get("id") == "isofold-report-data":
                self.data += data
            return
        self.text += data
        if self._inside == "cell":
            self._rows[-1][-1] += data
        elif self._inside == "caption":
            self._caption += data


@pytest.fixture
def parse() -> type[Page]:
    return Page
