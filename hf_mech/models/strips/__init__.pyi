from .configuration_strips import StripsTransformerConfig as StripsTransformerConfig
from .modeling_strips import (
    StripsTransformer as StripsTransformer,
)
from .modeling_strips import (
    StripsTransformerForTokenClassification as StripsTransformerForTokenClassification,
)
from .modeling_strips import (
    StripsTransformerOutput as StripsTransformerOutput,
)
from .strips_attention import (
    strips_attention as strips_attention,
)
from .strips_attention import (
    strips_attention_linear as strips_attention_linear,
)
from .strips_attention import (
    strips_attention_reference as strips_attention_reference,
)
from .strips_attention import (
    strips_focal_loss as strips_focal_loss,
)
from .strips_collator import StripsDataCollator as StripsDataCollator
from .strips_collator import encode_trace as encode_trace
from .strips_domain import StripsAction as StripsAction
from .strips_domain import StripsDomain as StripsDomain
from .strips_domain import StripsError as StripsError
from .strips_lifted import GroundAction as GroundAction
from .strips_lifted import LiftedAction as LiftedAction
from .strips_lifted import LiftedAtom as LiftedAtom
from .strips_lifted import LiftedDomain as LiftedDomain
from .strips_lifted_attention import lifted_attention as lifted_attention
from .strips_lifted_attention import lifted_attention_reference as lifted_attention_reference
from .strips_logits import StripsLogitsProcessor as StripsLogitsProcessor
from .tokenization_strips import strips_tokenizer as strips_tokenizer
