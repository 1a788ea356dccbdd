"""Runs a module that ends with the process which started it, even if that is killed while the module's imports last.

python -m training.ends_with_parent PARENT MODULE ARGUMENTS...
"""

import os
import runpy
import sys
import threading
import time


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    parent, module = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    sys.argv[:3] = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
