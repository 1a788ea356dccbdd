"""The picture of any compiled program at work."""

from __future__ import annotations

from io import BytesIO

from hf_mech.programs.psl import compile_program
from hf_mech.programs.psl.trace_picture import trace_figure

INDUCTION = """
registers: {symbol: 's', position: 'p', before: 'b'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    before[N] = symbol[n]
where_rm before[n] == symbol[N]:
    symbol[N] = symbol[n]
stop: ["end"]
"""


def test_a_program_without_a_parse_register_has_its_picture() -> None:
    text = INDUCTION.replace('stop: ["end"]\n', "").replace("where position", 'stop: ["end"]\nwhere position', 1)
    model, tokenizer = compile_program(text, max_position_embeddings=16, num_open_values=16)
    figure = trace_figure(
        model,
        tokenizer,
        "red green end red",
        {"s": "symbol", "b": "before"},
        corners=("b",),
        symbol="s",
        colour_by="b",
    )
    drawn = BytesIO()
    figure.savefig(drawn)
    assert drawn.getvalue().startswith(b"\x89PNG")
    assert figure.get_suptitle() or any(axes.get_title() or axes.texts for axes in figure.axes)
    written = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "green" in " ".join(written)
