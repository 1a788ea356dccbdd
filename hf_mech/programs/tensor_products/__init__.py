"""Tensor product representations in hidden states: a hypothesis of roles and fillers, fitted and tested."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
