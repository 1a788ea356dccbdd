"""The builders behind `load_dataset("hf_mech/<name>")`, one module each, imported as `hf_mech.dataset_builders`."""
