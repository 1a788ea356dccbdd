"""The compiled network on one prompt: as a machine beside the symbolic ones, and recorded for the explorer's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from textwrap import dedent

import torch

from hf_mech.models.dat.dat_generation import DATCache
from hf_mech.models.dat.dat_layer import DATLayer, DATProjection
from hf_mech.models.dat.dat_program import NIL, UNSET, DATLengthError, DATRepeatError, Operand
from hf_mech.models.dat.dat_states import LayerState, trace_of
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.errors import ProgramsError, endless_repeat, too_many_words
from hf_mech.programs.psl.machine import Path, Registers, Run, Step, check_registers, words_of
from hf_mech.programs.psl.program_run import (
    Attribute,
    CellGroup,
    LayerStep,
    ProgramLayer,
    ProgramRun,
    Register,
    Row,
    State,
    WeightBlock,
)
from hf_mech.programs.psl.qkvl import QKVLHeads, QKVLProgram
from hf_mech.programs.psl.syntax import Production, Program

# ----------------------------------------------------------------------------------------------------------------------
# The compiled DAT, run and traced like the symbolic machines, for comparison with them.


class DAT:
    """A compiled program as a machine, for comparison with [`PSM`] and [`QKVM`]. One prompt at a time.

    Args:
        model, tokenizer: from `compile_program` or from a checkpoint.
    """

    def __init__(self, model: DATForCausalLM, tokenizer: DATTokenizer):
        self.model, self.tokenizer = model, tokenizer
        qkvl = model.config.qkvl or {}
        self.names = {short: name for name, short in qkvl["register_map"].items()}
        self.prompt = [self.names[short] for short in qkvl.get("prompt", ())]
        self.values = {self.names[short]: values for short, values in qkvl.get("values", {}).items()}

    @torch.no_grad()
    def run(self, words: Sequence[str] | str, max_new_tokens: int = 64, *, registers: Registers | None = None) -> Run:
        """The completion of a prompt and the states of all cells after all layers, as in `Machine.run`.

        Raises:
            ProgramsError: there is no word, or registers are set that cannot be; more words than the model has
                positions; a repeat block does not end within its bound.
        """
        prompt = words_of(words)
        check_registers(registers or {}, len(prompt), self.prompt, self.values)
        ids = self.tokenizer.convert_tokens_to_ids(prompt)
        cache, completion = DATCache(), list[str]()
        tokens = torch.tensor([[*ids, self.model.config.eop_token_id]], device=self.model.device)
        first = self._first_values(registers or {}, tokens)
        try:
            while True:
                said = self._read(tokens, cache, first)
                if said == NIL or len(completion) == max_new_tokens:
                    break
                completion.append(self.tokenizer.convert_ids_to_tokens(said))
                if len(completion) == max_new_tokens:
                    break
                tokens, first = tokens.new_tensor([[said]]), None
        except DATLengthError as error:
            limit = self.model.config.max_position_embeddings
            raise too_many_words(max(len(prompt) + len(completion), limit + 1), limit) from error
        except DATRepeatError as error:
            raise endless_repeat(0, error.bound) from error
        dat = self.model.dat
        traces = [trace_of(dat.program, group, dat.embedding(tokens.device)) for group in cache.history.groups]
        return Run(completion, [list(self._steps(trace)) for trace in traces])

    def _first_values(self, registers: Registers, tokens: torch.Tensor) -> torch.Tensor | None:
        """`register_values` of the model, [1, length, registers]; None if the prompt sets none."""
        if not registers:
            return None
        names = [self.names[short] for short in self.model.dat.program.registers]
        values = tokens.new_full((1, tokens.shape[1], len(names)), UNSET)
        for register, own in registers.items():
            known = [None if value is None else self.tokenizer.convert_tokens_to_ids(value) for value in own]
            for cell, value in enumerate(known):
                values[0, cell, names.index(register)] = UNSET if value is None else value
        return values

    def _read(self, tokens: torch.Tensor, cache: DATCache, first: torch.Tensor | None) -> int:
        """Reads tokens into the cache and returns the word after them; nil at the end, also for a stop word."""
        output = self.model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1, register_values=first)
        return int(output.logits[0, -1].argmax())

    def _steps(self, trace: list[LayerState]) -> Iterator[Step]:
        registers = [self.names[short] for short in self.model.dat.program.registers]
        for state in trace:
            path = Path(0) if state.layer is None else Path(state.layer + 1, tuple(r + 1 for r in state.repetitions))
            cells = tuple(
                {name: self._word(value) for name, value in zip(registers, cell, strict=True)}
                for cell in state.values[0].tolist()
            )
            yield Step(path, cells)

    def _word(self, value: int) -> str | None:
        return None if value == NIL else self.tokenizer.convert_ids_to_tokens(value)


# ----------------------------------------------------------------------------------------------------------------------
# The run of a compiled program on one prompt as the data of the explorer's page.


class RunRecorder:
    """Runs a compiled program on prompts and keeps every state and every read cell.

    Args:
        model, tokenizer: from `compile_program` or from a checkpoint. The backend is the model's own.
        program: the program as it was written, for the text of its productions; None if it is not known.
        name: its name on the page.

    Raises:
        ProgramsError: a layer has several heads.

    Example:

    ```python
    >>> from hf_mech.programs.psl import compile_program, load_program, program_text
    >>> program = load_program(program_text("pargen"))
    >>> run = RunRecorder(*compile_program(program), program, "pargen").run("Q x y A y x Q z y A")
    >>> run.completion, run.groups[0].steps[-1].cells[4]["field"]
    (['y', 'z'], '3')

    ```
    """

    def __init__(
        self, model: DATForCausalLM, tokenizer: DATTokenizer, program: Program | None = None, name: str = "program"
    ) -> None:
        self.model, self.tokenizer, self.program, self.name = model, tokenizer, program, name
        self.qkvl = QKVLProgram.from_json(model.config.qkvl)
        if any(isinstance(layer, QKVLHeads) for layer in self.qkvl.layers):
            raise ProgramsError(
                "the explorer shows one production a layer, got layers of several heads; compile without heads"
            )
        self._short_names = {short: name for name, short in self.qkvl.register_map.items()}

    @property
    def prompt_registers(self) -> list[str]:
        """The names of the registers that a prompt may set."""
        return [self._short_names[short] for short in self.qkvl.prompt]

    @torch.no_grad()
    def run(self, words: str, max_new_tokens: int = 64, *, registers: Registers | None = None) -> ProgramRun:
        """Runs one prompt.

        Args:
            words: the prompt.
            max_new_tokens: the most words of the completion, if the program does not end it.
            registers: first values of registers that the program lets a prompt set, one for every word.

        Raises:
            ProgramsError: there is no word, or registers are set that cannot be.
            DATError: a prompt is too long, has too many new words, or a repeat block does not end.
        """
        prompt = words_of(words)
        values = {self._short_names[short]: own for short, own in self.qkvl.values.items()}
        check_registers(registers or {}, len(prompt), self.prompt_registers, values)
        given = {name: list(own) for name, own in (registers or {}).items()}
        batch = self.tokenizer(words, return_tensors="pt", **({"registers": given} if given else {}))
        batch = batch.to(self.model.device)
        said = batch["input_ids"]
        if max_new_tokens:
            said = self.model.generate(**batch, max_new_tokens=max_new_tokens)
        new = said[0, batch["input_ids"].shape[1] :].tolist()
        completion = self.tokenizer.convert_ids_to_tokens(new[: new.index(NIL)] if NIL in new else new)
        if NIL not in new and new:
            said = said[:, :-1]  # the last word's cell decides nothing, and may not end: a bound has cut the completion
        groups = self.model.dat.trace(said, register_values=batch.get("register_values"), reads=True)
        written = self._words(groups)
        return ProgramRun(
            program=self.name,
            text="" if self.program is None else self.program.source,
            prompt=prompt,
            completion=completion,
            ended=NIL in new,
            symbol=self.qkvl.system_map["symbol"],
            position=self.qkvl.system_map["position"],
            registers=self.registers,
            layers=self.layers,
            groups=[self._group(group, written) for group in groups],
            qkvl=self.qkvl.to_json(),
            sizes=self.sizes,
        )

    def _words(self, groups: Sequence[Sequence[LayerState]]) -> dict[int, str | None]:
        """The values in any register of any cell."""
        ids = {value for group in groups for state in group for value in state.values.unique().tolist()}
        return {value: None if value == NIL else self.tokenizer.convert_ids_to_tokens(value) for value in ids}

    def _group(self, states: Sequence[LayerState], words: Mapping[int, str | None]) -> CellGroup:
        first, *after = states
        return CellGroup(self._cells(first, words), [self._step(state, words) for state in after])

    def _step(self, state: LayerState, words: Mapping[int, str | None]) -> LayerStep:
        assert state.layer is not None
        assert state.reads is not None
        found, read = state.reads[0, 0].max(-1)
        reads = [n if weight else None for weight, n in zip(found.tolist(), read.tolist(), strict=True)]
        row = Row(state.layer + 1, tuple(repetition + 1 for repetition in state.repetitions))
        return LayerStep(row, self._cells(state, words), reads)

    def _cells(self, state: LayerState, words: Mapping[int, str | None]) -> list[State]:
        names = [self._short_names[short] for short in self.model.dat.program.registers]
        return [dict(zip(names, map(words.get, cell), strict=True)) for cell in state.values[0].tolist()]

    # ------------------------------------------------------------------------------------------------- the program

    @cached_property
    def registers(self) -> list[Register]:
        """The registers: first those that the program watches, then the others, in the order of its text."""
        short_names = self.qkvl.register_map  # a configuration sorts it
        order = list(short_names if self.program is None else self.program.registers)
        watched = self.qkvl.watch_list or tuple(order)
        names = dict.fromkeys([*watched, *order])
        return [Register(name, short_names[name], name in watched) for name in names]

    @property
    def sizes(self) -> dict[str, int]:
        """The network's sizes, (66)-(68)."""
        config = self.model.config
        return {
            "registers": config.num_registers,
            "values of a register": config.vocab_size,
            "width of a cell": config.hidden_size,
            "layers": config.num_hidden_layers,
            "weights in blocks that are not zero": self.model.num_parameters(),
        }

    @cached_property
    def layers(self) -> list[ProgramLayer]:
        """The productions with their text, their QKVL and their weights."""
        written: list[Production | None] = [None] * len(self.model.dat.layers)
        if self.program is not None:
            written = list(self.program.productions)
        layers = []
        for number, (rule, module, source) in enumerate(
            zip(self.qkvl.productions, self.model.dat.layers, written, strict=True), start=1
        ):
            assert isinstance(module, DATLayer)
            text, line = ("", 0) if source is None or self.program is None else _text(self.program, source)
            blocks = self._blocks(module)
            layers.append(ProgramLayer(number, rule.layer_comment, text, line, rule.to_json(), blocks))
        return layers

    def _blocks(self, layer: DATLayer) -> list[WeightBlock]:
        targets = [match.target for match in layer.layer.matches]
        registers = self.model.dat.program.registers
        written = [registers[index] for index, _ in layer.layer.writes]
        return [
            *self._projection("query", targets, layer.query),
            *self._projection("key", targets, layer.key),
            *self._projection("value", written, layer.value),
        ]

    def _projection(self, attribute: Attribute, targets: Sequence[str], module: DATProjection) -> list[WeightBlock]:
        registers = self.model.dat.program.registers
        return [
            WeightBlock(
                attribute,
                target,
                None if operand.register is None else registers[operand.register],
                self._matrix(operand),
                scale,
                shift,
            )
            for target, operand, (scale, shift) in zip(targets, module.operands, module.weight.tolist(), strict=True)
        ]

    def _matrix(self, operand: Operand) -> str:
        if operand.register is not None:
            return operand.function or "I"
        return ", ".join(self.tokenizer.convert_ids_to_tokens(list(operand.values)))


def _text(program: Program, production: Production) -> tuple[str, int]:
    """A production's PSL without the indentation, and its first line."""
    first = production.place.line
    last = max((assignment.place.line for assignment in production.assignments), default=first)
    return dedent("\n".join(program.source.split("\n")[first - 1 : last])), first
