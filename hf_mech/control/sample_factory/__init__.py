"""Policies trained by Sample Factory's APPO, as in Section 7.5 of M-SAT.

Sample Factory needs older versions of numpy, gymnasium and huggingface_hub than hf_mech, so it lives in a Python
environment of its own: `train` sets that up and trains there, and `SampleFactoryPolicy` asks a checkpoint there.
"""

from hf_mech.control.sample_factory.policy import SampleFactoryPolicy

__all__ = ["SampleFactoryPolicy"]
