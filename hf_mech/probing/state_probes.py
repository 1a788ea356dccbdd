"""Probes of states: one small MLP for each token that a state may hold, all at once, and their file in a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hf_mech.hub.files import replacing
from hf_mech.probing import ProbingError

PROBES_FILE = "probes.safetensors"
"""In the folder of the checkpoint whose states they read."""
_TARGETS = "targets"


class StateProbes(nn.Module):
    """An MLP with one hidden layer for each target, all at once.

    Args:
        targets: a name for each token to be read, such as "node 2 of the path".
        size: of a state.
        vocabulary: the number of tokens.
        width: of the hidden layers.
        generator: of the first weights.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.probing.state_probes import StateProbes

    >>> StateProbes(["first token", "last token"], size=8, vocabulary=5)(torch.zeros(3, 8)).shape
    torch.Size([2, 3, 5])

    ```
    """

    mean: Tensor  # [size], of the states that the probes were trained on
    std: Tensor  # [size]

    def __init__(
        self,
        targets: Sequence[str],
        size: int,
        vocabulary: int,
        width: int = 128,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.targets = list(targets)
        count = len(self.targets)
        self.first = nn.Parameter(torch.randn(count, size, width, generator=generator) * (2 / size) ** 0.5)
        self.first_bias = nn.Parameter(torch.zeros(count, 1, width))
        self.second = nn.Parameter(torch.zeros(count, width, vocabulary))
        self.second_bias = nn.Parameter(torch.zeros(count, 1, vocabulary))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))

    def forward(self, states: Tensor) -> Tensor:
        """Logits [targets, count, vocabulary] from states [count, size].

        Raises:
            ProbingError: states of another size.
        """
        if states.shape[-1] != len(self.mean):
            raise ProbingError(f"The probes read states of size {len(self.mean)}, got {states.shape[-1]}.")
        hidden = (torch.matmul((states - self.mean) / self.std, self.first) + self.first_bias).relu()
        return torch.matmul(hidden, self.second) + self.second_bias

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes `PROBES_FILE` into a folder, made if there is none; readers see the whole old or new file."""
        path = Path(folder) / PROBES_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as aside:
            tensors = {name: tensor.contiguous().cpu() for name, tensor in self.state_dict().items()}
            # One entry: safetensors writes several in any order, so that equal probes would have another sum each time.
            save_file(tensors, aside, metadata={_TARGETS: json.dumps(self.targets)})
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StateProbes:
        """The probes in a file.

        Raises:
            ProbingError: the file holds no probes.
        """
        try:
            with safe_open(path, "pt") as file:
                targets = json.loads((file.metadata() or {})[_TARGETS])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            (_, size, width), vocabulary = tensors["first"].shape, tensors["second"].shape[-1]
            probes = cls(targets, size, vocabulary, width)
            probes.load_state_dict(tensors)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise ProbingError(f"{path} holds no probes of states: {error}") from error
        return probes.eval()
