"""What each experiment makes of the user's rows: play, pairs of texts, texts with rules, prompts and completions."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch
from torch.nn.functional import one_hot

from hf_mech.hub import Results
from hf_mech.hub.checkpoint import load_checkpoint
from hf_mech.languages import DataCollatorForFormalLanguages, formal_language_tokenizer
from hf_mech.languages.rows import Layout
from tests.training.cases import CASES, reset_process
from tests.training.test_own_data import PLAYER, folders, write_rows
from training.belief_state.models import make_model as make_star_model
from training.belief_state.own import own_accuracy as completions_right
from training.belief_state.own import read_rows
from training.engine import SettingsError, main
from training.formal_languages.models import Growth
from training.formal_languages.own import OwnBatches, Texts, batch_of, read_texts
from training.formal_languages.run import own_accuracy
from training.formal_languages.settings import LAYOUTS
from training.msat.data import load_data
from training.semi_formal.models import make_model as make_rules_model
from training.semi_formal.run import batch_of as rules_batch
from training.semi_formal.run import own_rules


def test_play_is_cut_between_episodes_and_played_in_its_environment(tmp_path: Path) -> None:
    file, experiment = write_rows(tmp_path, "msat"), CASES["msat"].experiment
    given = {"train_file": str(file)}
    run = experiment.settings.of("cpu", given, scenario="my_way_home", model="msat", positions="on", seed=0)
    splits = run.own_splits()
    assert (len(splits["train"]), len(splits["test"])) == (36, 4)
    assert set(splits["train"]["episode"]).isdisjoint(splits["test"]["episode"])
    data = load_data(run)
    assert data.returns == [4.0] * 9
    assert data.windows[0]["returns_to_go"].tolist() == [4, 3, 2, 1]
    line = [
        *PLAYER,
        "--environment",
        "CartPole-v1",
        "--eval_episodes",
        "2",
        "--curve_episodes",
        "1",
        "--eval_steps",
        "60",
    ]
    main(experiment, [*line, "--train_file", str(file), *folders(tmp_path)])
    reset_process()
    found = {e.metric: e.mean for e in Results.load(tmp_path / "cards" / "msat-mine" / "results.json").results}
    assert found["action_accuracy"] == 1
    assert 8 <= found["played length"] == found["played return"]
    config = load_checkpoint(tmp_path / "runs" / "msat-mine").config
    assert (config.environment["id"], config.target_return) == ("CartPole-v1", 4)


PLAY = (
    ({"episode": 2}, "the rows of an episode must be neighbours"),
    ({"observation": [0.0]}, "An observation must have the same number of numbers in all rows"),
    ({"reward": None}, "row 2: the reward must be a number"),
    ({"action": [2]}, "Component 0 of an action must be from 0 to 1, is 2"),
)


@pytest.mark.parametrize(("wrong", "message"), PLAY)
def test_play_that_is_none_is_refused(wrong: dict[str, Any], message: str, tmp_path: Path, capsys: Any) -> None:
    rows = [{"episode": n // 2, "observation": [0.0] * 4, "action": [1], "reward": 1} for n in range(5)]
    rows[2] |= wrong
    for name, written in (("train", rows), ("test", rows[:2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    files = [word for name in ("train", "test") for word in (f"--{name}_file", str(tmp_path / f"{name}.jsonl"))]
    with pytest.raises(SystemExit):
        main(CASES["msat"].experiment, [*PLAYER, *files, "--environment", "CartPole-v1", *folders(tmp_path)])
    reset_process()
    assert message in capsys.readouterr().err


def _texts_of(tmp_path: Path, train: list[dict[str, Any]], **more: Any) -> Texts:
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in train))
    return read_texts(_on_texts(train_file=str(file), **more))


def _on_texts(layout: str = "mlm", preset: str = "cpu", **given: Any) -> Any:
    axes = {"task": "own", "layout": layout, "model": "stack", "encoding": "none", "seed": 0}
    return CASES["formal_languages"].experiment.settings.of(preset, given, **axes)


@pytest.mark.parametrize("layout", ["mlm", "alm"])
def test_pairs_of_texts_are_laid_out_as_the_generated_ones(layout: Layout, tmp_path: Path) -> None:
    """A pushed data set of a task has lists of class labels; its symbols are the names."""
    rows = datasets.load_dataset("hf_mech/formal_languages", "reverse_string", seed=0, num_train=30, num_test=5)
    rows["train"].to_parquet(tmp_path / "train.parquet")
    rows["test"].to_parquet(tmp_path / "test.parquet")
    files = {f"{split}_file": str(tmp_path / f"{split}.parquet") for split in ("train", "test")}
    texts = read_texts(_on_texts(layout, **files))
    assert texts.tokenizer.get_vocab() == formal_language_tokenizer("reverse_string").get_vocab()
    collated = DataCollatorForFormalLanguages(formal_language_tokenizer("reverse_string"), layout)(list(rows["test"]))
    batch = batch_of(texts.test, layout)  # both are by length
    assert all(torch.equal(batch[name], tensor) for name, tensor in collated.items())


def test_symbols_are_words_or_characters_or_what_a_list_has(tmp_path: Path) -> None:
    for inputs, outputs in (("ab", "ba"), ("a b", "b a"), (["a", "b"], ["b", "a"])):
        texts = _texts_of(tmp_path, [{"inputs": inputs, "outputs": outputs}] * 10)
        assert texts.train[0] == ([4, 5], [5, 4])
        assert texts.tokenizer("a b" if isinstance(inputs, list) else inputs)["input_ids"] == [0, 4, 5]
    texts = _texts_of(tmp_path, [{"inputs": "ab cd", "outputs": "ab"}] * 10)
    assert texts.train[0] == ([4, 5], [4])
    with pytest.raises(SettingsError, match=r"row 0: expected an input and an output, got \('', 'b'\)"):
        _texts_of(tmp_path, [{"inputs": "", "outputs": "b"}] * 10)
    unknown = tmp_path / "test.jsonl"
    unknown.write_text('{"inputs": "az", "outputs": "za"}\n')
    with pytest.raises(SettingsError, match="split test, row 0 has the symbol 'z', which no training text has"):
        _texts_of(tmp_path, [{"inputs": "ab", "outputs": "ba"}] * 10, test_file=str(unknown))


def test_short_texts_come_first_where_they_are_to_grow(tmp_path: Path) -> None:
    rows = [{"inputs": "ab" * length, "outputs": "ba" * length} for length in range(1, 11)]
    texts = _texts_of(tmp_path, rows * 4)
    run = _on_texts(preset="taught", train_file=str(tmp_path / "train.jsonl"))
    growth = Growth.of(run, texts.longest)
    batches = OwnBatches(run, texts, growth)
    assert (growth.longest, texts.longest, batches[0]["input_ids"].shape) == (9, 20, (64, 17))  # [BOS], 8 and 8
    growth.longest = 20
    assert batches[0]["input_ids"].shape == (64, 41)


def test_accuracy_is_told_by_length_and_of_longer_texts(tmp_path: Path) -> None:
    """A model that says `a` everywhere."""

    class Says(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
            return SimpleNamespace(logits=one_hot(torch.full_like(input_ids, 4), 6).float())

    test = tmp_path / "test.jsonl"
    test.write_text('{"inputs": "ab", "outputs": "ba"}\n{"inputs": "aaab", "outputs": "baaa"}\n')
    texts = _texts_of(tmp_path, [{"inputs": "ab", "outputs": "ba"}] * 10, test_file=str(test))
    for layout in LAYOUTS:
        by_length, figures = own_accuracy(Says(), layout, texts)
        assert by_length == {"2": 0.5, "4": 0.75}
        assert figures == {"accuracy": 4 / 6, "accuracy on longer texts": 0.75}


RULES = (
    ({"prompt": "a cat A"}, "expected words, ' : ' and a rule"),
    ({"prompt": "a cat : A and B"}, "ends before 'and B'"),
    ({"label": 2}, "the label is 0 or 1, got 2"),
)


@pytest.mark.parametrize(("wrong", "message"), RULES)
def test_rules_that_are_none_are_refused_with_their_row(wrong: Any, message: str, tmp_path: Path, capsys: Any) -> None:
    rows = [{"prompt": "a cat : A", "label": 1}] * 3 + [{"prompt": "a cat : A", "label": 1} | wrong]
    for name, written in (("train", rows), ("test", rows[:2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    files = [word for name in ("train", "test") for word in (f"--{name}_file", str(tmp_path / f"{name}.jsonl"))]
    with pytest.raises(SystemExit):
        main(CASES["semi_formal"].experiment, ["--model", "transformer", *files, *folders(tmp_path)])
    said = capsys.readouterr().err
    assert "split train, row 3" in said
    assert message in said


def test_own_rules_have_words_of_their_own_and_long_texts(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    long = " ".join(["word"] * 70)
    file.write_text("".join(json.dumps({"prompt": f"{long} not n{n} : A", "label": n % 2}) + "\n" for n in range(10)))
    run = CASES["semi_formal"].experiment.settings.of("cpu", {"train_file": str(file)}, model="semi_formal", seed=0)
    splits, words, positions = own_rules(run)
    assert (len(splits["train"]), positions, set(words) >= {"word", "not"}) == (9, 74, True)
    model, tokenizer = make_rules_model(run, words, positions)
    assert len(tokenizer) <= model.config.vocab_size
    batch = rules_batch(splits["train"][:2], tokenizer)
    assert tokenizer.unk_token_id not in batch["input_ids"]
    assert torch.isfinite(model(**batch).loss)


def test_completions_are_right_where_greedy_decoding_says_them(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    texts = [" ".join("ab"[n % 2] for n in range(length)) for length in (1, 2, 3)] * 20
    file.write_text("".join(json.dumps({"prompt": f"{t} =", "completion": t}) + "\n" for t in texts))
    axes = {"graph": "g-2-5", "model": "bst", "seed": 0}
    sizes = {"layers": 1, "backward_layers": 1, "hidden": 16, "heads": 2, "head_width": 32}
    run = CASES["belief_state"].experiment.settings.of("cpu", {"train_file": str(file), **sizes}, **axes)
    rows = read_rows(run)
    torch.manual_seed(0)
    model: Any = make_star_model(run, rows.vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    batch = rows.layout.training(rows.train[:30])
    for _ in range(15):  # so that it is right on some, and wrong on others
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    for row in rows.train:
        prompt = rows.layout.tokenizer(row["prompt"], return_tensors="pt")
        said = model.generate(**prompt, max_new_tokens=5, do_sample=False)[0, prompt["input_ids"].shape[1] :]
        right += rows.layout.tokenizer.decode(said).split("<eos>")[0].strip() == row["completion"]
    share = completions_right(model, rows.train, rows.layout, 7)
    assert 0 < share < 1
    assert share == right / len(rows.train)
