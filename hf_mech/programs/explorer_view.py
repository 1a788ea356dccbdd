"""Programs of the Production System Language: every cell after every layer, and the cell that each one read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mech.hub.catalogue import located
from hf_mech.programs.errors import ProgramsError
from hf_mech.viz.view import Example, View, not_loaded

if TYPE_CHECKING:
    from hf_mech.programs.psl.machine import Registers
    from hf_mech.programs.psl.network import RunRecorder

_UNSET = "-"
_MOST = "max_new_tokens"
_MOST_WORDS = 64
_MOST_CONSTANTS = 4  # of an example
_KEPT = 16  # compiled programs at a time
_FIRST = "pargen"

_SHOWN = 3  # examples
_MACHINE = (
    "from_state: right right right carry carry carry - - - - - -\n"
    "from_symbol: 0 1 _ 1 0 _ - - - - - -\n"
    "to_state: right right carry carry done done - - - - - -\n"
    "to_symbol: 0 1 _ 0 1 1 - - - - - -\n"
    "move: R R L L L L - - - - - -\n"
    "head: - - - - - - - 1 - - - -\n"
    "state: right right right right right right right right right right right right\n"
    f"{_MOST}: 0"
)
"""The increment of a binary number, (82)-(84)."""

_SWAP = "swap ( x , y ) -> y x ; twice ( x ) -> x x ;"
_EXAMPLES: dict[str, Sequence[Example]] = {
    "balanced": [Example("( a [ b ] )"), Example("( [ ) ]"), Example("{ ( ) [ ( ) ] } (")],
    "binary_addition": [Example("1 0 1 + 1 1"), Example("1 1 1 1 + 1"), Example("1 0 0 + 1 1 0 1")],
    "count": [Example("a b a c ? a"), Example("a a a a"), Example("one two three two one")],
    "induction": [
        Example("red green blue red", f"{_MOST}: 8"),
        Example("wug dax fep wug dax", f"{_MOST}: 4"),
        Example("a b a c a", f"{_MOST}: 4"),
    ],
    "majority": [Example("a b c b"), Example("a b b a"), Example("yes no yes yes no")],
    "nested_functions": [
        Example(f"{_SWAP} swap ( twice ( a b ) , swap ( c , d ) ) ->"),
        Example(f"{_SWAP} twice ( swap ( a , b ) ) ->"),
        Example("last ( x y ) -> y ; last ( a b ) ->"),
    ],
    "pargen": [
        Example("Q B V D E A D E V B . Q F G H V K L A"),
        Example("Q x V y A y Was V By x . Q u V w A"),
        Example("Q the dog saw a cat A a cat was seen Q my aunt saw the sea A"),
    ],
    "pargen_k_shot": [
        Example("Q a b V c A c V a b . Q d V e f A e f V d . Q g h V i A"),
        Example("Q x V y A y V x . Q u V w A"),
        Example("Q a V b A b V a . Q c V d A d V c . Q e V f A f V e . Q g V h i A"),
    ],
    "reverse": [Example("a b c"), Example("never odd or even"), Example("1 2 3 4 5 6")],
    "sort": [Example("a b c | c a b a"), Example("1 2 3 4 5 | 5 3 4 1 2"), Example("low high | high low high low")],
    "universal": [
        Example("# # # # # # _ 1 0 1 1 _", _MACHINE),
        Example("# # # # # # _ 1 1 1 1 _", _MACHINE),
        Example("# # # # # # _ 1 0 0 0 _", _MACHINE),
    ],
}
"""Of the package's programs; the first of PARGEN is (4) in letters, that of its k-shot version has two examples."""


class ProgramView(View):
    """See `View`. A source is a program of the package, a file of PSL, or a checkpoint; its text can be edited."""

    name = "Programs"
    about = "Every cell after every layer, the registers that changed, and the cell that was read."
    rank = 0
    model_types = ("dat",)
    source_label, text_label = "Program", "Prompt"
    settings_label = (
        f"Registers that the prompt sets: a line for each, a value for each word, {_UNSET} for none. "
        f"{_MOST}: at most so many words."
    )

    @property
    def sources(self) -> Sequence[str]:
        """The programs of the package; the one that the paper is about comes first."""
        from hf_mech.programs.psl.library import program_names

        return sorted(program_names(), key=lambda name: (name != _FIRST, name))

    def examples(self, source: str) -> Sequence[Example]:
        """Of another text than the package's: the prompts in its first comment, else its first constants."""
        from hf_mech.programs.psl.library import program_heading, program_text

        if source in _EXAMPLES or not source:
            return _EXAMPLES.get(source, ())
        recorder = self.recorder(source, self.written(source))
        text = "" if recorder.program is None else recorder.program.source
        same = (name for name in self.sources if program_text(name).strip() == text.strip())
        if (name := next(same, "")) in _EXAMPLES:
            return _EXAMPLES[name]
        prompts = [line.partition("->")[0].strip() for line in program_heading(text).splitlines() if "->" in line]
        constants = list(recorder.qkvl.constants_map.values())[:_MOST_CONSTANTS]
        found = list(filter(None, prompts)) or [" ".join(constants) or "a b c"]
        return [Example(prompt) for prompt in found[:_SHOWN]]

    def written(self, source: str) -> str:
        from hf_mech.programs.psl.library import program_text

        if source in self.sources:
            return program_text(source)
        path = Path(source)
        if path.suffix == ".psl" and path.is_file():
            return path.read_text(encoding="utf-8")
        return ""

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`.

        Raises:
            ProgramsError, DATError: the program or the prompt is refused.
        """
        from hf_mech.programs.psl.program_run import program_page

        recorder = self.recorder(source, self.written(source) if written is None else written)
        registers, most = read_settings(settings)
        return program_page(recorder.run(text, most, registers=registers))

    def recorder(self, source: str, written: str = "") -> RunRecorder:
        """The compiled program, from its text or from a checkpoint. It is kept for the next call."""
        if not written.strip():
            return _loaded(source)
        name = Path(source).stem or "program"
        own = written.strip() == self.written(source).strip()  # an editor may drop the last newline
        return _compiled(name if own else f"{name}, edited", written)


def read_settings(settings: str) -> tuple[Registers, int]:
    """The first values of registers, and the most words of a completion.

    Args:
        settings: lines `register: value value ...`, where `-` leaves a cell's register as it is, and
            `max_new_tokens: number`.

    Raises:
        ProgramsError: a line has another form, or a name has two lines.

    >>> read_settings("head: - 1 -")
    ({'head': [None, '1', None]}, 64)
    """
    lines: dict[str, list[str]] = {}
    for number, line in enumerate(settings.splitlines(), 1):
        name, colon, values = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or not name or name in lines:
            raise ProgramsError(
                f"line {number} of the registers must be `register: value value ...`, once for each register, got "
                f"{line!r}"
            )
        lines[name] = values.split()
    most = lines.pop(_MOST, [str(_MOST_WORDS)])
    if len(most) != 1 or not most[0].isascii() or not most[0].isdigit():
        raise ProgramsError(f"{_MOST} is one number, 0 or more, got {' '.join(most)!r}")
    registers = {name: [None if value == _UNSET else value for value in own] for name, own in lines.items()}
    return registers, int(most[0])


@lru_cache(_KEPT)
def _compiled(name: str, written: str) -> RunRecorder:
    from hf_mech.programs.psl.compile import compile_program
    from hf_mech.programs.psl.library import load_program
    from hf_mech.programs.psl.network import RunRecorder

    program = load_program(written, name)
    return RunRecorder(*compile_program(program), program, name)


@lru_cache(_KEPT)
def _loaded(source: str) -> RunRecorder:
    from transformers.utils import cached_file

    from hf_mech.models.dat.modeling_dat import DATForCausalLM
    from hf_mech.models.dat.tokenization_dat import DATTokenizer
    from hf_mech.programs.psl.compile import PROGRAM_FILE
    from hf_mech.programs.psl.library import load_program
    from hf_mech.programs.psl.network import RunRecorder

    place = located(source)
    try:
        model = DATForCausalLM.from_pretrained(place).eval()
        tokenizer = DATTokenizer.from_pretrained(place)
        path = cached_file(place, PROGRAM_FILE, _raise_exceptions_for_missing_entries=False)
    except OSError as error:
        raise not_loaded(source, error) from error
    program = None if path is None else load_program(Path(path).read_text(encoding="utf-8"), PROGRAM_FILE)
    return RunRecorder(model, tokenizer, program, Path(source).name)


VIEW = ProgramView()
