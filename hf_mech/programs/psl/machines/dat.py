"""The compiled DAT, run and traced like the symbolic machines, for comparison with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from hf_mech.models.dat.dat_generation import DATCache
from hf_mech.models.dat.dat_program import NIL, UNSET, DATLengthError, DATRepeatError
from hf_mech.models.dat.dat_states import LayerState, trace_of
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.psl.language.errors import PromptTooLongError, RepeatBoundError
from hf_mech.programs.psl.machines.machine import Path, Registers, Run, Step, check_registers, words_of


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
            PromptError: there is no word, or registers are set that cannot be.
            PromptTooLongError: more words than the model has positions.
            RepeatBoundError: a repeat block does not end within its bound.
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
            raise PromptTooLongError(max(len(prompt) + len(completion), limit + 1), limit) from error
        except DATRepeatError as error:
            raise RepeatBoundError(0, error.bound) from error
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
