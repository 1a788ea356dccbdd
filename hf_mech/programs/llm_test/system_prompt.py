"""The instruction that the paper puts before each prompt when it tests a language model (App. G)."""

from __future__ import annotations

SYSTEM_PROMPT = (
    "You are a helpful assistant; please complete the following abstract pattern exactly once. The pattern contains an "
    "example question/answer pair, followed by a second question and a missing answer. Do not output anything except "
    "the final answer. Pay close attention to all special characters."
)
"""The paper's sys_prompt, word for word (App. G). It mentions one example. It is also used for k
shots, because the paper has no other wording."""

GRAMMAR = """\
<tgt> ::= <example> <cue>
<example> ::= Q <question> A <answer>
<cue> ::= Q <question> A
<question> ::= <dc sequence>
<answer> ::= <dc sequence>
<dc sequence> ::= <constituent list> [ <delimiter> ]
<constituent list> ::= <constituent> [ <delimiter> <constituent list> ]
<delimiter> ::= <symbol> [ <delimiter> ]
<constituent> ::= <symbol> [ <constituent> ]"""
"""The grammar of the task. App. G's text is garbled after the second rule; these are the nine rules of App. D, with
their left-hand sides moved back by one line. The constraints that App. D adds as text are left out."""

GRAMMAR_PROMPT = f"The grammar for these patterns can be described as follows:\n\n{GRAMMAR}"
"""The addition to the system prompt in the third row of Table 9 (App. G)."""


def system_prompt(grammar: bool = False) -> str:
    """The system prompt of App. G.

    Args:
        grammar: append the grammar of the task, as the third row of Table 9 does.
    """
    return f"{SYSTEM_PROMPT}\n\n{GRAMMAR_PROMPT}" if grammar else SYSTEM_PROMPT
