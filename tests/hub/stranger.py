"""A process in which hf_mech cannot be imported loads what was pushed, by name, from the Hub; prints JSON.

Run as `python -I stranger.py`, with HF_ENDPOINT set.
"""

import importlib
import json
import sys
from typing import Any

OURS = ("hf_mech", "tests")


class NotInstalled:
    """An import hook for which our packages do not exist."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise for our packages; leave every other to the next hook."""
        if name.partition(".")[0] in OURS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def can_import(name: str) -> bool:
    """Whether the package is there."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def load_everything() -> dict[str, Any]:
    """The pushed models' outputs, and the pushed data set whole and streamed."""
    import datasets
    import numpy as np
    import torch
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForTokenClassification, AutoProcessor

    input_ids = torch.tensor([[0, 1, 2, 3]])
    with torch.no_grad():
        toy = AutoModelForCausalLM.from_pretrained("tester/toy", trust_remote_code=True)
        strips = AutoModel.from_pretrained("tester/strips", trust_remote_code=True)
        labels = AutoModelForTokenClassification.from_pretrained("tester/strips", trust_remote_code=True)
        doom = AutoModel.from_pretrained("tester/doom", trust_remote_code=True).eval()
        processor = AutoProcessor.from_pretrained("tester/doom", trust_remote_code=True)
        context, decided = doom.start_context(2), []
        for frames in np.random.default_rng(0).integers(0, 256, (8, 2, 120, 160, 3)).astype(np.uint8):
            doom.act(**processor(frames, return_tensors="pt"), context=context, returns_to_go=1.8)
            decided.append(context.logits.nan_to_num(neginf=0).tolist())
        whole = datasets.load_dataset("tester/toy_data", "large")
        stream = datasets.load_dataset("tester/toy_data", "small", split="test", streaming=True)
        return {
            "logits": toy(input_ids).logits.tolist(),
            "inapplicability": strips(input_ids).inapplicability.tolist(),
            "head": type(labels).__name__,
            "decided": decided,
            "module": type(strips).__module__.partition(".")[0],
            "rows": {split: rows.num_rows for split, rows in whole.items()},
            "parity": whole["train"].features["parity"].names,
            "streamed": list(stream),
        }


if __name__ == "__main__":
    sys.meta_path.insert(0, NotInstalled())  # type: ignore[arg-type]
    if any(can_import(name) for name in OURS):
        raise SystemExit(f"One of {OURS} can be imported here, so this process proves nothing.")
    print(json.dumps(load_everything()))
