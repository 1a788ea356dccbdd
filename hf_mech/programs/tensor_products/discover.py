"""DISCOVER: does a hypothesis of roles and fillers account for a model's states?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from hf_mech.programs.errors import ProgramsError

# ----------------------------------------------------------------------------------------------------------------------
# A hypothesis about hidden states: for every cell, which filler each role is bound to (App. L).


Filler = str | None


@dataclass(frozen=True)
class Hypothesis:
    """The bindings r:f of every cell. Make it with [`Hypothesis.of`].

    Roles whose fillers come from one set are a group gamma of App. L; a filler has one embedding in all roles of its
    group.

    Args:
        roles: the names of the roles.
        groups: the group of each role.
        fillers: for every group its fillers; None, nil, is a filler like any other.
        bindings: for every cell and role the index of the filler within the role's group, [cells, roles].
    """

    roles: tuple[str, ...]
    groups: tuple[int, ...]
    fillers: tuple[tuple[Filler, ...], ...]
    bindings: Tensor

    @classmethod
    def of(
        cls,
        cells: Sequence[Mapping[str, Filler]],
        roles: Iterable[str] | None = None,
        share: Iterable[Iterable[str]] = (),
    ) -> Hypothesis:
        """The hypothesis that cells have these states.

        Args:
            cells: each cell's state, role -> filler, such as a machine of `hf_mech.programs.psl` traces them.
            roles: those that are looked at, by default all of the first cell.
            share: sets of roles that have their fillers in common; any other role is a group by itself.

        Raises:
            ProgramsError: no cells, a role that a cell lacks, or a role in two groups.

        Example:

        ```python
        >>> cells = [{"region": "XQ", "before": None}, {"region": "CQ", "before": "XQ"}]
        >>> hypothesis = Hypothesis.of(cells, share=[("region", "before")])
        >>> hypothesis.fillers, hypothesis.bindings.tolist()
        (((None, 'CQ', 'XQ'),), [[2, 0], [1, 2]])

        ```
        """
        if not cells:
            raise ProgramsError("A hypothesis needs the states of some cells, got none.")
        names = tuple(cells[0] if roles is None else roles)
        if lacking := [name for name in names if any(name not in cell for cell in cells)]:
            raise ProgramsError(f"Every cell must bind every role; some bind no {', '.join(lacking)}.")
        sets = [tuple(name for name in names if name in set(group)) for group in share]
        together = [name for group in sets for name in group]
        if len(set(together)) < len(together):
            raise ProgramsError(f"A role has its fillers in one group, got {sorted(together)} in all.")
        sets = [group for group in sets if group] + [(name,) for name in names if name not in together]
        group_of = {name: index for index, group in enumerate(sets) for name in group}
        fillers = tuple(
            tuple(sorted({cell[name] for cell in cells for name in group}, key=lambda value: (value or "", value)))
            for group in sets
        )
        indices = [{filler: index for index, filler in enumerate(own)} for own in fillers]
        bindings = [[indices[group_of[name]][cell[name]] for name in names] for cell in cells]
        return cls(names, tuple(group_of[name] for name in names), fillers, torch.tensor(bindings))

    def __len__(self) -> int:
        return len(self.bindings)

    def take(self, cells: Tensor) -> Hypothesis:
        """The hypothesis about some cells: indices, or a boolean [cells]."""
        return replace(self, bindings=self.bindings[cells])

    def shuffled(self, generator: torch.Generator) -> Hypothesis:
        """The control: every cell gets the whole state of another one, so each role keeps its counts of fillers."""
        return self.take(torch.randperm(len(self), generator=generator))

    def number(self, role: int) -> int:
        """The number of fillers that a role may have."""
        return len(self.fillers[self.groups[role]])

    @property
    def offsets(self) -> list[int]:
        """For every role the first of its columns in `one_hot`, and at the end their number."""
        offsets = [0]
        for role in range(len(self.roles)):
            offsets.append(offsets[-1] + self.number(role))
        return offsets

    def one_hot(self) -> Tensor:
        """Each cell's TPR in the fully local embedding (68): a one at every binding, [cells, bindings], float64."""
        columns = self.bindings + torch.tensor(self.offsets[:-1])
        return torch.zeros(len(self), self.offsets[-1], dtype=torch.float64).scatter_(1, columns, 1.0)


# ----------------------------------------------------------------------------------------------------------------------
# From a structure to the hidden vector: each binding's contribution, by least squares.


@dataclass(frozen=True)
class Contributions:
    """The part of hidden vectors that a hypothesis explains: h = offset + sum over roles of e(r:f).

    A TPR through any linear map, h = W (sum of r (x) f), is of this form with e(r:f) = W (r (x) f). The form has no
    constraint on the e(r:f), so no embedding of roles and fillers explains more of the fitted cells.

    Args:
        hypothesis: its roles and fillers.
        vectors: e(r:f) of every binding, [bindings, hidden].
        offset: [hidden].
    """

    hypothesis: Hypothesis
    vectors: Tensor
    offset: Tensor

    def reconstruct(self, hypothesis: Hypothesis) -> Tensor:
        """The hidden vectors of cells with these bindings, [cells, hidden]."""
        return self.offset + hypothesis.one_hot() @ self.vectors

    def replace(self, hidden: Tensor, role: str, old: Filler, new: Filler) -> Tensor:
        """Hidden vectors with another filler bound to a role, h - e(r:old) + e(r:new) (Sec. 9.2.1).

        Args:
            hidden: vectors whose `role` is bound to `old`, [cells, hidden].
        """
        index = self.hypothesis.roles.index(role)
        fillers = self.hypothesis.fillers[self.hypothesis.groups[index]]
        first = self.hypothesis.offsets[index]
        change = self.vectors[first + fillers.index(new)] - self.vectors[first + fillers.index(old)]
        return hidden + change.to(hidden)


def fit_encoder(hidden: Tensor, hypothesis: Hypothesis) -> Contributions:
    """The contributions with the least squared error; of several, those of the least norm.

    Args:
        hidden: [cells, hidden].
        hypothesis: about these cells.
    """
    offset = hidden.double().mean(0)
    bound = hypothesis.one_hot()
    # The columns of a role sum to 1, so the mean of the cells is in their span: the minimum-norm solution needs gelsd.
    vectors = torch.linalg.lstsq(bound, hidden.double() - offset, driver="gelsd").solution
    return Contributions(hypothesis, vectors, offset)


def variance_explained(hidden: Tensor, reconstructed: Tensor, mean: Tensor) -> float:
    """R^2: 1 less the squared error over the squared distance from `mean` [hidden], over all cells and neurons."""
    error = (hidden - reconstructed).square().sum()
    return float(1 - error / (hidden - mean).square().sum())


# ----------------------------------------------------------------------------------------------------------------------
# From the hidden vector to a structure: the 'decoder' variant of DISCOVER (Sec. 9.2.1).
#
# A linear map takes the hidden vector h to T = W h + b, to be the TPR sum of r_i (x) f_j(i) (App. L). Role i is unbound
# by its dual vector, f^_i = r_i+ T, and the nearest filler is read. The map and the embeddings of roles and fillers are
# learned together: each role's cross-entropy over the fillers, with the logits -|f^_i - f_j|^2. The squared distance
# from T to the TPR alone would be 0 where all embeddings are 0; a cross-entropy rewards embeddings that can be told
# apart.


STEPS, LEARNING_RATE = 300, 0.05
LEAST_SINGULAR_VALUE = 1e-5  # of the centred hidden vectors, relative to the largest: below it there is only rounding
DAMPING = 0.5  # of the singular values, relative to the largest: directions of little variance stay small


@dataclass(frozen=True)
class TensorProduct:
    """A fitted decomposition of hidden vectors.

    Args:
        roles: r_i, [roles, role width]; linearly independent.
        fillers: f_j of every group, [fillers of the group, filler width].
        groups: the group of each role.
        weight: W, [hidden, role width * filler width].
        offset: b, [role width * filler width].
    """

    roles: Tensor
    fillers: tuple[Tensor, ...]
    groups: tuple[int, ...]
    weight: Tensor
    offset: Tensor

    def bind(self, bindings: Tensor) -> Tensor:
        """The TPR of bindings [cells, roles]: sum of r_i (x) f_j(i), [cells, role width, filler width]."""
        bound = torch.stack([self.fillers[group][bindings[:, i]] for i, group in enumerate(self.groups)], 1)
        return torch.einsum("ir,cif->crf", self.roles, bound)

    def tensors(self, hidden: Tensor) -> Tensor:
        """T of hidden vectors [cells, hidden], [cells, role width, filler width]."""
        return (hidden.to(self.weight) @ self.weight + self.offset).unflatten(-1, (self.roles.shape[1], -1))

    def unbind(self, tensors: Tensor) -> Tensor:
        """f^_i = r_i+ T for every role, [cells, roles, filler width]."""
        return torch.einsum("ri,crf->cif", torch.linalg.pinv(self.roles), tensors)

    def distances(self, unbound: Tensor) -> list[Tensor]:
        """`|f^_i - f_j|^2` for every role, [cells, fillers of its group]."""
        return [(unbound[:, i, None] - self.fillers[group]).square().sum(-1) for i, group in enumerate(self.groups)]

    def read(self, hidden: Tensor) -> Tensor:
        """The filler nearest to what each role unbinds to, [cells, roles]."""
        return torch.stack([distance.argmin(1) for distance in self.distances(self.unbind(self.tensors(hidden)))], 1)


def fit_decoder(
    hidden: Tensor, hypothesis: Hypothesis, *, filler_width: int = 16, decay: float = 1e-4, seed: int = 0
) -> TensorProduct:
    """Learns the map and the embeddings. Nothing is random but the first embeddings, which the seed draws.

    Args:
        hidden: [cells, hidden].
        hypothesis: about these cells.
        filler_width: of the fillers' embeddings, at most as many as the largest group has fillers.
        decay: the weight of the squared map in the loss.
        seed: of the first embeddings.
    """
    generator = torch.Generator().manual_seed(seed)
    scale, mean = _coordinates(hidden.double())
    inputs = ((hidden.double() - mean) @ scale).float()
    count = len(hypothesis.roles)
    width = min(filler_width, max(map(len, hypothesis.fillers)))
    roles = torch.nn.init.orthogonal_(torch.empty(count, count), generator=generator)
    fillers = [torch.randn(len(own), width, generator=generator) for own in hypothesis.fillers]
    weight, offset = torch.zeros(inputs.shape[1], count * width), torch.zeros(count * width)
    learned = [parameter.requires_grad_() for parameter in (roles, *fillers, weight, offset)]
    optimizer = torch.optim.Adam(learned, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    product = TensorProduct(roles, tuple(fillers), hypothesis.groups, weight, offset)
    with torch.enable_grad():
        for _ in range(STEPS):
            optimizer.zero_grad()
            distances = product.distances(product.unbind(product.tensors(inputs)))
            losses = [cross_entropy(-own, hypothesis.bindings[:, i]) for i, own in enumerate(distances)]
            (torch.stack(losses).sum() + decay * weight.square().sum()).backward()
            optimizer.step()
            schedule.step()
    found = scale.float() @ weight.detach()
    return TensorProduct(
        roles.detach(),
        tuple(own.detach() for own in fillers),
        hypothesis.groups,
        found,
        offset.detach() - mean.float() @ found,
    )


def _coordinates(hidden: Tensor) -> tuple[Tensor, Tensor]:
    """A map to damped principal components, [hidden, rank], and the mean of the vectors, [hidden].

    Full whitening would weigh the rare directions of sparse vectors, such as one-hot words, as much as all others: with
    more directions than cells every hypothesis then fits the fitted cells.
    """
    mean = hidden.mean(0)
    _, values, right = torch.linalg.svd(hidden - mean, full_matrices=False)
    kept = values > LEAST_SINGULAR_VALUE * values[0].clamp(min=1e-30)
    damped = torch.hypot(values[kept], DAMPING * values[0])
    return right[kept].mT / damped * len(hidden) ** 0.5, mean


# ----------------------------------------------------------------------------------------------------------------------
# Tests a hypothesis about hidden states on other cells than it was fitted to, and against a shuffled one (9.2.1).


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
        ProgramsError: shapes that do not fit, or too few prompts to hold some out.
    """
    if hidden.dim() != 2 or len(hidden) != len(hypothesis):
        raise ProgramsError(
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
        raise ProgramsError(f"held_out must leave prompts on both sides, got {share} of {len(names)} prompts.")
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
