from .discover import Contributions as Contributions
from .discover import Discovery as Discovery
from .discover import Fit as Fit
from .discover import Hypothesis as Hypothesis
from .discover import TensorProduct as TensorProduct
from .discover import discover as discover
from .discover import fit_decoder as fit_decoder
from .discover import fit_encoder as fit_encoder
