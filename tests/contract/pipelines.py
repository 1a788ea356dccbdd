"""Which pipelines serve a model: those of transformers whose Auto class gives it, and those that it carries itself."""

from __future__ import annotations

from typing import Any

from transformers.pipelines import SUPPORTED_TASKS
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from .case import ContractCase
from .registry import registered_models

# A classifier of any kind serves it, but its labels have to be those of entailment.
SPECIAL = {"zero-shot-classification"}


def tasks(case: ContractCase, refused: bool = False) -> list[str]:
    """The tasks of text pipelines that load this model: none if it does not read tokens of a text.

    Those that its configuration refuses are among them only if asked for.
    """
    if "input_ids" not in case.arguments:
        return []
    auto_classes = registered_models()[case.model_class]
    return [
        task
        for task, entry in SUPPORTED_TASKS.items()
        if entry["type"] == "text"
        and task not in SPECIAL
        and (refused or task not in case.refused_tasks)
        and {auto.__name__ for auto in entry["pt"]} & {*auto_classes}
        if str(entry["impl"]).startswith("transformers.") or task in getattr(case.model_class, "_pipelines", ())
    ]


def request(task: str, text: str, tokenizer: PreTrainedTokenizerBase) -> Any:
    """The text as the pipeline of a task takes it."""
    if task == "infilling":
        return {"prefix": text, "suffix": f" {text}"}
    return f"{text} {tokenizer.mask_token}" if task == "fill-mask" else text


def options(task: str) -> dict[str, Any]:
    """Keyword arguments of a call, for outputs that can be compared."""
    if task == "text-generation":
        return {"max_new_tokens": 6, "do_sample": False, "return_full_text": False}
    return {"max_new_tokens": 6} if task in ("infilling", "template-completion") else {}
