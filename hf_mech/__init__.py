"""Five mechanisms that make transformers compute something exactly, as a Hugging Face extension.

Importing the package registers its architectures with transformers' Auto classes and its data sets with
`datasets.load_dataset`, and does nothing else.
"""

import importlib
import pkgutil

from hf_mech import models
from hf_mech.data import local_datasets

__version__ = "0.1.0"

for _family in pkgutil.iter_modules(models.__path__):
    if _family.ispkg:
        importlib.import_module(f"{models.__name__}.{_family.name}")

local_datasets.install()
