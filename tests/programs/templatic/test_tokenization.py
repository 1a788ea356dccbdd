"""Words are tokens: one id a word, unknown words, vocabularies that are refused."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from hf_mech.programs.templatic.batches import word_tokenizer, words_of
from hf_mech.programs.templatic.grammar import generate


def test_words_are_tokens_and_strangers_unknown(tmp_path: Path):
    examples = list(generate("1_shot_rlw", "train", seed=3, stop=60))
    prompts = [example.prompt for example in examples]
    completions = [example.completion for example in examples]
    tokenizer = word_tokenizer(words_of(prompts + completions))
    for prompt, completion in zip(prompts, completions, strict=True):
        ids = tokenizer(prompt, completion)["input_ids"]
        assert tokenizer.decode(ids) == f"{prompt} {completion} <eos>"
        assert len(ids) == len(prompt.split()) + len(completion.split()) + 1
    assert tokenizer("Q qqq A")["input_ids"][1] == tokenizer.unk_token_id == 1
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(prompts, padding=True)["input_ids"] == tokenizer(prompts, padding=True)["input_ids"]


@pytest.mark.parametrize(
    ("words", "message"), [([], "no words"), (["a b"], "'a b'"), (["<eos>"], "<eos>"), (["a", "b", "a"], "2 differ")]
)
def test_a_vocabulary_that_is_none(words: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        word_tokenizer(words)
