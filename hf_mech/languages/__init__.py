"""Formal languages: Delétang et al.'s tasks, their tokenizer, and batches in the layouts of the paper."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
