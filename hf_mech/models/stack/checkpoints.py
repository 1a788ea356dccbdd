"""For stack models: in a saved checkpoint, the file that this one imports from stands in its place."""

from hf_mech.models.checkpoints import AdaptersTrainNewParts as AdaptersTrainNewParts
from hf_mech.models.checkpoints import SafeCheckpoints as SafeCheckpoints
from hf_mech.models.checkpoints import declare_targets as declare_targets
from hf_mech.models.checkpoints import strict_config as strict_config
