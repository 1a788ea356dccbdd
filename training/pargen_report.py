"""From the parts of `run_pargen.py` to results.json, a picture and a card for each program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import yaml
from pargen_figure import parse_figure
from pargen_part import Outcome
from pargen_table import program_table
from rich.console import Console
from rich.markdown import Markdown
from run_folder import common_origin
from templatic_table import METRIC

from hf_mech.hub import Measurement, PaperFigure, Results, measurement, render_folder
from hf_mech.hub.files import write_text_atomically
from hf_mech.psl.library import read_program
from hf_mech.templatic.tasks import SPLITS, TASKS

DATASET = "hf_mech/templatic_generation"
_PAPERS_SPLITS = ("test", "ood_lexical", "ood_cons_len_7", "ood_cons_count_7")
_PAPERS = PaperFigure(1.0, None, "Sec. 7.2.4, the first 1,000 prompts")
_PICTURE = "swap.png"
_CAPTION = (
    "Swap, the paper's example, in all layers. Above, its cells when they are parsed, as (36) of the paper has them, "
    "and those of the completion, coloured by field; below, what each production wrote into which cell"
)
_ABOUT = {
    "pargen": """\
PARGEN (App. B of the paper), a program of {productions} productions in the Production System Language, compiled into a
Discrete-Attention-only Transformer: one attention layer a production, no parameter that was trained. It parses a prompt
of one example and a cue, and completes the answer in the example's way, with symbols that it has never seen.""",
    "pargen_k_shot": """\
PARGEN for prompts of any number of examples before the cue: {productions} productions in the Production System
Language, compiled into a Discrete-Attention-only Transformer, one attention layer a production, no parameter that was
trained. It is not the paper's, which has a program for one example: here the last example is used, since one determines
the completion (Sec. 4.1), and no layer is repeated, so that every prompt takes the same number of layers.""",
}
_SUMMARY = """\
{about}

Per cent of the prompts of `load_dataset("hf_mech/templatic_generation", task, seed={seed})` whose completion, made by
`generate()`, is right in every word and in its end:

{table}

{length} words in the longest prompt. Backend `gather`, one thread, batches of up to {batch} prompts.
"""
_USAGE = """\
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}", trust_remote_code=True)
model = AutoModelForCausalLM.from_pretrained("{name}", trust_remote_code=True)
prompt = tokenizer("Q blick V dax A dax was V -en by blick . Q my old cat V the mouse A", return_tensors="pt")
said = model.generate(**prompt, max_new_tokens=20)[0, prompt["input_ids"].shape[1] :]
print(tokenizer.decode(said, skip_special_tokens=True))  # the mouse was V -en by my old cat . Q
```

`hf-mech compile {program} -o {name}` makes this checkpoint.
"""
_LIMITATIONS = """\
{scope}
They must be of the class of (32): no symbol in two fields of a question or answer, no field twice in one. What becomes
of others is not defined. The runs above had room for {positions} words in a prompt and its completion, and for
{words} different words; compile the program anew for more. The weights are the program: changed by training, they run
on the backends `dense` and `relaxed` only.
"""
_SCOPE = {
    "pargen": "Prompts of one example and a cue.",
    "pargen_k_shot": "Prompts of one example or more and a cue; examples before the last are not read.",
}
_CITATION = """\
@article{smolensky2024mechanisms,
  title   = {Mechanisms of Symbol Processing for In-Context Learning in Transformer Networks},
  author  = {Smolensky, Paul and Fernandez, Roland and Zhou, Zhenghao Herbert and Opper, Mattia and Davies, Adam and
             Gao, Jianfeng},
  journal = {arXiv preprint arXiv:2410.17498},
  year    = {2024}
}"""


def outcomes_of(output_dir: Path, program: str) -> list[Outcome]:
    """Every part of a program that is there, in the order of Table 1.

    Raises:
        ValueError: the parts are of different texts of the program or of different seeds, or two share a prompt.
    """
    found = [Outcome.load(file) for file in (output_dir / program).glob("*/*/*.json")]
    tasks, splits = list(TASKS), list(SPLITS)
    found.sort(key=lambda o: (tasks.index(o.part["task"]), splits.index(o.part["split"]), o.part["start"]))
    for name, values in (
        ("texts of the program", {outcome.program_digest for outcome in found}),
        ("seeds", {outcome.part["seed"] for outcome in found}),
    ):
        if len(values) > 1:
            raise ValueError(f"The parts of {program} in {output_dir} are of {len(values)} {name}; keep one.")
    for before, after in pairwise(found):
        same = all(before.part[name] == after.part[name] for name in ("task", "split"))
        if same and after.part["start"] < before.part["stop"]:
            raise ValueError(f"Two parts in {output_dir} share prompts: {before.part} and {after.part}; remove one.")
    return found


def measurements(outcomes: Iterable[Outcome]) -> list[Measurement]:
    """One figure a task and split, over all of its prompts that were run."""
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.part["task"], outcome.part["split"]), []).append(outcome)
    measured = []
    for (task, split), parts in cells.items():
        program = parts[0].part["program"]
        prompts, exact = sum(part.prompts for part in parts), sum(part.exact for part in parts)
        paper = _PAPERS if (program, task) == ("pargen", "1_shot_rlw") and split in _PAPERS_SPLITS else None
        setting = {"program": program, "split": split, "prompts": prompts}
        measured.append(measurement(DATASET, task, setting, METRIC, [exact / prompts], paper))
    return measured


def write_card(outcomes: Sequence[Outcome], cards_dir: Path) -> Path:
    """Writes `cards_dir/dat-<program>/` whole: results.json, the picture, card.yaml, README.md.

    Args:
        outcomes: of one program, at least one.
        cards_dir: the folder of all cards.
    """
    program = outcomes[0].part["program"]
    folder = cards_dir / card_name(program)
    folder.mkdir(parents=True, exist_ok=True)
    measured = measurements(outcomes)
    Results(
        name=folder.name,
        **common_origin(outcome.origin for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
        results=measured,
    ).save(folder / "results.json")
    parse_figure(program).savefig(folder / _PICTURE, dpi=130)
    text = {
        "title": f"{program}: a program as a transformer",
        "model_class": "DATForCausalLM",
        "summary": _SUMMARY.format(
            about=_ABOUT[program].format(productions=len(list(read_program(program).productions))),
            seed=outcomes[0].part["seed"],
            table=program_table(measured),
            length=max(outcome.longest for outcome in outcomes),
            batch=f"{max(outcome.part['batch_size'] for outcome in outcomes):,}",
        ),
        "usage": _USAGE.format(name=folder.name, program=program),
        "limitations": _LIMITATIONS.format(
            scope=_SCOPE[program],
            positions=f"{max(o.part['max_position_embeddings'] for o in outcomes):,}",
            words=f"{max(o.part['num_open_values'] for o in outcomes):,}",
        ),
        "citation": _CITATION,
        "tags": ["hf_mech", "templatic-generation", "in-context-learning", "compiled-program"],
        "task": "text-generation",
        "captions": {_PICTURE: _CAPTION},
    }
    write_text_atomically(folder / "card.yaml", yaml.safe_dump(text, sort_keys=False, allow_unicode=True, width=116))
    render_folder(folder)
    return folder


def card_name(program: str) -> str:
    """`dat-` and the program's name."""
    return f"dat-{program.replace('_', '-')}"


def print_table(outcomes: Sequence[Outcome]) -> None:
    """The table in the terminal, and the first wrong completions if there are any."""
    console = Console(width=180)
    console.print(Markdown(program_table(measurements(outcomes))))
    for outcome in outcomes:
        for wrong in outcome.wrong:
            where = f"{outcome.part['task']} {outcome.part['split']} {wrong['index']}"
            console.print(
                f"{where}: {wrong['prompt']}\n  expected {wrong['expected']}\n  got {wrong['got']}", markup=False
            )
