"""The Space in an environment of its own, as the Hub makes it: nothing but its requirements."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

import hf_mech
from hf_mech.cli.explorer.space import write_space
from hf_mech.cli.explorer.views import all_views

ROOT = Path(hf_mech.__path__[0]).parent
USE = """
import hf_mech
from hf_mech.cli.explorer.views import view_for
assert "site-packages" in hf_mech.__file__
for source in ("pargen", "simple"):
    view = view_for(source)
    example = view.examples(source)[0]
    assert len(view.page(source, example.text, settings=example.settings)) > 5_000
print("used")
"""


def requirements(folder: Path) -> Path:
    """The Space's requirements; without PyTorch's own index where it cannot be reached, as pip waits minutes for it."""
    lines = (folder / "space" / "requirements.txt").read_text("utf-8").splitlines()
    option, _, index = lines[0].partition(" ")
    assert option == "--extra-index-url"
    try:
        urlopen(index, timeout=10).close()
    except OSError:
        del lines[0]
    file = folder / "requirements.txt"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@pytest.mark.browser
def test_the_space_starts_with_its_requirements_alone(tmp_path: Path) -> None:
    """hf-mech itself is not on PyPI yet: pip finds the wheel of this checkout beside PyPI's packages."""
    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels = tmp_path / "wheels"
    build = [sys.executable, *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(ROOT)]
    subprocess.run(build, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    write_space(tmp_path / "space")
    needed = ["-r", str(requirements(tmp_path)), "-c", str(ROOT / "constraints.txt")]
    subprocess.run([python, *pip, "install", "--no-compile", "--find-links", str(wheels), *needed], check=True)

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    used = subprocess.run(
        [python, "-c", USE], env=environment, cwd=tmp_path, capture_output=True, text=True
    )  # fmt: skip
    assert used.stdout == "used\n", used.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environment["GRADIO_SERVER_PORT"] = str(free.getsockname()[1])
    started = subprocess.Popen(
        [python, "app.py"], env=environment, cwd=tmp_path / "space", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    try:
        for _ in range(300):
            assert started.poll() is None, started.stdout.read() if started.stdout else ""
            try:
                with urlopen(f"http://127.0.0.1:{environment['GRADIO_SERVER_PORT']}/config", timeout=5) as answer:
                    config = json.load(answer)
                break
            except OSError:
                time.sleep(0.5)
        tabs = [one["props"]["label"] for one in config["components"] if one["type"] == "tabitem"]
        assert tabs == [view.name for view in all_views()]
    finally:
        started.terminate()
        started.communicate(timeout=30)
