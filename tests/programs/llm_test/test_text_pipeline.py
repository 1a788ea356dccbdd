"""Language models of transformers: the prompts as the model sees them, its replies, and its refusals."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, pipeline

from hf_mech.probing import ProbingError
from hf_mech.probing.language_models import LanguageModel, Question, TextPipeline

WORDS = sorted({*"QABVDEFGHKL.~:|", "Complete", "the", "pattern."})


def word_tokenizer(**special):
    ids = {word: number for number, word in enumerate(["<eos>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{"eos_token": "<eos>", "unk_token": "<unk>"} | special)


@pytest.fixture
def folder(tmp_path):
    """A tiny GPT-2 with random weights, and its tokenizer, which has no padding token."""
    config = GPT2Config(
        vocab_size=len(WORDS) + 2, n_positions=64, n_embd=32, n_layer=2, n_head=2, eos_token_id=0, bos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for weight in model.parameters():  # large enough that the replies depend on the prompts
            weight.mul_(4 if weight.ndim > 1 else 1)
    model.save_pretrained(tmp_path / "model")
    word_tokenizer().save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def greedy(folder, text, steps):
    """The continuation, token by token, one prompt at a time, without generate()."""
    tokenizer, model = word_tokenizer(), GPT2LMHeadModel.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"]
    begin = len(ids)
    with torch.no_grad():
        for _ in range(steps):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == 0:
                break
    return [word for word in tokenizer.convert_ids_to_tokens(ids[begin:]) if word != "<eos>"]


PROMPTS = ["Q B V D A D V B . Q F G V K A", "Q ~ B A B : . Q ~ D E F A", "Q B A B . Q L A", "Q K | L A L . Q F | E D A"]


def test_a_pipeline_continues_as_the_model_does_alone(folder):
    model = TextPipeline.from_pretrained(folder, device="cpu", batch_size=3, max_new_tokens=12)
    assert isinstance(model, LanguageModel)
    replies = [reply.text.split() for reply in model.replies([Question(p, "Complete the pattern.") for p in PROMPTS])]
    expected = []
    for prompt in PROMPTS:
        words = greedy(folder, f"Complete the pattern.\n\n{prompt}", 12)
        expected.append(words[: words.index(".") + 1] if "." in words else words)
    assert replies == expected
    assert len(set(map(tuple, replies))) > 1
    bare = [reply.text.split() for reply in model.replies([Question(prompt) for prompt in PROMPTS])]
    assert bare != replies


def test_a_chat_template_is_used_and_the_whole_reply_counts(folder):
    template = "{% for m in messages %}{{ m.role[0].upper() }} {{ m.content }} {% endfor %}{{ '|' }}"
    word_tokenizer(chat_template=template).save_pretrained(folder)
    model = TextPipeline.from_pretrained(folder, device="cpu", max_new_tokens=12)
    assert model.settings()["chat_template"] is True
    replies = [reply.text.split() for reply in model.replies([Question(p, "Complete the pattern.") for p in PROMPTS])]
    assert replies == [greedy(folder, f"S Complete the pattern. U {prompt} |", 12) for prompt in PROMPTS]


def test_settings_are_json_and_name_the_checkpoint(folder):
    settings = TextPipeline.from_pretrained(folder, device="cpu", batch_size=5).settings()
    assert json.loads(json.dumps(settings)) == settings
    assert (settings["model"], settings["dtype"], settings["batch_size"]) == (folder, "float32", 5)


def test_a_prompt_that_is_too_long_is_refused_before_anything_is_generated(folder):
    model = TextPipeline.from_pretrained(folder, device="cpu", max_new_tokens=40)
    short, long = Question(PROMPTS[2]), Question(" ".join(["Q B A B ."] * 9))
    with pytest.raises(ProbingError, match=r"45 tokens and 40 for its answer are more than the 64 positions"):
        next(model.replies([short, long]))
    assert next(model.replies([short])).text is not None


def test_models_that_cannot_be_loaded(tmp_path, folder):
    with pytest.raises(ProbingError, match="nowhere cannot be loaded"):
        TextPipeline.from_pretrained(str(tmp_path / "nowhere"))
    with pytest.raises(ProbingError, match="got 0 and 256"):
        TextPipeline.from_pretrained(folder, device="cpu", batch_size=0)
    generator = pipeline("text-generation", model=folder, device="cpu")
    generator.tokenizer.eos_token = None
    with pytest.raises(ProbingError, match="neither a padding nor an end-of-sequence token"):
        TextPipeline(generator)
