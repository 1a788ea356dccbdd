"""Language models of nested texts: rows, families and forms, measurements of models that know everything or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from datasets import Dataset
from torch import Tensor, nn

from hf_mech.hub import measurement
from hf_mech.languages.corpora import rows_of, train_tokenizer
from hf_mech.languages.nested_text import generate
from hf_mech.languages.task import LanguagesError
from training.engine import SettingsError
from training.language_models.models import new_model
from training.language_models.nested import CLOSES, ENDS, MAIN_MOVES, PARSES, complete, measure
from training.language_models.report import depth_figure, nested_table
from training.language_models.settings import Run

COUNT = 60


def prepared(name: str) -> tuple[Any, Dataset, Dataset]:
    texts = {split: [row.text for row in generate(name, split, stop=COUNT)] for split in ("train", "test", "beyond")}
    tokenizer = train_tokenizer([text for own in texts.values() for text in own], None)
    test, beyond = (Dataset.from_dict({"input_ids": rows_of(texts[split], tokenizer)}) for split in ("test", "beyond"))
    return tokenizer, test, beyond


class Oracle(nn.Module):
    """Knows the next token of some rows; of other texts, that they end."""

    device = torch.device("cpu")

    def __init__(self, tokenizer: Any, *splits: Dataset) -> None:
        super().__init__()
        self.known = {}
        for ids in [row for split in splits for row in split["input_ids"]]:
            for place in range(1, len(ids)):
                self.known[tuple(ids[:place])] = ids[place]
        self.tokenizer = tokenizer

    def forward(self, input_ids: Tensor, use_cache: bool) -> Any:
        logits = torch.zeros(*input_ids.shape, len(self.tokenizer))
        for row, ids in enumerate(input_ids.tolist()):
            for place in range(len(ids)):
                logits[row, place, self.known.get(tuple(ids[: place + 1]), self.tokenizer.eos_token_id)] = 99
        return SimpleNamespace(logits=logits)


class Ignorant(nn.Module):
    """Always says the same token."""

    device = torch.device("cpu")

    def __init__(self, vocabulary: int, token: int) -> None:
        super().__init__()
        self.vocabulary, self.token = vocabulary, token

    def forward(self, input_ids: Tensor, use_cache: bool) -> Any:
        said = torch.full(input_ids.shape, self.token)
        return SimpleNamespace(logits=99.0 * nn.functional.one_hot(said, self.vocabulary))


def test_who_knows_the_text_is_right_at_every_depth() -> None:
    tokenizer, test, beyond = prepared("json")
    found = measure(Oracle(tokenizer, test, beyond), tokenizer, "json", test, beyond, seed=0)  # type: ignore[arg-type]
    assert list(found) == [CLOSES, ENDS, PARSES]
    assert all(list(shares) == list("12345678") for shares in found.values())
    assert {share for shares in found.values() for share in shares.values()} == {1.0}


def test_who_knows_one_bracket_closes_some() -> None:
    tokenizer, test, beyond = prepared("json")
    for token, ends in (("}", 0.0), (tokenizer.eos_token, 1.0)):
        model: Any = Ignorant(len(tokenizer), tokenizer.convert_tokens_to_ids(token))
        found = measure(model, tokenizer, "json", test, beyond, seed=0)
        assert set(found[ENDS].values()) == {ends}
        assert all((0 < share < 1) != bool(ends) for share in found[CLOSES].values())
        assert set(found[PARSES].values()) == {0.0}


def test_the_main_auxiliary() -> None:
    tokenizer, test, beyond = prepared("questions")
    found = measure(Oracle(tokenizer, test, beyond), tokenizer, "questions", test, beyond, seed=0)  # type: ignore[arg-type]
    assert found == {MAIN_MOVES: {"test": 1.0, "beyond": 1.0}}
    model: Any = Ignorant(len(tokenizer), tokenizer.convert_tokens_to_ids("does"))
    assert 0 < measure(model, tokenizer, "questions", test, beyond, seed=0)[MAIN_MOVES]["beyond"] < 0.6


def test_a_text_ends_with_its_row() -> None:
    model: Any = Ignorant(9, 5)
    assert [len(text) for text in complete(model, [torch.tensor([0, 4]), torch.tensor([0])], 2, 0)] == [128, 128]


def test_documents_are_rows() -> None:
    tokenizer = train_tokenizer(["a b", "c"], None)
    assert rows_of(["a b", "c"], tokenizer).tolist() == [[0, 4, 5, 2], [0, 6, 2, 1]]
    with pytest.raises(LanguagesError, match="longest document has 127 tokens; as a row it may have 126"):
        rows_of(["a " * 127], tokenizer)


@pytest.mark.parametrize("decoder", ["llama", "qwen3"])
def test_every_form_of_a_stock_decoder_learns(decoder: str) -> None:
    tokenizer = train_tokenizer(["a b"], None)
    ids = torch.randint(4, 6, (2, 5))
    ids[:, 0] = tokenizer.bos_token_id
    logits = {}
    for form in ("vanilla", "stack", "gated", "between"):
        torch.manual_seed(0)
        model = new_model("clm", form, tokenizer, layers=2, hidden=16, heads=2, decoder=decoder)
        output = model(ids, labels=ids, use_cache=False)
        output.loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        logits[form] = output.logits
    assert torch.equal(logits["gated"], logits["vanilla"])
    assert torch.equal(logits["between"], logits["vanilla"])
    assert not torch.equal(logits["stack"], logits["vanilla"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"objective": "mlm", "start": "scratch", "form": "stack"}, "--decoder llama makes new causal models"),
        ({"objective": "clm", "start": "pretrained", "form": "stack"}, "without --pretrain"),
    ],
)
def test_a_decoder_is_causal_and_new(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        Run.of("nested", {"decoder": "llama"}, seed=0, data="data", **given)


def test_stacks_between_need_a_decoder() -> None:
    with pytest.raises(SettingsError, match="--use_stack between needs --decoder"):
        Run.of("cpu", objective="clm", start="scratch", form="between", seed=0, data="data")


def test_the_table_and_the_picture_of_nested_texts() -> None:
    def measured(metric: str, *values: float, **more: str) -> Any:
        return measurement("hf_mech/nested_text", "json", {"form": "gated", **more}, metric, values)

    entries = [
        measured("test_perplexity", 5.0, 7.0),
        measured("perplexity", 6.0, 8.0, at="beyond"),
        *(measured(CLOSES, depth / 10, 1.0, at=str(depth)) for depth in range(1, 9)),
        *(measured(PARSES, 0.0, 0.5, at=str(depth)) for depth in range(1, 9)),
        measured("parameters", 1000.0, 1000.0),
        measured("seconds", 10.0, 30.0),
    ]
    assert nested_table(entries).rows == [
        [
            *("`add_stack()`", "6.000 ± 1.000", "7.000 ± 1.000"),
            *("62.5 ± 37.5", "82.5 ± 17.5", "25.0 ± 25.0", "25.0 ± 25.0"),
            *("1,000", "20.0", "2"),
        ]
    ]
    assert [axes.get_title(loc="left") for axes in depth_figure(entries).axes] == ["closes right", "parses"]
