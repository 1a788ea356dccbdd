"""A program in every machine and every backend: the same states of all cells after all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hf_mech.programs.psl import PSM, QKVM, compile_program, lower_program
from hf_mech.programs.psl.machine import Run, State
from hf_mech.programs.psl.network import DAT
from hf_mech.programs.psl.qkvl import QKVLProgram
from hf_mech.programs.psl.syntax import Program
from tests.programs.psl.random_programs import assert_same_runs


class Everywhere:
    """A program in the PSM, in the QKVM, and compiled, at `limit` positions."""

    def __init__(
        self, program: Program, limit: int, backends: Sequence[str] = ("gather", "dense"), **config: Any
    ) -> None:
        lowered = lower_program(program, limit)
        assert QKVLProgram.from_json(lowered.to_json()) == lowered
        self.machines = (PSM(program), QKVM(lowered))
        self.limit, self.backends = limit, backends
        self.model, self.tokenizer = compile_program(program, max_position_embeddings=limit, **config)

    def run(self, prompt: str | Sequence[str], max_new_tokens: int = 64) -> Run:
        """The one run that all of them make."""
        psm, qkvm = (
            machine.run(prompt, max_new_tokens=max_new_tokens, max_position_embeddings=self.limit)
            for machine in self.machines
        )
        assert_same_runs(psm, qkvm)
        for backend in self.backends:
            self.model.config.backend = backend
            assert_same_runs(psm, DAT(self.model, self.tokenizer).run(prompt, max_new_tokens))
        return psm


def final_cells(program: Program, prompt: str | Sequence[str], limit: int = 12) -> list[State]:
    """The prompt's cells after the last layer: in all machines and backends, the relaxed one at temperature 0, too."""
    machines = Everywhere(program, limit, ("gather", "dense", "relaxed"), num_open_values=16, relaxation_temperature=0)
    return machines.run(prompt, max_new_tokens=0).final
