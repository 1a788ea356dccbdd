"""Writes the copies of `configs.py` and `checkpoints.py` into every family's folder.

Run as a file, `python hf_mech/models/copies.py`: without the copies hf_mech itself cannot be imported.
"""

from pathlib import Path

HERE = Path(__file__).parent
ORIGINALS = (HERE / "checkpoints.py", HERE / "configs.py")
HEADER = "# Copied from hf_mech/models/{name} by `make format`; edit it there.\n"


def copies() -> dict[Path, str]:
    """The text of every copy by its path: one copy of each original for each family."""
    return {
        package.parent / original.name: HEADER.format(name=original.name) + original.read_text("utf-8")
        for package in sorted(HERE.glob("*/__init__.py"))
        for original in ORIGINALS
    }


if __name__ == "__main__":
    for path, text in copies().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"wrote {path}")
