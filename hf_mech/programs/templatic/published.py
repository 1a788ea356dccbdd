"""The authors' own data set on the Hub, with the columns of `hf_mech/templatic_generation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hf_mech.programs.templatic.errors import TaskError
from hf_mech.programs.templatic.tasks import task_named

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

PUBLISHED = "microsoft/templatic_generation_tasks"  # the paper's note 9
# Our name first, then the column name in the authors' testing code.
_COLUMNS = {"prompt": ("prompt", "text"), "completion": ("completion", "label"), "info": ("info", "annotation")}


def load_published(task: str, path: str = PUBLISHED, **kwargs: Any) -> Dataset | DatasetDict:
    """A task of the published data set.

    Args:
        task: its name in Table 1.
        path: the data set on the Hub, or a folder with a copy of it.
        kwargs: for `datasets.load_dataset`, such as `split="test"` or `streaming=True`.

    Returns:
        The result of `load_dataset`, with the columns `prompt`, `completion` and `info`.

    Raises:
        TaskError: no such task, or a data set with other columns.
    """
    from datasets import load_dataset

    rows = load_dataset(path, task_named(task).name, **kwargs)
    first = next(iter(rows.values())) if isinstance(rows, dict) else rows
    names = first.column_names
    renamed = {}
    for ours, theirs in _COLUMNS.items():
        found = [name for name in theirs if name in names]
        if not found:
            raise TaskError(f"The data set {path!r} must have a column {' or '.join(theirs)}, got {', '.join(names)}.")
        if found[0] != ours:
            renamed[found[0]] = ours
    return rows.rename_columns(renamed).select_columns(list(_COLUMNS))
