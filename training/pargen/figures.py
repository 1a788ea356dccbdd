"""The picture of a card: Swap, the paper's running example, through every production of the program."""

from matplotlib.figure import Figure

from hf_mech.programs.templatic import figures

from .run import compiled

_PROMPTS = {
    "pargen": "Q B C V D E A D E V B C . Q F G V J K L A",  # (27a)
    "pargen_k_shot": "Q B C V D E A D E V B C . Q P V R S A R S V P . Q F G V J K L A",
}
_POSITIONS, _OPEN = 64, 64  # enough for these prompts


def parse_figure(program: str) -> Figure:
    """The parse of the program's example, its completion, and the writes of each production."""
    return figures.parse_figure(*compiled(program, _POSITIONS, _OPEN), _PROMPTS[program])
