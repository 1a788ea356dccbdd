"""Formal languages: Delétang et al.'s tasks, their tokenizer, and batches in the layouts of the paper."""

from typing import TYPE_CHECKING

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "batches": ["fresh_batch", "test_batch"],
        "collator": ["DataCollatorForFormalLanguages"],
        "errors": ["DatasetSettingsError", "FormalLanguageError", "LayoutError", "TaskError"],
        "arithmetic.partial_results": ["BRACKETED"],
        "task": ["Dice", "Examples", "Task"],
        "tasks": ["TASKS"],
        "tokenizer": ["formal_language_tokenizer"],
    },
)

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .arithmetic.partial_results import BRACKETED as BRACKETED
    from .batches import fresh_batch as fresh_batch
    from .batches import test_batch as test_batch
    from .collator import DataCollatorForFormalLanguages as DataCollatorForFormalLanguages
    from .errors import DatasetSettingsError as DatasetSettingsError
    from .errors import FormalLanguageError as FormalLanguageError
    from .errors import LayoutError as LayoutError
    from .errors import TaskError as TaskError
    from .task import Dice as Dice
    from .task import Examples as Examples
    from .task import Task as Task
    from .tasks import TASKS as TASKS
    from .tokenizer import formal_language_tokenizer as formal_language_tokenizer
