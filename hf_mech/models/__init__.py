"""One flat folder a paper: all that a checkpoint needs to load and run."""

import transformers  # noqa: F401  (it registers the families, and must not begin to in the middle of one)
