"""The stack models as the contract suite sees them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import (
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    LlamaModel,
)
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from hf_mech.models.stack import (
    StackGPT2Config,
    StackGPT2ForCausalLM,
    StackGPT2ForQuestionAnswering,
    StackGPT2ForSequenceClassification,
    StackGPT2ForTokenClassification,
    StackGPT2Model,
    StackRobertaConfig,
    StackRobertaForCausalLM,
    StackRobertaForMaskedLM,
    StackRobertaForMultipleChoice,
    StackRobertaForQuestionAnswering,
    StackRobertaForSequenceClassification,
    StackRobertaForTokenClassification,
    StackRobertaModel,
    stack_attention,
    stack_attention_reference,
    stacked,
)
from hf_mech.models.stack.stack_values import (
    Cell,
    Inputs,
    recurrent_values,
    recurrent_values_reference,
)
from tests.contract.batches import Batch
from tests.contract.case import ContractCase, Formula
from tests.stock import TEXTS, gpt2_tokenizer, roberta_tokenizer

BOS, PAD, VOCABULARY = 0, 1, 13


def gpt2(**options: Any) -> StackGPT2Config:
    return StackGPT2Config(
        n_layer=2,
        n_embd=16,
        n_head=2,
        n_positions=32,
        vocab_size=VOCABULARY,
        bos_token_id=BOS,
        eos_token_id=2,
        pad_token_id=PAD,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        initializer_range=0.2,  # so that no weight is too small to be seen
        **options,
    )


def roberta(**options: Any) -> StackRobertaConfig:
    return StackRobertaConfig(
        num_hidden_layers=2,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        type_vocab_size=1,
        vocab_size=VOCABULARY,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
        **options,
    )


#: The classes that `add_stack` gives Llama's: one stock decoder for all.
StackLlamaForCausalLM, StackLlamaModel = stacked(LlamaForCausalLM), stacked(LlamaModel)
StackLlamaForSequenceClassification = stacked(LlamaForSequenceClassification)
StackLlamaForTokenClassification = stacked(LlamaForTokenClassification)


def llama(**options: Any) -> Any:
    return StackLlamaForCausalLM.config_class(
        num_hidden_layers=2,
        hidden_size=16,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        max_position_embeddings=64,
        vocab_size=VOCABULARY,
        bos_token_id=BOS,
        eos_token_id=2,
        pad_token_id=PAD,
        initializer_range=0.2,
        **options,
    )


def inputs(batch: int, length: int, seed: int) -> Batch:
    """BOS, and then symbols that count upwards from a random one."""
    generator = torch.Generator().manual_seed(seed)
    symbols = VOCABULARY - 3
    first = torch.randint(0, symbols, (batch, 1), generator=generator)
    ids = 3 + (first + torch.arange(length)) % symbols
    ids[:, 0] = BOS
    return {"input_ids": ids, "attention_mask": torch.ones(batch, length, dtype=torch.long)}


def predicting_tokens(batch: int, length: int, seed: int) -> Batch:
    made = inputs(batch, length, seed)
    return {**made, "labels": made["input_ids"].masked_fill(made["input_ids"] == BOS, -100)}


def tagging_tokens(batch: int, length: int, seed: int) -> Batch:
    made = inputs(batch, length, seed)
    return {**made, "labels": made["input_ids"] % 2}


def tagging_rows(batch: int, length: int, seed: int) -> Batch:
    made = inputs(batch, length, seed)
    return {**made, "labels": made["input_ids"][:, -1] % 2}


def answering(batch: int, length: int, seed: int) -> Batch:
    """The answer begins at the greatest symbol and ends at the smallest."""
    made = inputs(batch, length, seed)
    symbols = made["input_ids"][:, 1:]
    return {**made, "start_positions": symbols.argmax(1) + 1, "end_positions": symbols.argmin(1) + 1}


def choosing(batch: int, length: int, seed: int) -> Batch:
    """Three choices a row; the best one begins with the greatest symbol."""
    made = {name: tensor.view(batch, 3, length) for name, tensor in inputs(3 * batch, length, seed).items()}
    return {**made, "labels": made["input_ids"][..., 1].argmax(1)}


def arguments(seed: int, pops: int = 1) -> tuple[Tensor]:
    """Random actions, [batch, N, 2 + K]."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(3, 7, 2 + pops, generator=generator, dtype=torch.float64).softmax(-1),)


def held_values(seed: int) -> tuple[Any, ...]:
    """Random arguments of the values of 7 positions after 4; the last two are those values and what is real."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    popped = random(3, 7, 11).softmax(-1).tril(3)
    weights = [random(6, 10), random(5, 6), random(5), random(5), random(5)]
    real = random(3, 7) > -0.5
    return random(3, 7, 5), random(3, 7, 6), random(3, 7).sigmoid(), popped, *weights, random(3, 4, 5), real


def values_by(function: Any) -> Any:
    """The function on the arguments of [`held_values`]."""

    def compute(hidden: Tensor, own: Tensor, runs: Tensor, popped: Tensor, *rest: Tensor) -> Tensor:
        *weights, past, real = rest
        earlier = torch.ones_like(popped).tril(3)  # no position pops itself
        return function(Inputs(hidden, own, runs, popped * earlier, past.detach(), real), Cell(*weights))

    return compute


def stock_gpt2() -> tuple[StackGPT2Config, PreTrainedTokenizerBase]:
    """As for any GPT-2: the tokenizer has no padding token, so the EOS pads."""
    tokenizer = gpt2_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    config = gpt2()
    end = tokenizer.eos_token_id
    config.update({"vocab_size": len(tokenizer), "eos_token_id": end, "pad_token_id": end, "n_positions": 64})
    return config, tokenizer


def llama_with_tokenizer() -> tuple[Any, PreTrainedTokenizerBase]:
    _, tokenizer = stock_gpt2()
    config = llama()
    end = tokenizer.eos_token_id
    config.update({"vocab_size": len(tokenizer), "eos_token_id": end, "pad_token_id": end})
    return config, tokenizer


def stock_roberta(**options: Any) -> tuple[StackRobertaConfig, PreTrainedTokenizerBase]:
    tokenizer = roberta_tokenizer()
    config = roberta(**options)
    config.update({"vocab_size": len(tokenizer), "max_position_embeddings": 66})
    return config, tokenizer


FORMULAS = (
    Formula("stack attention", stack_attention, stack_attention_reference, arguments),
    Formula("up to three pops", stack_attention, stack_attention_reference, lambda seed: arguments(seed, 3)),
    Formula("recurrent values", values_by(recurrent_values), values_by(recurrent_values_reference), held_values),
)
PADDING = {"input_ids": PAD, "attention_mask": 0, "labels": -100, "start_positions": -100, "end_positions": -100}
NO_STREAM = "generation keeps its state in transformers' cache"
NO_LOSS = {"loss": "no head on top", "stream": NO_STREAM}


OF_THE_FAMILY: dict[type, dict[str, Any]] = {
    StackGPT2Config: {"processing": stock_gpt2},
    StackRobertaConfig: {"processing": stock_roberta, "first_position": PAD + 1},
    StackLlamaForCausalLM.config_class: {"processing": llama_with_tokenizer, "eager_dtype": torch.float32},
}


def without_head(model_class: type, config: Any, **more: Any) -> ContractCase:
    lacks = {**NO_LOSS, "generation": "no head on top"}
    formulas = {"formulas": FORMULAS, "position_outputs": ("last_hidden_state",)}
    return stack_case(model_class, config, inputs, lacks, **formulas, **more)


def with_head(
    model_class: type, config: Any, made: Any, generates: bool, lacks: dict[str, str] | None = None, **more: Any
) -> ContractCase:
    lacks = {"stream": NO_STREAM, "formulas": "those of the model without a head", **(lacks or {})}
    if not generates:
        lacks["generation"] = "predicts no next token"
    return stack_case(model_class, config, made, lacks, **{"position_outputs": ("logits",), **more})


def stack_case(model_class: Any, config: Any, made: Any, lacks: dict[str, str], **more: Any) -> ContractCase:
    more = {**OF_THE_FAMILY[model_class.config_class], **more}
    if "pipeline" in lacks:
        more["processing"] = None
    return ContractCase(
        model_class=model_class,
        config=config,
        inputs=made,
        padding=PADDING,
        bf16_tolerance=0.2,
        texts=TEXTS[:3],
        lacks=lacks,
        **more,
    )


NO_PIPELINE = {"pipeline": "transformers has no pipeline for this task"}
ONE_ANSWER = {"packing": "one answer for a row: several sequences in it are refused"}
OF_A_ROW = {"generates": False, "position_outputs": (), "row_outputs": ("logits",), "lacks": ONE_ANSWER}
ANSWERS = {
    "generates": False,
    "position_outputs": ("start_logits", "end_logits"),
    "columns": ("start_positions", "end_positions"),
    "no_gradient": {"qa_outputs.bias": "the same for all positions, between which the softmax chooses"},
    "lacks": {**ONE_ANSWER, **NO_PIPELINE},
}
READS_POSITION_0 = dict.fromkeys(
    ("roberta.encoder.layer.1.stack.action.weight", "roberta.encoder.layer.1.stack.action.bias"),
    "the head reads position 0, where the stack is empty whatever the actions are",
)
CHOICES = {
    **OF_A_ROW,
    "lacks": {**ONE_ANSWER, **NO_PIPELINE},
    "length_dim": 2,
    "no_gradient": {
        "classifier.bias": "the same for all choices, between which the softmax chooses",
        **READS_POSITION_0,
    },
}

CASES = (
    without_head(StackGPT2Model, gpt2),
    with_head(StackGPT2ForCausalLM, gpt2, predicting_tokens, generates=True),
    with_head(StackGPT2ForSequenceClassification, gpt2, tagging_rows, **OF_A_ROW),
    with_head(StackGPT2ForTokenClassification, lambda: gpt2(classifier_dropout=0.0), tagging_tokens, generates=False),
    with_head(StackGPT2ForQuestionAnswering, gpt2, answering, **ANSWERS),
    without_head(StackRobertaModel, roberta, row_outputs=("pooler_output",)),
    with_head(StackRobertaForMaskedLM, roberta, predicting_tokens, generates=False),
    with_head(
        StackRobertaForCausalLM,
        lambda: roberta(is_decoder=True),
        predicting_tokens,
        generates=True,
        processing=lambda: stock_roberta(is_decoder=True),
    ),
    with_head(StackRobertaForSequenceClassification, roberta, tagging_rows, **OF_A_ROW, no_gradient=READS_POSITION_0),
    with_head(StackRobertaForTokenClassification, roberta, tagging_tokens, generates=False),
    with_head(StackRobertaForQuestionAnswering, roberta, answering, **ANSWERS),
    with_head(StackRobertaForMultipleChoice, roberta, choosing, **CHOICES),
    # The objective's gradients go up to 30: eager and compiled are both 3e-5 from the exact ones in float32.
    without_head(StackLlamaModel, llama, compile_dtype=torch.float64),
    with_head(StackLlamaForCausalLM, llama, predicting_tokens, generates=True),
    with_head(StackLlamaForSequenceClassification, llama, tagging_rows, **OF_A_ROW),
    with_head(StackLlamaForTokenClassification, lambda: llama(classifier_dropout=0.0), tagging_tokens, generates=False),
    with_head(
        StackGPT2ForCausalLM,
        lambda: gpt2(stack_values="recurrent", stack_actions_from="layer_input"),
        predicting_tokens,
        generates=True,
        variant="recurrent",
    ),
    with_head(
        StackRobertaForMaskedLM,
        lambda: roberta(stack_values="recurrent"),
        predicting_tokens,
        generates=False,
        variant="recurrent",
    ),
)
