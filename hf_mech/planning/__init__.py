"""Planning domains: PDDL, the bundled problems, traces, learning, equivalence, reduction, and plans."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
