"""For STRIPS Transformer: in a saved checkpoint, the file that this one imports from stands in its place."""

from hf_mech.models.checkpoints import SafeCheckpoints as SafeCheckpoints
from hf_mech.models.checkpoints import strict_config as strict_config
