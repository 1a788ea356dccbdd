"""Pictures of every tab of the explorer: `python docs/screenshots.py` starts the app and writes docs/explorer/*.png.

It needs a Chromium (see `make test-browser`) and the extras `explore` and `test`. A tab whose checkpoints are neither
in this clone nor on the Hub is left out, and named.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).with_name("explorer")
SIZE = {"width": 1280, "height": 860}
MOST_BYTES = 150_000
PATIENCE = 180_000  # ms
OTHERS = {
    "stories": ("Belief states", "Checkpoint", "belief-state-stories"),
    "strips-beside": ("STRIPS", "Beside it", "strips-simple"),
    "stacks-beside": ("Stacks", "Beside it", "no-stack-reverse-string"),
}
"""By picture, a tab, a field of it and the checkpoint that is named there."""
START = "from hf_mech.cli import app; app()"


@contextmanager
def served(start: str) -> Iterator[str]:
    """The address of the app, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", start, "explore", "--port", str(port)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            try:
                urlopen(url, timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


def save(picture: bytes, file: Path) -> None:
    """In a palette, with fewer colours until it is small enough."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (128, 64, 32, 16):
        written = io.BytesIO()
        image.quantize(colours).save(written, "PNG", optimize=True)
        if written.tell() <= MOST_BYTES:
            break
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(written.getvalue())
    print(f"{file}: {written.tell():,} bytes")


def shown(page: Page) -> bool:
    """Waits for the page of the visible tab; whether it is that of a run, not of a fault."""
    frame = page.frame_locator("iframe:visible").first
    frame.locator("h1").first.wait_for()
    page.wait_for_timeout(800)  # the frame takes its height, the progress fades
    return frame.locator('[role="alert"]').count() == 0


def field(page: Page, label: str) -> Any:
    """The field of the visible tab."""
    return page.get_by_label(label).locator("visible=true").first


def main() -> None:
    """Writes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--start", default=START, help="Python that starts the command line.")
    arguments = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with served(arguments.start) as url, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        tabs = page.get_by_role("tab")
        tabs.first.wait_for()
        for name in tabs.all_inner_texts():
            page.get_by_role("tab", name=name).click()
            if shown(page):
                save(page.screenshot(), arguments.folder / f"{re.sub('[^a-z]+', '-', name.lower())}.png")
            else:
                print(f"{name}: {page.frame_locator('iframe:visible').first.locator('p').first.inner_text()}")
        for picture, (name, label, other) in OTHERS.items():
            page.get_by_role("tab", name=name).click()
            named = field(page, label)
            named.fill(other)
            named.press("Enter")
            page.frame_locator("iframe:visible").last.locator("h1", has_text=other).wait_for()
            if shown(page):
                save(page.screenshot(), arguments.folder / f"{picture}.png")
        browser.close()


if __name__ == "__main__":
    main()
