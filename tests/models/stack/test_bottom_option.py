"""A bottom of the stack that does not exist is refused wherever it is named."""

from pathlib import Path

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaConfig


def test_as_an_argument_of_loading_and_as_an_attribute(tmp_path: Path) -> None:
    GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=10, bos_token_id=0, eos_token_id=0)
    ).save_pretrained(tmp_path)
    with pytest.raises(StackError, match=r"stack_bottom must be one of 'first_token', 'bos_token', got 'bos'"):
        StackGPT2ForCausalLM.from_pretrained(tmp_path, stack_bottom="bos")
    config = StackRobertaConfig()
    with pytest.raises(StackError, match=r"stack_bottom must be one of 'first_token', 'bos_token', got 'bos'"):
        config.stack_bottom = "bos"
