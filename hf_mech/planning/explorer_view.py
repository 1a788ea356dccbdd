"""STRIPS Transformers: each head on a trace of actions, and the planning domain in the weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hf_mech.hub.catalogue import located
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import Example, ExplorerError, View, not_loaded

if TYPE_CHECKING:
    from hf_mech.models.strips.modeling_strips import StripsTransformer
    from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain

_STEPS = 5  # of an example
_FIRST = "simple"
_MOST_ACTIONS, _MOST_HEADS = 24, 18  # in the pictures of heads
_KEPT = 8
_WRONG = 0.5  # y from which an action counts as inapplicable, (19)


class StripsView(View):
    """See `View`. A source is a checkpoint, or a bundled domain whose weights follow from it (Theorem 4)."""

    name = "STRIPS"
    about = "The head of every proposition on a trace of actions, and the planning domain in the weights."
    rank = 1
    model_types = ("strips_transformer",)
    source_label, text_label = "Domain or checkpoint", "Actions"

    @property
    def sources(self) -> Sequence[str]:
        """The bundled domains, the smallest first."""
        from hf_mech.planning.pddl import BUNDLED

        return (_FIRST, *(name for name in BUNDLED if name != _FIRST))

    def examples(self, source: str) -> Sequence[Example]:
        """Applicable actions with one at the end that is not; without it; and with it in the middle."""
        if not source:
            return ()
        domain = _domain_of(source)
        walk, other = _walk(domain, 7), _walk(domain, 3)
        wrong = [action for action in domain.action_names if action not in domain.next_actions(walk)]
        middle = walk[: _STEPS // 2]
        early = [action for action in domain.action_names if action not in domain.next_actions(middle)]
        found = ([*walk, *wrong[:1]], other, [*middle, *early[-1:], *walk[_STEPS // 2 :]])
        return [Example(" ".join(trace)) for trace in found if trace]

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`.

        Raises:
            StripsError: the checkpoint is of another family, or has no such action.
            ExplorerError: there is no action, more than fit, or no such checkpoint.
        """
        if not 0 < len(text.split()) <= _MOST_ACTIONS:
            raise ExplorerError(f"give 1 to {_MOST_ACTIONS} actions with spaces between them, got {len(text.split())}")
        model = _model(source)
        learned = model.to_domain()
        trace = text.split()
        arrays = _attention(model, learned.encode(trace))
        title = f"{source}: {len(learned.propositions)} propositions, {len(learned.actions)} actions"
        sections = [_verdicts(learned, trace, arrays[2]), _heads(learned, trace, *arrays), _domain(learned)]
        return figures_page(title, _exactness(model), sections)


def _domain_of(source: str) -> StripsDomain:
    from hf_mech.planning.pddl import BUNDLED, load_bundled

    return load_bundled(source).domain if source in BUNDLED else _model(source).to_domain()


def _walk(domain: StripsDomain, stride: int) -> list[str]:
    """Actions that are applicable one after the other; a model that has not learned may know none."""
    trace: list[str] = []
    for step in range(_STEPS):
        if possible := domain.next_actions(trace):
            trace.append(possible[stride * step % len(possible)])
    return trace


@lru_cache(_KEPT)
def _model(source: str) -> StripsTransformer:
    from hf_mech.models.strips.modeling_strips import StripsTransformer
    from hf_mech.planning.pddl import BUNDLED, load_bundled

    if source in BUNDLED:
        return StripsTransformer.from_domain(load_bundled(source).domain).eval()
    try:
        return StripsTransformer.from_pretrained(located(source)).eval()
    except OSError as error:
        raise not_loaded(source, error) from error


def _attention(model: StripsTransformer, trace: Sequence[int]) -> tuple[Any, Any, Any]:
    """S, S' and y of the first member: [F, n, n], [F, n, n], [F, n]."""
    import torch

    from hf_mech.planning.figures import attention_arrays

    with torch.no_grad():
        return attention_arrays(model.theta[0].clamp(0, 1).double().numpy(), trace)


def _exactness(model: StripsTransformer) -> str:
    distance = float((model.theta.detach()[0] - model.theta.detach()[0].round()).abs().max())
    member = f" Of {model.config.ensemble} members the first is shown." if model.config.ensemble > 1 else ""
    where = f"at most {distance:.3g} from" if distance else "exactly"
    return (
        f"Every weight is {where} 0 or 1: a proposition and an action have three, whether the action needs, affects "
        f"and deletes the proposition.{member}"
    )


def _verdicts(domain: StripsDomain, trace: Sequence[str], outputs: Any) -> Section:
    rows = []
    for step, action in enumerate(trace):
        heads = [p for head, p in enumerate(domain.propositions) if outputs[head, step] >= _WRONG]
        verdict = f"inapplicable: {', '.join(heads)} is false" if heads else "applicable"
        rows.append([str(step + 1), action, f"{outputs[:, step].max():.3g}", verdict])
    said = "y is the largest output of a head: the head of a proposition says that the action needs it and it is false."
    return Section("The trace", said, head=["step", "action", "y", "verdict"], rows=rows)


def _heads(domain: StripsDomain, trace: Sequence[str], scores: Any, sticks: Any, outputs: Any) -> Section:
    """The heads that attend to something; all of them in a small domain."""
    from hf_mech.planning.figures import attention_figure

    order = sorted(range(len(scores)), key=lambda head: (-outputs[head].max(), -scores[head].max(), head))
    chosen = sorted(order[:_MOST_HEADS])
    names = [domain.propositions[head] for head in chosen]
    figure = attention_figure(list(trace), names, scores[chosen], sticks[chosen], outputs[chosen])
    few = f" Shown are the {len(chosen)} heads of {len(scores)} that attend most." if len(chosen) < len(scores) else ""
    said = "A row is an action, a column an earlier one: the score S, shaded by the stick-breaking score S', and y."
    return Section("The heads (Figure 3)", said + few, [figure])


def _domain(domain: StripsDomain) -> Section:
    def row(action: StripsAction) -> list[str]:
        parts = (action.pre, action.add, action.delete)
        return [action.name, *(", ".join(p for p in domain.propositions if p in part) for part in parts)]

    said = "The weights at 0.5 or more as symbols (Definition 5)."
    return Section("The domain", said, head=["action", "needs", "adds", "deletes"], rows=list(map(row, domain.actions)))


VIEW = StripsView()
