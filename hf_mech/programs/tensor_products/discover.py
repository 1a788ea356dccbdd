"""Tests a hypothesis about hidden states on other cells than it was fitted to, and against a shuffled one (9.2.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hf_mech.programs.tensor_products.decoder import TensorProduct, fit_decoder
from hf_mech.programs.tensor_products.encoder import Contributions, fit_encoder, variance_explained
from hf_mech.programs.tensor_products.errors import HypothesisError
from hf_mech.programs.tensor_products.hypothesis import Hypothesis


@dataclass(frozen=True)
class Fit:
    """A hypothesis that was fitted to some cells and measured on others.

    Args:
        explained: R^2 of the hidden vectors as a sum of the bindings' contributions. 1: nothing else is in them; 0:
            no better than their mean; below 0: worse.
        accuracy: for every role the share of cells whose filler is read.
        contributions: of the bindings, to build or change hidden vectors.
        product: the learned decomposition that was read.
    """

    explained: float
    accuracy: dict[str, float]
    contributions: Contributions
    product: TensorProduct


@dataclass(frozen=True)
class Discovery:
    """The test of a hypothesis; all figures are of held-out cells.

    Args:
        hypothesis: fitted and measured.
        control: the same for the shuffled hypothesis.
        majority: for every role the accuracy of always reading the most frequent filler of the fitted cells.
        unseen: the share of held-out cells with a binding that no fitted cell has: they cannot be read in full.
        fitted, held_out: the numbers of cells.
    """

    hypothesis: Fit
    control: Fit
    majority: dict[str, float]
    unseen: float
    fitted: int
    held_out: int


def discover(
    hidden: Tensor,
    hypothesis: Hypothesis,
    *,
    prompts: Tensor | None = None,
    held_out: float = 0.25,
    filler_width: int = 16,
    seed: int = 0,
) -> Discovery:
    """Whether hidden states are a TPR of a hypothesis, as far as linear maps can see it.

    Two fits to the same cells. The decoder variant of Sec. 9.2.1 learns a linear map from the hidden vector to a TPR
    with learned embeddings, `fit_decoder`, and reads each role's filler. Least squares of the hidden vector on the
    bindings, `fit_encoder`, tells how much of its variance they explain. A role may be read without error where the
    bindings explain little: the hidden vector holds other things too.

    Args:
        hidden: the hidden states, [cells, hidden].
        hypothesis: about the same cells.
        prompts: each cell's prompt, [cells]; cells of one prompt are fitted or held out together. By default every
            cell is by itself.
        held_out: the share of prompts that are measured.
        filler_width: of the learned fillers.
        seed: of the split, of the control, and of the first embeddings.

    Raises:
        HypothesisError: shapes that do not fit, or too few prompts to hold some out.
    """
    if hidden.dim() != 2 or len(hidden) != len(hypothesis):
        raise HypothesisError(
            f"Expected hidden states [cells, hidden] of the hypothesis's {len(hypothesis)} cells, got "
            f"{list(hidden.shape)}; flatten batch and length, without the padding."
        )
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(len(hidden)) if prompts is None else prompts
    measured = _measured(rows, held_out, generator)
    control = hypothesis.shuffled(generator)
    known, tested = hypothesis.take(~measured), hypothesis.take(measured)
    unseen = (known.one_hot().sum(0) == 0).double()
    usual = known.bindings.mode(0).values
    return Discovery(
        hypothesis=_fit(hidden, hypothesis, measured, filler_width, seed),
        control=_fit(hidden, control, measured, filler_width, seed),
        majority=_shares(hypothesis, tested.bindings == usual),
        unseen=float((tested.one_hot() @ unseen > 0).double().mean()),
        fitted=len(known),
        held_out=len(tested),
    )


def _measured(prompts: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Which cells are held out, a boolean [cells]."""
    names, own = prompts.unique(return_inverse=True)
    count = round(share * len(names))
    if not 0 < count < len(names):
        raise HypothesisError(f"held_out must leave prompts on both sides, got {share} of {len(names)} prompts.")
    chosen = torch.zeros(len(names), dtype=torch.bool)
    chosen[torch.randperm(len(names), generator=generator)[:count]] = True
    return chosen[own]


def _fit(hidden: Tensor, hypothesis: Hypothesis, measured: Tensor, filler_width: int, seed: int) -> Fit:
    known, tested = hypothesis.take(~measured), hypothesis.take(measured)
    contributions = fit_encoder(hidden[~measured], known)
    product = fit_decoder(hidden[~measured], known, filler_width=filler_width, seed=seed)
    rebuilt = contributions.reconstruct(tested)
    return Fit(
        explained=variance_explained(hidden[measured].double(), rebuilt, contributions.offset),
        accuracy=_shares(tested, product.read(hidden[measured]) == tested.bindings),
        contributions=contributions,
        product=product,
    )


def _shares(hypothesis: Hypothesis, right: Tensor) -> dict[str, float]:
    """The share of True for every role, of a boolean [cells, roles]."""
    return dict(zip(hypothesis.roles, right.double().mean(0).tolist(), strict=True))
