"""Five mechanisms that make transformers compute something exactly, as a Hugging Face extension.

Importing the package registers its architectures with transformers' Auto classes and its data sets with
`datasets.load_dataset`, and does nothing else. Neither transformers nor torch is imported for that: the architectures
are registered when transformers is imported, so a command such as `hf-mech --help` answers at once.
"""

import importlib
import pkgutil

import wrapt

from hf_mech.data import local_datasets

__version__ = "0.1.0"


def _register_families(_transformers: object) -> None:
    from hf_mech import models

    for family in pkgutil.iter_modules(models.__path__):
        if family.ispkg:
            importlib.import_module(f"{models.__name__}.{family.name}")


wrapt.register_post_import_hook(_register_families, "transformers")
local_datasets.install()
