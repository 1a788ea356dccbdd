from .batches import DataCollatorForFormalLanguages as DataCollatorForFormalLanguages
from .batches import fresh_batch as fresh_batch
from .batches import test_batch as test_batch
from .partial_results import BRACKETED as BRACKETED
from .task import (
    DatasetSettingsError as DatasetSettingsError,
)
from .task import Examples as Examples
from .task import (
    FormalLanguageError as FormalLanguageError,
)
from .task import (
    LayoutError as LayoutError,
)
from .task import Task as Task
from .task import (
    TaskError as TaskError,
)
from .tasks import TASKS as TASKS
from .tokenizer import formal_language_tokenizer as formal_language_tokenizer
