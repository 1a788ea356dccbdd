"""PSL, the Production System Language: parser, checker, symbolic machines, and the compiler to QKVL and DAT weights."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
