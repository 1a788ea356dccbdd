"""Runs pages, each in a process of its own that is forked where the large libraries are imported already.

Run as `python run_pages.py`. A line of the input is JSON: the page's name, its Python, the empty folder to run in and
the file for what it prints. A line of the output is the page's exit code.
"""

import importlib
import json
import os
import sys
import traceback

IMPORTED = ("torch", "transformers.modeling_utils", "transformers.models.gpt2.modeling_gpt2", "datasets", "numba")


def run(name: str, program: str, folder: str, printed: str) -> int:
    """Runs a page under its own name, so that a traceback shows its lines; returns the exit code."""
    for stream in (1, 2):
        os.dup2(os.open(printed, os.O_CREAT | os.O_WRONLY | os.O_APPEND), stream)
    os.chdir(folder)
    sys.path[0] = ""
    try:
        exec(compile(program, name, "exec"), {"__name__": "__main__"})
    except BaseException:  # noqa: BLE001  (the page may raise anything)
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    for module in IMPORTED:
        importlib.import_module(module)
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            os._exit(run(**json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)  # the libraries have nothing to tidy up
