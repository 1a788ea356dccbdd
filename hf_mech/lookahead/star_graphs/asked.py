"""A star graph as a person writes it, with the goal apart: its arms, its prompt, and examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs.graphs import SEPARATORS, StarGraph, in_split

_FORM = re.compile(r"\s*(\d+\s*,\s*\d+(?:\s*\|\s*\d+\s*,\s*\d+)*)\s*/\s*(\d+)\s*(?:,\s*(\d+)\s*)?=?\s*")
_SHOWN = 3  # examples
_SEED = 20  # of graphs that no table shows
_DRAWN = 100  # of which a part belongs to the split of the tests
_MOST = 40  # arms, and nodes of a path, that are tried


@dataclass(frozen=True)
class Question:
    """A path that is asked for.

    Attributes:
        graph: the degree and length of the graph, and the number of the tokenizer's names.
        arms: the nodes of each arm, from the start on; the arm of the first edge comes first.
        goal: where the path shall end.
        prompt: the text that the model reads, up to `=`.
    """

    graph: StarGraph
    arms: tuple[tuple[int, ...], ...]
    goal: int
    prompt: str

    @property
    def path(self) -> tuple[int, ...]:
        """The nodes from the start to the goal."""
        arm = next(arm for arm in self.arms if self.goal in arm)
        return arm[: arm.index(self.goal) + 1]


def names_of(tokenizer: Any) -> int:
    """The number of nodes that a tokenizer of star graphs has names for; 0 for any other tokenizer."""
    words = tokenizer.get_vocab().keys()
    nodes = sum(word.isdigit() for word in words)
    return nodes if set(SEPARATORS) <= words and {str(node) for node in range(nodes)} <= words else 0


def graph_of(positions: int, names: int) -> StarGraph | None:
    """The graph whose rows have as many tokens as a model has positions; None if there is none.

    >>> graph_of(69, 50)
    StarGraph(degree=5, length=5, num_nodes=50, directed=True)
    """
    for degree in range(2, _MOST):
        for length in range(3, _MOST):
            if degree * (length - 1) < names and StarGraph(degree, length, names).row_length == positions:
                return StarGraph(degree, length, names)
    return None


def ask(text: str, goal: str, names: int) -> Question:
    """Reads `parent,child|parent,child/start`, or a whole prompt `.../start,goal=`, whose goal gives way to another.

    Args:
        text: the edges and the start.
        goal: a node, the last of an arm.
        names: see [`names_of`].

    Raises:
        LookaheadError: another form, edges that are no star, or a goal that is not at an end.

    Example:

    ```python
    >>> question = ask("0,1|2,3|0,2|1,4/0", "4", names=9)
    >>> question.prompt, question.path
    ('0,1|2,3|0,2|1,4/0,4=', (0, 1, 4))

    ```
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise LookaheadError(f"Write edges and the start, such as 0,1|2,3|0,2|1,4/0, got {text!r}.")
    pairs = (edge.partition(",") for edge in found[1].split("|"))
    edges = [(int(parent), int(child)) for parent, _, child in pairs]
    start = int(found[2])
    children: dict[int, list[int]] = {}
    for parent, child in edges:
        children.setdefault(parent, []).append(child)
    arms = []
    for child in children.get(start, ()):
        arm = [start, child]
        while len(after := children.get(arm[-1], [])) == 1 and len(arm) <= len(edges):
            arm.append(after[0])
        arms.append(tuple(arm))
    ends = [arm[-1] for arm in arms]
    wanted = goal.strip() or found[3] or ""
    if not wanted.isdigit() or int(wanted) not in ends:
        raise LookaheadError(
            f"The goal must be an arm's last node, one of {', '.join(map(str, ends))}, got {wanted!r}."
        )
    graph = StarGraph(len(arms), max(map(len, arms)), names)
    graph.encode(edges, start, int(wanted))  # refuses what is no star
    written = "|".join(f"{parent},{child}" for parent, child in edges)
    return Question(graph, tuple(arms), int(wanted), f"{written}/{start},{wanted}=")


def with_goal(text: str, goal: str) -> str:
    """The prompt of a graph with its start, up to `=`; any other text as it is.

    >>> with_goal("0,1|0,2/0", "2"), with_goal("Once upon", "a time.")
    ('0,1|0,2/0,2=', 'Once upon')
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return text
    return f"{found[1]}/{found[2]},{goal.strip() or found[3] or ''}="


def example_questions(graph: StarGraph) -> list[tuple[str, str]]:
    """A graph of the tests with two of its goals, and another one: edges with the start, and the goal."""
    rows = graph.draw(_DRAWN, Dice(_SEED, (graph.degree, graph.length)))
    rows = rows[in_split(graph, rows, "test")][:2]
    shown = []
    for row, edges in zip(rows, graph.edges_of(rows), strict=True):
        path = graph.paths_of(row[None])[0]
        text = "|".join(f"{parent},{child}" for parent, child in edges.tolist()) + f"/{path[0]}"
        parents = set(edges[:, 0].tolist())
        other = next((child for child in edges[:, 1].tolist() if child not in parents and child != path[-1]), path[-1])
        shown += [(text, str(path[-1])), (text, str(other))]
    return shown[:_SHOWN]
