"""Language models with and without a stack: Table 3 of the stack attention paper."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from hf_mech.hub.files import held
from hf_mech.languages.corpora import Corpus, file_corpus, hub_corpus, prepare, stdlib_corpus, train_tokenizer

from ..engine import Experiment, Options, Request, SettingsError
from ..engine.own_data import READERS, reader_of
from ..engine.runner import processes
from ..engine.settings import check_names
from . import report
from .run import RunOutcome, data_folder, train_run
from .settings import STACK_OPTIONS, Data, Run

_NO_STACK = dict.fromkeys(STACK_OPTIONS)
"""Replaces options that say nothing of a model."""


@dataclass(kw_only=True)
class LanguageModelOptions(Options):
    """Options of the language models besides those of every experiment: the corpus, and what is trained on it."""

    corpus: str | None = field(default=None, metadata={"help": "stdlib: the sources of Python's standard library"})
    dataset_name: str | None = field(
        default=None, metadata={"help": "a folder or a data set on the Hub, with a column `text` or `sentence`"}
    )
    dataset_config_name: str | None = field(default=None, metadata={"help": "its configuration"})
    dataset_revision: str | None = field(default=None, metadata={"help": "its branch, such as refs/convert/parquet"})
    train_file: list[str] = field(
        default_factory=list,
        metadata={"help": "text files, each a document; or JSON lines, CSV or Parquet with such a column"},
    )
    validation_file: list[str] = field(default_factory=list, metadata={"help": "of the same kind"})
    test_file: list[str] = field(default_factory=list, metadata={"help": "of the same kind"})
    use_stack: list[str] = field(
        default_factory=lambda: ["false", "true"],
        metadata={"help": "false: vanilla; true: stack; between: stacks between the layers, a baseline; or several"},
    )
    stack_gate: list[str] = field(
        default_factory=lambda: ["false"], metadata={"help": "of the stack: off, on, or both"}
    )
    scratch: bool = field(default=True, metadata={"help": "train models with new weights"})
    pretrain: bool = field(
        default=False,
        metadata={"help": "train a stock vanilla model on the pretraining part and fine-tune it in every form"},
    )
    pretraining_epochs: int | None = field(default=None, metadata={"help": "the epochs of that model"})
    model_name_or_path: str | None = field(
        default=None, metadata={"help": "fine-tune this stock or stack checkpoint, and nothing from scratch"}
    )
    tokenizer_name: str | None = field(
        default=None, metadata={"help": "of a checkpoint; otherwise one is trained on the training split"}
    )

    def check(self, objectives: Sequence[str]) -> None:
        """Raises SettingsError if the options do not go together."""
        if sum(map(bool, [self.corpus, self.dataset_name, self.train_file])) != 1:
            raise SettingsError("Name one corpus: --corpus stdlib, --dataset_name, or --train_file and its companions.")
        if self.corpus not in (None, "stdlib"):
            raise SettingsError(f"--corpus must be 'stdlib', got {self.corpus!r}; for other text, --train_file.")
        if self.train_file and not (self.validation_file and self.test_file):
            raise SettingsError("--train_file goes with --validation_file and --test_file.")
        check_names(self.use_stack, ("true", "false", "between"), "--use_stack")
        check_names(self.stack_gate, ("true", "false"), "--stack_gate")
        if self.pretrain and self.corpus is None:
            raise SettingsError("--pretrain needs --corpus stdlib, which has a part for it.")
        if self.pretrain and self.model_name_or_path:
            raise SettingsError("--pretrain makes its own checkpoint; leave out --model_name_or_path.")
        if self.model_name_or_path and len(objectives) > 1:
            raise SettingsError("--model_name_or_path has one objective; name it: --objective clm or mlm.")

    @property
    def forms(self) -> list[str]:
        """Of `vanilla`, `stack`, `gated` and `between`, those that --use_stack and --stack_gate name."""
        stacks = [{"false": "stack", "true": "gated"}[gate] for gate in self.stack_gate]
        meant = {"false": ["vanilla"], "true": stacks, "between": ["between"]}
        return [form for use in self.use_stack for form in meant[use]]


class LanguageModelsExperiment(Experiment[Run, RunOutcome]):
    """A run is one objective, start, form and seed on one corpus."""

    name = "lm"
    paper = "li2024stack"
    settings = Run
    outcome = RunOutcome
    shared = (Data,)
    options = LanguageModelOptions
    seeds = 5
    shares_runs = True
    train = staticmethod(train_run)
    report = report

    def stages(self, request: Request[LanguageModelOptions]) -> Iterable[Sequence[Run]]:
        """First the runs that others begin with, then the others, seed by seed."""
        options, objectives = request.options, request.axes["objective"]
        options.check(objectives)
        first: list[Run] = []
        rest: list[Run] = []
        for preset in request.presets:
            settings = Data.of(preset, request.overrides)
            with processes().main_process_first():  # the others find it done
                data = prepared_data(options, settings).name
            begun = {}
            for objective in objectives if options.pretrain else []:
                overrides = {**request.overrides, **_NO_STACK, "epochs": options.pretraining_epochs}
                begun[objective] = Run.of(
                    preset,
                    overrides,
                    objective=objective,
                    start="pretraining",
                    form="vanilla",
                    seed=request.seeds[0],
                    data=data,
                )
            first += begun.values()
            starts = {
                "scratch": options.scratch and not options.model_name_or_path,
                "pretrained": options.pretrain,
                "checkpoint": options.model_name_or_path is not None,
            }
            rest += [
                Run.of(
                    preset,
                    {**request.overrides, **({} if form in ("stack", "gated") else _NO_STACK)},
                    objective=objective,
                    start=start,
                    form=form,
                    seed=seed,
                    data=data,
                    checkpoint={
                        "scratch": None,
                        "pretrained": Path(begun[objective].name).name if objective in begun else None,
                        "checkpoint": options.model_name_or_path,
                    }[start],
                )
                for seed in request.seeds
                for start in (start for start, wanted in starts.items() if wanted)
                for objective in objectives
                for form in options.forms
            ]
        return [first, rest]

    def reads(self, settings: Run) -> Iterable[str]:
        """The data, and the model that it begins with."""
        begun = [f"{Path(settings.name).parent}/{settings.checkpoint}"] if settings.start == "pretrained" else []
        return [data_folder("", settings.data).as_posix(), *begun]

    def chosen_by(self, settings: Run) -> dict[str, Any]:
        """A run from pretrained weights makes them first."""
        begun = settings.start in ("pretrained", "pretraining")
        use = {"vanilla": "false", "between": "between"}.get(settings.form, "true")
        gate = str(settings.form == "gated").lower()
        return {"use_stack": use, "stack_gate": gate, "pretrain": begun, "scratch": not begun}

    def shares_card(self, settings: Run) -> Hashable:
        return settings.data, settings.preset


def corpus_of(options: LanguageModelOptions, settings: Data) -> Corpus:
    """Reads the corpus that the options name."""
    most = settings.max_train_characters
    if options.corpus:
        return stdlib_corpus(max_characters=most)
    if options.dataset_name:
        return hub_corpus(
            options.dataset_name, options.dataset_config_name, revision=options.dataset_revision, max_characters=most
        )
    files = {"train": options.train_file, "validation": options.validation_file, "test": options.test_file}
    paths = [path for own in files.values() for path in own]
    if Path(paths[0]).suffix in READERS:
        return hub_corpus(reader_of(paths), data_files=files, max_characters=most)
    return file_corpus(files, max_characters=most)


def prepared_data(options: LanguageModelOptions, settings: Data) -> Path:
    """The folder of the blocks and the tokenizer, made if it is not there (and not in a dry run)."""
    corpus = corpus_of(options, settings)
    tokenizer_name = options.tokenizer_name or options.model_name_or_path
    identity = {
        "digest": corpus.digest,
        "tokenizer": tokenizer_name or settings.vocabulary,
        "pretraining": settings.max_pretraining_characters,
        "evaluation": settings.max_evaluation_blocks,
    }
    folder = data_folder(options.output_dir, hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12])
    if not options.dry_run and not (folder / "prepared.json").exists():
        with held(folder, wait=True):  # another command may be preparing it
            if not (folder / "prepared.json").exists():
                _prepare(corpus, tokenizer_name, folder, settings)
    return folder


def _prepare(corpus: Corpus, tokenizer_name: str | None, folder: Path, settings: Data) -> None:
    if tokenizer_name:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_name)
    else:
        tokenizer = train_tokenizer(corpus.splits["train"], settings.vocabulary)
    prepare(
        corpus,
        tokenizer,
        folder,
        documents=settings.vocabulary is None,
        max_pretraining_characters=settings.max_pretraining_characters,
        max_evaluation_blocks=settings.max_evaluation_blocks,
    )


EXPERIMENT = LanguageModelsExperiment()
