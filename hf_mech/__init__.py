"""Five mechanisms that make transformers compute something exactly, as a Hugging Face extension.

Importing the package registers its architectures with transformers' Auto classes and its data sets with
`datasets.load_dataset`, and does nothing else.
"""

import importlib
import pkgutil

from . import local_datasets, models

__version__ = "0.1.0"

for _family in pkgutil.iter_modules(models.__path__):
    importlib.import_module(f"{models.__name__}.{_family.name}")

local_datasets.install()
