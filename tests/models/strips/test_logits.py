"""A language model whose calls are constrained to those that the domain allows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import ByteLevel, WhitespaceSplit
from tokenizers.trainers import BpeTrainer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from hf_mech.models.strips import (
    GroundAction,
    LiftedAction,
    LiftedDomain,
    StripsError,
    StripsLogitsProcessor,
    StripsTransformer,
)
from tests.models.strips.contract import CALLS, FERRY, HIDDEN, OBJECTS

SPECIAL = ["[PAD]", "[EOS]", "[UNK]"]


def bpe() -> tuple[PreTrainedTokenizerFast, str]:
    """Byte-level BPE, one call a line."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = ByteLevelDecoder()
    text = ["board c1 l1\nsail l1 l2\ndebark c1 l2\nTask: Calls:\n"] * 5
    trainer = BpeTrainer(vocab_size=300, special_tokens=SPECIAL, initial_alphabet=ByteLevel.alphabet())
    tokenizer.train_from_iterator(text, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", eos_token="[EOS]"), "\n"


def word_level() -> tuple[PreTrainedTokenizerFast, str]:
    """A token for each word, and one that separates calls."""
    names = [*SPECIAL, ";", "Task:", "Calls:", "failed", *(action.name for action in FERRY.actions)]
    names += [name for own in OBJECTS.values() for name in own]
    tokenizer = Tokenizer(WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]")
    return made, " ; "


def gpt2(tokenizer: PreTrainedTokenizerFast) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=256, n_embd=16, n_layer=1, n_head=2, initializer_range=0.5
    )
    config.eos_token_id = config.bos_token_id = tokenizer.eos_token_id
    config.pad_token_id = tokenizer.pad_token_id
    return GPT2LMHeadModel(config).eval()


def lines(text: str, separator: str) -> list[str]:
    """The complete lines of a text."""
    return [line.strip() for line in text.split(separator.strip(" "))[:-1]]


def known(line: str) -> bool:
    name, *objects = line.split() or [""]
    return str(GroundAction(name, tuple(objects))) in CALLS


MODES = {
    "greedy": {},
    "sampling": {"do_sample": True, "num_return_sequences": 4},
    "beams": {"num_beams": 4, "num_return_sequences": 4},
    "beam sampling": {"num_beams": 3, "do_sample": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [bpe, word_level])
def test_every_call_is_possible(kind, mode: str):
    tokenizer, separator = kind()
    tokenizer.padding_side = "left"
    prompts = [
        f"Calls:{separator}",
        f"Task: Calls:{separator}sail l1 l2{separator}board c1 l2{separator}",
        f"Calls:{separator}board c1 l1{separator}sail l2 l3 failed{separator}",
    ]
    batch = tokenizer(prompts, return_tensors="pt", padding=True)
    model = gpt2(tokenizer)
    settings = {"max_new_tokens": 60, "min_new_tokens": 60, **MODES[mode]}
    processor = StripsLogitsProcessor(FERRY, tokenizer, OBJECTS, separator=separator)

    def written(**more) -> list[list[str]]:
        torch.manual_seed(1)
        found = model.generate(**batch, **settings, **more)
        texts = [tokenizer.decode([t for t in row.tolist() if t > 1]) for row in found]
        assert any(0 in row for row in found[:, : batch["input_ids"].shape[1]].tolist())  # padded on the left
        return [[line for line in lines(text, separator) if line.split()[-1:] != ["Calls:"]] for text in texts]

    constrained = written(logits_processor=[processor])
    calls = 0
    for trace in constrained:
        done = [line for line in trace if not line.endswith("failed")]
        assert all(map(known, done)), done
        assert FERRY.labels(done) == [0] * len(done)
        calls += len(done)
    assert calls > 15  # more than the prompts hold
    assert not any(known(line) for trace in written() for line in trace[2:])


def test_most_calls_are_impossible_without_it():
    """The same model writes any calls if the domain has no preconditions, and most of these are impossible."""
    tokenizer, separator = word_level()
    loose = LiftedDomain(FERRY.predicates, tuple(replace(action, pre=frozenset()) for action in FERRY.actions))
    settings = {"max_new_tokens": 80, "min_new_tokens": 80, "do_sample": True, "num_return_sequences": 16}
    shares = []
    for domain in (FERRY, loose):
        torch.manual_seed(0)
        processor = StripsLogitsProcessor(domain, tokenizer, OBJECTS, separator=separator)
        found = gpt2(tokenizer).generate(
            **tokenizer(f"Calls:{separator}", return_tensors="pt"), **settings, logits_processor=[processor]
        )
        traces = [lines(tokenizer.decode(row), separator)[1:] for row in found]
        assert all(known(line) for trace in traces for line in trace)
        impossible = [label for trace in traces for label in FERRY.labels(trace)]
        shares.append(sum(impossible) / len(impossible))
    assert shares[0] == 0
    assert shares[1] > 0.5


def test_the_next_tokens_are_those_of_the_possible_calls():
    """Token by token, for random traces: exactly what `LiftedDomain` says."""
    for kind in (bpe, word_level):
        tokenizer, separator = kind()
        processor = StripsLogitsProcessor(FERRY, tokenizer, OBJECTS, separator=separator)
        table = processor._table("")
        for prompt in (["board c1 l1"], ["board c1 l1", "sail l1 l2"], ["sail l1 l1"], ["board c2 l3", "debark c2 l3"]):
            ids = tokenizer(separator + "".join(call + separator for call in prompt))["input_ids"]
            wanted = {table.by_action[a] for a in map(FERRY.read, FERRY.next_actions(prompt, OBJECTS))}
            reached, paths = set(), [()]
            while paths:
                path = paths.pop()
                for token in processor.allowed([*ids, *path]):
                    longer = (*path, token)
                    if longer in table.by_ids:
                        reached.add(table.by_ids[longer])
                    elif token != processor.eos_token_id:
                        paths.append(longer)
            assert reached == wanted


def test_objects_come_from_the_text_and_facts_are_kept():
    tokenizer, _ = bpe()
    lit = LiftedDomain(
        {"linked": ("place", "place"), "here": ("place",)},
        (LiftedAction("sail", ("place", "place"), {("here", (0,)), ("linked", (0, 1))}, (), ()),),
    )
    processor = StripsLogitsProcessor(lit, tokenizer, facts=["linked(l1,l2)", "here(l1)"])
    assert [str(action) for action in processor._table("sail l1 l2").by_action] == ["sail(l1,l2)"]
    with pytest.raises(StripsError, match=r"no objects.*'sail place1 place2'"):
        processor(torch.tensor([tokenizer("Calls:\n")["input_ids"]]), torch.zeros(1, len(tokenizer)))
    named = StripsLogitsProcessor(FERRY, tokenizer, lambda text: {"car": ["c9"], "place": text.split()[-1:]})
    ids = tokenizer("Go to l1\n")["input_ids"]
    possible = {str(action) for action in named._table(tokenizer.decode(ids)).by_action}
    assert possible == {"sail(l1,l1)", "board(c9,l1)", "debark(c9,l1)"}


def test_examples_before_the_start_do_not_count():
    tokenizer, separator = word_level()
    text = f"board c1 l1{separator}Calls:{separator}"
    for start, possible in ((None, False), ("Calls:", True)):
        processor = StripsLogitsProcessor(FERRY, tokenizer, OBJECTS, separator=separator, start=start)
        board = tokenizer.convert_tokens_to_ids("board")
        assert (board in processor.allowed(tokenizer(text)["input_ids"])) is possible


def test_a_propositional_domain():
    tokenizer, _ = bpe()
    processor = StripsTransformer.from_domain(HIDDEN).logits_processor(tokenizer)
    model = gpt2(tokenizer)
    settings = {"max_new_tokens": 60, "min_new_tokens": 60, "do_sample": True, "num_return_sequences": 8}
    torch.manual_seed(0)
    found = model.generate(**tokenizer("\n", return_tensors="pt"), **settings, logits_processor=[processor])
    traces = [lines(tokenizer.decode(row, skip_special_tokens=True), "\n")[1:] for row in found]
    assert sum(map(len, traces)) > 10
    assert all(HIDDEN.is_positive(trace) for trace in traces)


def test_where_no_call_is_possible_the_text_ends():
    tokenizer, _ = bpe()
    stuck = LiftedDomain({"p": ()}, (LiftedAction("go", (), {("p", ())}, (), {("p", ())}),))
    processor = StripsLogitsProcessor(stuck, tokenizer, {})
    found = gpt2(tokenizer).generate(
        **tokenizer("\n", return_tensors="pt"), max_new_tokens=30, num_beams=4, logits_processor=[processor]
    )
    assert tokenizer.decode(found[0], skip_special_tokens=True) in ("\ngo\n", "\n")


def test_what_cannot_work_is_refused_in_words():
    tokenizer, separator = word_level()
    plain = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(StripsError, match="no end-of-text token"):
        StripsLogitsProcessor(FERRY, plain, OBJECTS)
    with pytest.raises(StripsError, match="choose another one"):
        StripsLogitsProcessor(FERRY, tokenizer, OBJECTS)  # a new line is no token
    with pytest.raises(StripsError, match="does not know all words of 'sail l1 l7'"):
        StripsLogitsProcessor(FERRY, tokenizer, {"place": ["l1", "l7"]}, separator=separator)
    with pytest.raises(StripsError, match="no calls over the objects"):
        StripsLogitsProcessor(FERRY, tokenizer, {"car": ["c1"]}, separator=separator)
    with pytest.raises(StripsError, match="leave objects"):
        StripsLogitsProcessor(HIDDEN, tokenizer, OBJECTS, separator=separator)
    with pytest.raises(StripsError, match="ids of another call"):
        StripsLogitsProcessor(FERRY, tokenizer, OBJECTS, separator=separator, form=lambda action: action.name)
    processor = StripsLogitsProcessor(FERRY, tokenizer, OBJECTS, separator=separator)
    with pytest.raises(StripsError, match=r"prompt ends with 'Task:'.*separator ' ; '"):
        processor(torch.tensor([tokenizer("Task:")["input_ids"]]), torch.zeros(1, len(tokenizer)))
