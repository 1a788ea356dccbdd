"""The attention of every head as an interactive page, by CircuitsVis, as in the paper (Appendix 7.6 of M-SAT).

The page holds its script, so it opens without a network. CircuitsVis has few releases: it is an extra that nothing else
needs, and `attention_heads` draws the same heads as figures without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_DIGITS = 3  # of a weight in the page
_DARKEST = 0.98  # the share of the weights that are lighter than the darkest colour
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family: sans-serif; margin: 2em">
<h1 style="font-size: 1.2em">{title}</h1>
<p>{text}</p>
<p>Point at a head to see it, and click to keep it. A row (destination) is a token that reads, a column (source) a token
that is read; point at a cell to see its weight. The darkest cells are weights of {darkest:.2g} or more.</p>
{heads}
</body>
</html>
"""


def attention_page(attentions: NDArray[np.floating], names: Sequence[str], title: str, text: str = "") -> str:
    """A page in HTML: a small map of every head, and a large one of the chosen head, whose cells show their weights.

    The weights of a long context are small, so the darkest colour does not stand for 1 but for a weight that one cell
    in fifty reaches; the page says which.

    Args:
        attentions: [layers, heads, tokens, tokens], the weights of each query's keys.
        names: of the tokens, such as `config.token_names(...)`: r17, s17, a1_17, ...
        title, text: above the heads; plain text.

    Raises:
        ImportError: circuitsvis is not installed.
        ValueError: another number of names than of tokens.
    """
    if attentions.ndim != 4 or attentions.shape[2:] != (len(names), len(names)):
        raise ValueError(
            f"attentions must be [layers, heads, tokens, tokens] with {len(names)} tokens, one for each name, got "
            f"{list(attentions.shape)}."
        )
    try:
        from circuitsvis.attention import attention_heads
    except ModuleNotFoundError as error:
        raise ImportError("circuitsvis is not installed. Run: pip install 'hf-mech[attention]'") from error
    from html import escape

    layers, heads = attentions.shape[:2]
    darkest = float(np.quantile(attentions[:, :, np.tri(len(names), dtype=bool)], _DARKEST))
    shown = attention_heads(
        # In float64: the digits of a rounded float32 are many.
        attentions.reshape(layers * heads, *attentions.shape[2:]).astype(np.float64).round(_DIGITS).tolist(),
        list(names),
        [f"L{layer}H{head}" for layer in range(layers) for head in range(heads)],
        max_value=darkest,
        mask_upper_tri=True,
    )
    return _PAGE.format(title=escape(title), text=escape(text), darkest=darkest, heads=shown.local_src)
