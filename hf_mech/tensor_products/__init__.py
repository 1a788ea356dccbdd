"""Tensor product representations in hidden states: a hypothesis of roles and fillers, fitted and tested."""

from typing import TYPE_CHECKING

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "decoder": ["TensorProduct", "fit_decoder"],
        "discover": ["Discovery", "Fit", "discover"],
        "encoder": ["Contributions", "fit_encoder"],
        "errors": ["HypothesisError"],
        "hypothesis": ["Hypothesis"],
    },
)

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .decoder import TensorProduct as TensorProduct
    from .decoder import fit_decoder as fit_decoder
    from .discover import Discovery as Discovery
    from .discover import Fit as Fit
    from .discover import discover as discover
    from .encoder import Contributions as Contributions
    from .encoder import fit_encoder as fit_encoder
    from .errors import HypothesisError as HypothesisError
    from .hypothesis import Hypothesis as Hypothesis
