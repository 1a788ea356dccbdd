from .arithmetic.partial_results import BRACKETED as BRACKETED
from .batches import fresh_batch as fresh_batch
from .batches import test_batch as test_batch
from .collator import DataCollatorForFormalLanguages as DataCollatorForFormalLanguages
from .errors import (
    DatasetSettingsError as DatasetSettingsError,
)
from .errors import (
    FormalLanguageError as FormalLanguageError,
)
from .errors import (
    LayoutError as LayoutError,
)
from .errors import (
    TaskError as TaskError,
)
from .task import Examples as Examples
from .task import Task as Task
from .tasks import TASKS as TASKS
from .tokenizer import formal_language_tokenizer as formal_language_tokenizer
