"""A template, and the prompts that are instances of it (Sec. 4.1, (31)-(32))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hf_mech.programs.templatic.errors import TemplateError

QUESTION, ANSWER = "Q", "A"  # the values of the fields FQ and FA, reserved (32c-iii)
END = "."  # ends every example of the data set; in a template, the last symbol of its last delimiter

Field = int | tuple[str, ...]  # a constituent, by its number from 0, or a delimiter, by its symbols
Values = tuple[tuple[str, ...], ...]  # the symbols of each constituent


@dataclass(frozen=True)
class Template:
    """The fields of a Q-region and of an A-region, without the `Q` and the `A` that begin them.

    Args:
        question: constituents and delimiters. The constituents are numbered 0, 1, ... from the left, with a delimiter
            between any two.
        answer: constituents of the question, not necessarily all of them, and delimiters of its own. Two constituents
            may be neighbours, as in (25). The grammar has each at most once (32b-i); a template may repeat one.

    Raises:
        TemplateError: no field, an empty delimiter, two delimiters in a row, or invalid constituents.

    Example: the template of Sec. 4.2.1.

    ```python
    >>> template = Template((0, ("`", "?"), 1), (1, ("=", ".")))
    >>> print(template)
    Q <1> ` ? <2> A <2> = .
    >>> template.complete((("big", "bear"), ("car",)))
    'car = .'

    ```
    """

    question: tuple[Field, ...]
    answer: tuple[Field, ...]

    def __post_init__(self) -> None:
        for name, region in (("question", self.question), ("answer", self.answer)):
            if not region:
                raise TemplateError(f"The {name} of a template must have at least one field, got none.")
            if () in region:
                raise TemplateError(f"A delimiter must have at least one symbol, got the {name} {region}.")
            if any(isinstance(a, tuple) and isinstance(b, tuple) for a, b in pairwise(region)):
                raise TemplateError(f"Two delimiters in a row are one: join their symbols in the {name} {region}.")
        numbers = [f for f in self.question if isinstance(f, int)]
        if numbers != list(range(len(numbers))):
            raise TemplateError(f"The question's constituents must be 0, 1, 2, ... from the left, got {numbers}.")
        if any(isinstance(a, int) and isinstance(b, int) for a, b in pairwise(self.question)):
            raise TemplateError(f"Two constituents of a question need a delimiter between them, got {self.question}.")
        used = [f for f in self.answer if isinstance(f, int)]
        if not set(used) <= set(numbers):
            raise TemplateError(f"The answer's constituents must be the question's (32d-i), {numbers}, got {used}.")

    @cached_property
    def count(self) -> int:
        """The number of constituents in the question."""
        return sum(isinstance(f, int) for f in self.question)

    def ask(self, values: Sequence[Sequence[str]]) -> str:
        """A cue, the text of a Q-region and its `A`. Raises TemplateError: not a value for each constituent."""
        return f"{QUESTION} {self._fill(self.question, values)} {ANSWER}"

    def complete(self, values: Sequence[Sequence[str]]) -> str:
        """The text of the A-region after its `A`. Raises TemplateError: not a value for each constituent."""
        return self._fill(self.answer, values)

    def _fill(self, region: tuple[Field, ...], values: Sequence[Sequence[str]]) -> str:
        if len(values) != self.count or not all(values):
            raise TemplateError(f"Each of the {self.count} constituents needs at least one symbol, got {values}.")
        return " ".join([symbol for field in region for symbol in (values[field] if isinstance(field, int) else field)])

    def __str__(self) -> str:
        names = [(f"<{i + 1}>",) for i in range(self.count)]
        return f"{self.ask(names)} {self.complete(names)}"


@dataclass(frozen=True)
class Prompt:
    """An instance of a template: k examples, and a cue to be completed.

    Args:
        template: the common template of the examples and the cue.
        shots: the values of each example, in their order.
        cue: the values of the cue.

    Example: `swap` of Sec. 7.2.4.

    ```python
    >>> swap = Template((0, ("V",), 1), (1, ("V",), 0, (".",)))
    >>> prompt = Prompt(swap, shots=((("B",), ("D", "E")),), cue=(("F", "G", "H"), ("K", "L")))
    >>> prompt.text
    'Q B V D E A D E V B . Q F G H V K L A'
    >>> prompt.completion
    'K L V F G H .'

    ```
    """

    template: Template
    shots: tuple[Values, ...]
    cue: Values

    @property
    def text(self) -> str:
        """The prompt: symbols with one space between them, from the first `Q` to the last `A`."""
        ask, complete = self.template.ask, self.template.complete
        return " ".join([*(f"{ask(shot)} {complete(shot)}" for shot in self.shots), ask(self.cue)])

    @property
    def completion(self) -> str:
        """The answer to the cue."""
        return self.template.complete(self.cue)
