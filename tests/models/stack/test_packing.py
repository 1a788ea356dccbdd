"""Several sequences in a row are computed as if each were alone, however the row tells where they begin."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import DataCollatorWithFlattening, DynamicCache, GPT2LMHeadModel

from hf_mech.models.stack import (
    StackError,
    StackGPT2ForCausalLM,
    StackGPT2ForSequenceClassification,
    StackRobertaForCausalLM,
    StackRobertaForMaskedLM,
    StackRobertaModel,
)

from .contract import gpt2, inputs, roberta

LENGTHS = [4, 1, 6, 3]
FIRST = {StackGPT2ForCausalLM: 0, StackRobertaForMaskedLM: 2, StackRobertaForCausalLM: 2}  # the first position id
ENCODINGS = ["learned", "none", "sinusoidal", "relative", "rotary", "alibi"]
families = pytest.mark.parametrize("model_class", list(FIRST))


def new(model_class: Any, implementation: str = "sdpa", **options: Any) -> Any:
    torch.manual_seed(0)
    if model_class is StackRobertaForCausalLM:
        options["is_decoder"] = True
    config = (gpt2 if model_class is StackGPT2ForCausalLM else roberta)(**options)
    config._attn_implementation = implementation
    return model_class(config).eval().double()


def sequences(seed: int = 0, lengths: list[int] = LENGTHS) -> list[Tensor]:
    """Rows of ids, each of its own length, none with a BOS."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 13, (1, n), generator=generator) for n in lengths]


def alone(model: Any, rows: list[Tensor], **options: Any) -> Tensor:
    """The logits of each sequence alone, one behind the other, [1, N, vocabulary]."""
    return torch.cat([model(row, **options).logits for row in rows], 1)


def positions(lengths: list[int], first: int = 0) -> Tensor:
    return torch.cat([torch.arange(n) for n in lengths])[None] + first


def blocks(lengths: list[int], causal: bool) -> Tensor:
    """The mask of each sequence's own tokens, [1, 1, N, N], True where visible."""
    mask = torch.block_diag(*[torch.ones(n, n) for n in lengths]).bool()
    return (mask.tril() if causal else mask)[None, None]


def gradients(model: Any, logits: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    upstream = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1), dtype=logits.dtype)
    (logits * upstream).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize(
    ("model_class", "encoding"),
    [
        pytest.param(model_class, encoding, marks=[] if number % 3 == place else pytest.mark.slow)
        for place, model_class in enumerate(FIRST)
        for number, encoding in enumerate(ENCODINGS)
    ],
)
def test_a_row_is_its_sequences_alone(model_class: Any, encoding: str):
    """Values, and gradients of all weights; the contract suite compares `eager` and `sdpa`."""
    model, rows = new(model_class, position_embedding_type=encoding), sequences()
    expected = alone(model, rows)
    found = model(torch.cat(rows, 1), position_ids=positions(LENGTHS, FIRST[model_class])).logits
    close = {"rtol": 1e-5, "atol": 1e-6}  # the angles of rotary positions are computed in float32
    assert_close(found, expected, **close)
    assert_close(gradients(model, found), gradients(model, alone(model, rows)), **close)


@pytest.mark.parametrize(
    ("model_class", "implementation"), [(StackGPT2ForCausalLM, "eager"), (StackRobertaForMaskedLM, "sdpa")]
)
@pytest.mark.parametrize(
    "way", ["one", "flat", "bool", "3-D", "additive", "heads", "both", "running", "lengths", "index", "index and mask"]
)
def test_every_way_to_tell_the_sequences(model_class: Any, implementation: str, way: str):
    model, rows, first = new(model_class, implementation), sequences(), FIRST[model_class]
    anew, mask = positions(LENGTHS, first), blocks(LENGTHS, causal=model_class is not StackRobertaForMaskedLM)
    additive = torch.zeros(mask.shape, dtype=torch.double).masked_fill(~mask, torch.finfo(torch.double).min)
    index = torch.arange(len(LENGTHS)).repeat_interleave(torch.tensor(LENGTHS))[None]
    ends = torch.tensor([0, 4, 5, 11, 14], dtype=torch.int32)
    ways: dict[str, dict[str, Any]] = {
        "one": {"position_ids": anew},
        "flat": {"position_ids": anew[0]},
        "bool": {"attention_mask": mask},
        "3-D": {"attention_mask": mask[0].long()},
        "additive": {"attention_mask": additive},
        "heads": {"attention_mask": mask.expand(-1, 2, -1, -1)},
        "both": {"attention_mask": mask, "position_ids": anew},
        "running": {"attention_mask": mask, "position_ids": torch.arange(14)[None] + first},
        "lengths": {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends, "max_length_q": 6, "max_length_k": 6},
        "index": {"seq_idx": index},
        "index and mask": {"seq_idx": index, "attention_mask": mask},
    }
    if way == "running":  # positions that count on, for an encoding that has none of its own
        model = new(model_class, implementation, position_embedding_type="alibi")
    assert_close(model(torch.cat(rows, 1), **ways[way]).logits, alone(model, rows))


@families
@pytest.mark.parametrize("collator", [{}, {"return_flash_attn_kwargs": True, "return_seq_idx": True}])
def test_the_flattening_collator(model_class: Any, collator: dict[str, Any]):
    model, rows = new(model_class), sequences()
    made = DataCollatorWithFlattening(position_ids_start=FIRST[model_class], **collator)(
        [{"input_ids": row[0].tolist()} for row in rows]
    )
    made.pop("labels")
    assert_close(model(**made).logits, alone(model, rows))


@pytest.mark.parametrize(
    ("model_class", "encoding"),
    [
        (StackRobertaForCausalLM, "sinusoidal"),
        (StackRobertaForMaskedLM, "learned"),
        *(pytest.param(StackGPT2ForCausalLM, kind, marks=pytest.mark.slow) for kind in ("learned", "sinusoidal")),
        pytest.param(StackRobertaForCausalLM, "learned", marks=pytest.mark.slow),
        pytest.param(StackRobertaForMaskedLM, "sinusoidal", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("padded", [False, True])
def test_positions_counted_from_0(model_class: Any, encoding: str, padded: bool):
    """RoBERTa's first position is not 0, but TRL's collators know no other."""
    model, rows, places = new(model_class, position_embedding_type=encoding), sequences(), positions(LENGTHS)
    ids, mask, expected = torch.cat(rows, 1), None, alone(model, rows)
    if padded:
        ids, places = (torch.nn.functional.pad(row, (2, 1)) for row in (ids, places))
        mask = torch.nn.functional.pad(torch.ones(1, sum(LENGTHS), dtype=torch.long), (2, 1))
    found = model(ids, attention_mask=mask, position_ids=places).logits
    assert_close(found[:, 2:-1] if padded else found, expected)


@pytest.mark.parametrize(
    ("model_class", "implementation"), [(StackGPT2ForCausalLM, "sdpa"), (StackRobertaForMaskedLM, "eager")]
)
@pytest.mark.parametrize("way", ["positions", "from 0", "lengths", "index"])
def test_without_stacks(model_class: Any, implementation: str, way: str):
    """The vanilla baseline sees the same sequences, where the stock models mix them."""
    model, rows, first = new(model_class, implementation, use_stack=False), sequences(), FIRST[model_class]
    index = torch.arange(len(LENGTHS)).repeat_interleave(torch.tensor(LENGTHS))[None]
    ways: dict[str, dict[str, Any]] = {
        "positions": {"position_ids": positions(LENGTHS, first)},
        "from 0": {"position_ids": positions(LENGTHS)},
        "lengths": {"cu_seq_lens_q": torch.tensor([0, 4, 5, 11, 14], dtype=torch.int32), "max_length_q": 6},
        "index": {"seq_idx": index},
    }
    assert_close(model(torch.cat(rows, 1), **ways[way]).logits, alone(model, rows))


@families
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_rows_with_padding(model_class: Any, implementation: str):
    """Each row has its own sequences, padding on the left and on the right, and a mask [batch, length]."""
    model, first = new(model_class, implementation), FIRST[model_class]
    packs = [[3, 4], [2, 1, 2], [9]]
    ids, mask, places = torch.ones(3, 11, dtype=torch.long), torch.zeros(3, 11, dtype=torch.long), torch.zeros(3, 11)
    expected = []
    for row, lengths in enumerate(packs):
        parts, column = sequences(row, lengths), row
        size = sum(lengths)
        ids[row, column : column + size], mask[row, column : column + size] = torch.cat(parts, 1), 1
        places[row, column : column + size] = positions(lengths, first)[0].float()
        expected.append(alone(model, parts)[0])
    found = model(ids, attention_mask=mask, position_ids=places.long()).logits
    assert_close(found[mask.bool()], torch.cat(expected))
    assert found.isfinite().all()
    square = mask[:, None, :, None].bool() & mask[:, None, None].bool()
    same = torch.zeros(3, 1, 11, 11, dtype=torch.bool)
    for row, lengths in enumerate(packs):
        size = sum(lengths)
        same[row, :, row : row + size, row : row + size] = blocks(lengths, causal=first == 0 or model.config.is_decoder)
    assert_close(model(ids, attention_mask=square & same).logits[mask.bool()], torch.cat(expected))


@families
def test_given_operations(model_class: Any):
    model, rows = new(model_class), sequences()
    operations = [torch.randint(0, 3, row.shape) for row in rows]
    expected = torch.cat([model(r, stack_operations=o).logits for r, o in zip(rows, operations, strict=True)], 1)
    places = positions(LENGTHS, FIRST[model_class])
    found = model(torch.cat(rows, 1), position_ids=places, stack_operations=torch.cat(operations, 1)).logits
    assert_close(found, expected)


@families
def test_stacks_of_sequences_stand_apart(model_class: Any):
    model, rows = new(model_class), sequences()
    outputs = model(
        torch.cat(rows, 1), position_ids=positions(LENGTHS, FIRST[model_class]), output_stack_attentions=True
    )
    for alpha in outputs.stack_attentions:
        assert not alpha[0][~blocks(LENGTHS, causal=True)[0, 0]].any()
        assert_close(alpha.sum(-1), torch.ones(1, 14, dtype=torch.double))


@families
def test_the_bos_of_every_sequence(model_class: Any):
    model, rows = new(model_class, stack_bottom="bos_token"), sequences()
    places = positions(LENGTHS, FIRST[model_class])
    for row in rows:
        row[0, 0] = 0
    model(torch.cat(rows, 1), position_ids=places)
    rows[2][0, 0] = 7
    with pytest.raises(StackError, match=r"must be the token 0 .* got 7 in row 0"):
        model(torch.cat(rows, 1), position_ids=places)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf Tensor:UserWarning")
@families
@pytest.mark.parametrize("way", ["positions", "mask"])
def test_compiled(model_class: Any, way: str):
    torch.compiler.reset()
    model, rows = new(model_class, use_cache=False), sequences()
    mask = blocks(LENGTHS, causal=model_class is not StackRobertaForMaskedLM)
    given = {"positions": {"position_ids": positions(LENGTHS, FIRST[model_class])}, "mask": {"attention_mask": mask}}
    compiled = torch.compile(model, backend="aot_eager")
    assert_close(compiled(torch.cat(rows, 1), **given[way]).logits, alone(model, rows))
    torch.compiler.reset()


def test_behind_a_zero_gate_it_is_stock_gpt2():
    model, rows = new(StackGPT2ForCausalLM, stack_gate=True), torch.cat(sequences(), 1)
    stock = GPT2LMHeadModel(model.config).double().eval()
    stock.load_state_dict(model.state_dict(), strict=False)
    places = positions(LENGTHS)
    assert torch.equal(
        model(rows, position_ids=places).logits, stock(rows, position_ids=places, use_cache=False).logits
    )


def test_a_jump_forward_is_what_it_is_in_transformers():
    """Without a mask, a new sequence; with one, a gap."""
    model, ids, places = new(StackGPT2ForCausalLM), inputs(1, 4, 0)["input_ids"], torch.tensor([[0, 1, 7, 8]])
    expected = torch.cat([model(ids[:, :2]).logits, model(ids[:, 2:], position_ids=places[:, 2:]).logits], 1)
    assert_close(model(ids, position_ids=places).logits, expected)
    gap = model(ids, position_ids=places, attention_mask=torch.ones(1, 4), output_stack_attentions=True)
    assert gap.stack_attentions[0][0, 3].count_nonzero() == 4


# ---------------------------------------------------------------------------------------------------------- refused


@families
def test_a_mask_without_blocks_needs_positions(model_class: Any):
    """A window of two tokens: with positions it is one sequence, or several that the mask keeps apart."""
    model, ids, first = new(model_class), torch.cat(sequences(), 1), FIRST[model_class]
    mask = blocks([14], causal=True) & ~torch.ones(14, 14, dtype=torch.bool).tril(-2)
    with pytest.raises(StackError, match="give position_ids that begin anew"):
        model(ids, attention_mask=mask)
    one = model(ids, attention_mask=mask, position_ids=torch.arange(14)[None] + first, output_stack_attentions=True)
    assert one.stack_attentions[0][0, 13].count_nonzero() == 14
    with pytest.raises(StackError, match="lets tokens see another sequence"):
        model(ids, attention_mask=mask, position_ids=positions(LENGTHS, first))
    apart = mask & blocks(LENGTHS, causal=True)
    several = model(
        ids, attention_mask=apart, position_ids=positions(LENGTHS, first), output_stack_attentions=True
    ).stack_attentions[0]
    assert not several[0][~blocks(LENGTHS, causal=True)[0, 0]].any()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cu_seq_lens_q": [0, 4, 13]}, "rise from 0 to the row's length 14"),
        ({"cu_seq_lens_q": [0, 9, 4, 14]}, "rise from 0"),
        ({"cu_seq_lens_q": [0, 4, 14], "cu_seq_lens_k": [0, 5, 14]}, "cu_seq_lens_q and cu_seq_lens_k divide"),
        ({"cu_seq_lens_q": [0, 4, 14], "position_ids": positions(LENGTHS)}, "begin anew within a sequence"),
        ({"cu_seq_lens_q": [0, 4, 14], "attention_mask": blocks(LENGTHS, causal=True)}, "the blocks of attention_mask"),
        ({"attention_mask": blocks([14], causal=True), "position_ids": positions(LENGTHS)}, "begin anew within"),
        ({"seq_idx": torch.zeros(2, 14)}, r"seq_idx must be \[1, 14\]"),
    ],
)
def test_contradictions(given: dict[str, Any], says: str):
    given = {name: torch.tensor(x) if isinstance(x, list) else x for name, x in given.items()}
    with pytest.raises(StackError, match=says):
        new(StackGPT2ForCausalLM)(torch.cat(sequences(), 1), **given)


def test_lengths_divide_one_row():
    with pytest.raises(StackError, match="input_ids has 2 rows"):
        new(StackGPT2ForCausalLM)(inputs(2, 6, 0)["input_ids"], cu_seq_lens_q=torch.tensor([0, 6, 12]))


def test_an_attention_without_a_mask():
    model = new(StackGPT2ForCausalLM)
    model.config._attn_implementation = "flex_attention"
    with pytest.raises(StackError, match="'flex_attention' does not take; use 'sdpa' or 'eager'"):
        model(torch.cat(sequences(), 1), position_ids=positions(LENGTHS))


def test_a_cache():
    """The rows can be computed with `use_cache`, as the default is, but nobody can go on from there."""
    model, ids, places = new(StackGPT2ForCausalLM), torch.cat(sequences(), 1), positions(LENGTHS)
    outputs = model(ids, position_ids=places, use_cache=True)
    assert_close(outputs.logits, alone(model, sequences()))
    with pytest.raises(StackError, match="holds rows of several sequences"):
        model(ids[:, :1], past_key_values=outputs.past_key_values)
    with pytest.raises(StackError, match="Give no past_key_values"):
        model(ids, position_ids=places, past_key_values=DynamicCache())
    with pytest.raises(StackError, match="every sequence a row of its own"):
        model.generate(ids, position_ids=places, attention_mask=torch.ones_like(ids), max_new_tokens=2)


def test_a_mask_of_four_dimensions_with_a_cache():
    """One sequence a row, behind padding: as with the mask of two dimensions. Several are refused."""
    model, batch = new(StackGPT2ForCausalLM), inputs(2, 9, 0)
    batch["attention_mask"][1, :3] = 0
    expected = model(**batch).logits
    square = torch.ones(9, 9, dtype=torch.bool).tril() & batch["attention_mask"].bool()[:, None, None]
    cache, parts = DynamicCache(config=model.config), []
    for low, high in ((0, 5), (5, 6), (6, 9)):
        mask = square[:, :, low:high, :high]
        parts.append(model(batch["input_ids"][:, low:high], attention_mask=mask, past_key_values=cache).logits)
    real = batch["attention_mask"].bool()
    assert_close(torch.cat(parts, 1)[real], expected[real])
    cache = DynamicCache(config=model.config)
    model(batch["input_ids"][:, :5], past_key_values=cache)
    anew = blocks([5, 4], causal=True)[:, :, 5:]
    later = model(batch["input_ids"][:, 5:], attention_mask=anew.expand(2, -1, -1, -1), past_key_values=cache).logits
    assert_close(later, model(batch["input_ids"][:, 5:]).logits)  # nothing of the cache is visible
    cache = DynamicCache(config=model.config)
    model(batch["input_ids"][:, :5], past_key_values=cache)
    several = blocks([7, 2], causal=True)[:, :, 5:].expand(2, -1, -1, -1)
    with pytest.raises(StackError, match="a row can hold only one"):
        model(batch["input_ids"][:, 5:], attention_mask=several, past_key_values=cache)


def test_a_head_with_one_answer_a_row():
    model = StackGPT2ForSequenceClassification(gpt2())
    with pytest.raises(StackError, match="one answer for every row"):
        model(torch.cat(sequences(), 1), position_ids=positions(LENGTHS))


def test_the_pooled_output_is_the_first_sequences():
    model, rows = new(StackRobertaModel), sequences()
    pooled = model(torch.cat(rows, 1), position_ids=positions(LENGTHS, 2)).pooler_output
    assert_close(pooled, model(rows[0]).pooler_output)
