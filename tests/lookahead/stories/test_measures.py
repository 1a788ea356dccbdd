"""Do completions join, are they exact, how likely are they: against values worked out by hand or token by token."""

import pytest
import torch
from transformers import (
    BertTokenizerLegacy,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from hf_mech.languages.corpora import train_tokenizer
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.grammar import stories, story_at
from hf_mech.lookahead.stories.measures import Joins, exact_match, joins, log_likelihoods


def test_stories_join_and_crossed_ones_do_not():
    texts = [story.text for story in stories(0, 0, 20)]
    assert joins(texts) == Joins(1.0, 1.0, 1.0, 0.0)
    story = story_at(0, 0)
    assert story.facts["helper"] == "pig"
    head, tail = story.text[: story.text.index('"Thank')], story.text[story.text.index('"Thank') :]
    assert joins([story.text, head + tail.replace("pig", "goat")]) == Joins(0.5, 1.0, 1.0, 0.5)
    half = joins([head])
    assert (half.joined, half.grammatical, half.read) == (0.0, 0.0, 1.0)
    wrong = joins([head + "It rained."])
    assert wrong.read == pytest.approx(len(head) / len(head + "It rained."))
    assert joins(["Nothing here.", ""]) == Joins(0.0, 0.0, 0.0, 0.0)


def test_exact_match():
    assert exact_match([" He sat.", "He  sat .", "She sat."], ["He sat.", "He sat.", "She  sat.\n"]) == pytest.approx(
        2 / 3
    )
    with pytest.raises(LookaheadError, match="got 1 and 2"):
        exact_match(["a"], ["a", "b"])
    for measure in (joins, lambda texts: exact_match(texts, []), lambda texts: log_likelihoods(None, None, texts)):
        with pytest.raises(LookaheadError, match="At least one story"):
            measure([])


@pytest.fixture(params=["gpt2", "llama"])
def model(request):
    torch.manual_seed(1)
    if request.param == "gpt2":
        config = GPT2Config(vocab_size=1_000, n_positions=300, n_embd=32, n_layer=2, n_head=2)
        return GPT2LMHeadModel(config)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=1_000, max_position_embeddings=300, **sizes))


def one_by_one(model, ids, first):
    """The mean log-probability of the tokens from place `first` on, each from a forward of its own."""
    total = 0.0
    with torch.no_grad():
        for place in range(first, len(ids)):
            total += model(torch.tensor([ids[:place]])).logits[0, -1].log_softmax(-1)[ids[place]].item()
    return total / (len(ids) - first)


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_likelihoods_are_those_of_the_tokens_one_by_one(model, tokenizer, batch_size):
    texts = [story.text[: 60 + 25 * number] for number, story in enumerate(stories(1, 0, 5))]
    model.train()
    found = log_likelihoods(model, tokenizer, texts, batch_size=batch_size)
    assert model.training
    model.eval()
    assert found == pytest.approx([one_by_one(model, tokenizer(text)["input_ids"], 1) for text in texts], abs=1e-4)


def test_only_what_follows_the_beginning_is_scored(model, tokenizer):
    texts = [story.text[:160] for story in stories(2, 0, 4)]
    begins = [text[:cut] for text, cut in zip(texts, (50, 51, 52, 53), strict=True)]
    model.eval()
    wanted = []
    for text, begin in zip(texts, begins, strict=True):
        encoded = tokenizer(text, return_offsets_mapping=True)
        first = next(place for place, (_, end) in enumerate(encoded["offset_mapping"]) if end > len(begin))
        wanted.append(one_by_one(model, encoded["input_ids"], first))
    assert log_likelihoods(model, tokenizer, texts, beginnings=begins) == pytest.approx(wanted, abs=1e-4)
    whole = log_likelihoods(model, tokenizer, texts, beginnings=[""] * 4)
    assert whole == log_likelihoods(model, tokenizer, texts)


def test_a_tokenizer_with_bos_scores_the_first_token(model, texts):
    with_bos = train_tokenizer(texts["text"][:], 1_000)
    text = texts["text"][0][:80]
    ids = with_bos(text)["input_ids"]
    assert ids[0] == with_bos.bos_token_id
    model.eval()
    assert log_likelihoods(model, with_bos, [text]) == pytest.approx([one_by_one(model, ids, 1)], abs=1e-4)


def test_texts_that_cannot_be_scored(model, tokenizer, tmp_path):
    story = story_at(0, 0).text
    for arguments, said in (
        ({"texts": [story], "beginnings": ["Nobody"]}, r"The texts \[0\] do not begin with"),
        ({"texts": [story], "beginnings": [story, story]}, "got 1 and 2"),
        ({"texts": [story], "beginnings": [story]}, "Text 0 has no token to score behind"),
        ({"texts": ["x", story, "a"]}, "Text 0 has no token to score"),
        ({"texts": [story, story * 3]}, r"Text 1 has \d+ tokens, and \w+ForCausalLM has 300|has 300 positions"),
        ({"texts": [story], "batch_size": 0}, "batch_size must be 1 or more"),
    ):
        with pytest.raises(LookaheadError, match=said):
            log_likelihoods(model, tokenizer, **arguments)


def test_a_slow_tokenizer_scores_whole_texts_only(model, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "tom", "sat"]))
    slow = BertTokenizerLegacy(str(tmp_path / "vocab.txt"))
    assert len(log_likelihoods(model, slow, ["tom sat"])) == 1
    with pytest.raises(LookaheadError, match="BertTokenizerLegacy cannot tell"):
        log_likelihoods(model, slow, ["tom sat"], beginnings=["tom"])
