"""How every family checks a configuration, loads a checkpoint and saves one.

A family's folder is uploaded with a checkpoint: its files import only each other, and hf_mech may be missing where they
run. `configs.py` and `checkpoints.py` therefore lie in every family's folder as copies. Edit the originals here, and
write the copies with `make format`.

A new family decorates its configuration with `strict_config(<its error>, <the ranges of its sizes>)`, puts
`SafeCheckpoints` before transformers' classes in the bases of its models, and sets `_checkpoint_error` there.
"""
