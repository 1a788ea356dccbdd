"""The command `hf-mech kernel`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SUMMARY = "Stack attention (Li, White, Sachan and Cotterell, 2024), forward and backward, on the CPU and in Triton."
_ERROR = '''"""The error of this kernel."""


class StackError(ValueError):
    """Actions, shapes or starts that do not fit; the text says what to do."""
'''
_TEST = '''"""The fast form against the equations, in value and gradient."""

from pathlib import Path

import pytest
import torch
from kernels import get_local_kernel

kernel = get_local_kernel(Path(__file__).parents[1])
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pops", [1, 2])
def test_values_and_gradients(device, pops):
    actions = torch.randn(3, 40, 2 + pops, device=device).softmax(-1).requires_grad_()
    start, grad = torch.tensor([0, 3, 39], device=device), torch.randn(3, 40, 40, device=device)
    fast, slow = (f(actions, start=start) for f in (kernel.stack_attention, kernel.stack_attention_reference))
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5)
    gradients = [torch.autograd.grad(alpha, actions, grad)[0] for alpha in (fast, slow)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
'''


def write_stack_kernel(
    folder: Annotated[
        Path, typer.Argument(file_okay=False, metavar="FOLDER", help="A new folder.", show_default=False)
    ],
    repo_id: Annotated[str, typer.Option(help="The repository's name on the Hub, for its card.")] = (
        "hf_mech/stack-attention"
    ),
) -> None:
    """Write stack attention to FOLDER as a repository of the Hub's `kernels` library."""
    from hf_mech import models
    from hf_mech.hub.kernels import write_kernel

    stems = ("stack_attention", "stack_kernel_cpu", "stack_kernel_triton", "stack_levels")
    sources = Path(next(iter(models.__path__))) / "stack"
    write_kernel(
        folder,
        [sources / f"{stem}.py" for stem in stems],
        name="stack-attention",
        summary=SUMMARY,
        exports={
            "stack_attention": ("read_stack", "stack_attention", "stack_attention_reference"),
            "stack_levels": ("Levels",),
        },
        written={"configuration_stack.py": _ERROR},
        test=_TEST,
        repo_id=repo_id,
    )
    typer.echo(f"{folder}: load it with kernels.get_local_kernel, test it with pytest {folder / 'tests'}")
