"""Testing a language model on templatic generation: ask, store every reply, score (Sec. 4.2.2, App. H).

The folder of a run:

    run.json                 model, seed and system prompt; a run with other settings is refused
    answers/<variant>.jsonl  one line a prompt, written as soon as the reply arrives; the next run continues after them
    results.json             the figures, in the form of all results of hf_mech
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from hf_mech.hub.files import held, naming_the_path, write_text_atomically
from hf_mech.hub.redaction import redact
from hf_mech.probing.language_models import LanguageModel, Question
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.llm_test.report import Record, Score, accuracy, judge, score
from hf_mech.programs.llm_test.variants import Variant, prompts_of, system_prompt
from hf_mech.programs.templatic.grammar import Prompt


def evaluate(
    model: LanguageModel,
    variants: Iterable[Variant],
    folder: Path,
    *,
    prompts: int = 100,
    seed: int = 0,
    system: bool = True,
    progress: bool = True,
) -> list[Score]:
    """Ask the model the prompts of the variants, except those with an answer in the folder.

    Args:
        model: the tested model.
        variants: the variants of the task; a repeated one is asked once.
        folder: the run's folder; made if it is missing.
        prompts: number of prompts for each variant; a later run may use more.
        seed: of the prompts.
        system: put the system prompt of App. G first; a model made for this task needs none.
        progress: show a bar for each variant.

    Returns:
        One score a variant.

    Raises:
        ProgramsError: if the folder was begun with another model, seed or system prompt, its files were changed, or
            another process writes there now; if a variant has too few prompts, or `prompts` is less than 1.
        OutputError: if the folder cannot be written; earlier answers are kept.
        ProbingError: if the model fails at a question; earlier answers are kept, and the next run continues.
    """
    asked = {variant: prompts_of(variant, seed, prompts) for variant in variants}  # wrong ones are refused first
    with naming_the_path(folder), held(folder) as alone:
        if not alone:
            raise ProgramsError(f"Another process writes answers to {folder}. Wait for it, or choose another --out.")
        _claim(folder, {"model": model.settings(), "seed": seed, "system_prompt": system})
        answers = folder / "answers"
        answers.mkdir(exist_ok=True)
        scores = []
        for variant, wanted in asked.items():
            records = _ask(model, variant, wanted, answers / f"{variant.name}.jsonl", system, progress)
            scores.append(score(variant, records))
        return scores


def _ask(
    model: LanguageModel, variant: Variant, wanted: Sequence[Prompt], path: Path, system: bool, progress: bool
) -> list[Record]:
    """The records of all wanted prompts. The missing ones are asked for, and appended to the file."""
    records = _answered(path, wanted, model.group)
    missing = wanted[len(records) :]
    if not missing:
        return records[: len(wanted)]
    instruction = system_prompt(variant.grammar) if system else None
    questions = [Question(prompt.text, instruction) for prompt in missing]
    hidden = None if progress else True  # None hides the bar outside a terminal
    bar = tqdm(total=len(wanted), initial=len(records), desc=variant.name, unit="prompt", disable=hidden)
    with bar, path.open("a", encoding="utf-8") as file:
        before = time.monotonic()
        for prompt, reply in zip(missing, model.replies(questions), strict=True):
            now = time.monotonic()
            record = judge(len(records), prompt, reply, round(now - before, 3))
            file.write(json.dumps(asdict(record)) + "\n")
            file.flush()
            records.append(record)
            bar.update()
            bar.set_postfix(accuracy=f"{accuracy(records):.3f}", refresh=False)
            before = now
    return records


def _answered(path: Path, wanted: Sequence[Prompt], group: int) -> list[Record]:
    """The records in the file. An incomplete last line and an incomplete last group are removed from the file.

    Otherwise a model that answers in groups would answer the rest of a group separately, with different rounding.
    """
    if not path.exists():
        return []
    text = path.read_bytes().decode("utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    records = [_record(line, number, path) for number, line in enumerate(whole.split("\n")[:-1], 1)]
    for number, (record, prompt) in enumerate(zip(records, wanted, strict=False)):
        if (record.index, record.prompt, record.completion) != (number, prompt.text, prompt.completion):
            raise ProgramsError(
                f"Line {number + 1} of {path} answers another prompt, {record.prompt!r}, than {prompt.text!r}. The "
                "prompts have changed since it was written; choose another --out."
            )
    if len(records) >= len(wanted):
        return records
    kept = records[: len(records) // group * group]
    if len(kept) < len(records) or whole != text:
        write_text_atomically(path, "".join(line + "\n" for line in whole.split("\n")[: len(kept)]))
    return kept


def _record(line: str, number: int, path: Path) -> Record:
    try:
        return Record(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise ProgramsError(
            f"Line {number} of {path} is no answer of ours ({error}). Remove the file, or choose another --out."
        ) from error


def _claim(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings, without secrets, into a new folder; refuse a folder with other settings."""
    settings = redact(settings)
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "run.json"
    if note.exists():
        try:
            before = json.loads(note.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ProgramsError(f"{note} is no JSON ({error}). Remove {folder}, or choose another --out.") from error
        if before != settings:
            raise ProgramsError(
                f"{folder} was begun with other settings, {before}; asked for {settings}. Choose another --out."
            )
        return
    write_text_atomically(note, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
