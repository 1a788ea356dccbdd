"""The right completion of a prompt, found by plain text processing: the reference for a model's answer."""

from __future__ import annotations

from hf_mech.programs.templatic.parse import parse


def complete(prompt: str) -> str:
    """The completion of a prompt of k examples and a cue, exact wherever the prompt follows a template.

    Symbols of the result have one space between them. A prompt that breaks a constraint of App. D may have several
    readings; this function takes one of them. `hf_mech.programs.templatic.check.check_prompt` finds such prompts.

    Raises:
        PromptError: the text is not k examples and a cue, or they do not follow one template.

    Example: `tgt 1` of Sec. 7.2.4.

    ```python
    >>> complete("Q the big bear ? a red car A the big bear $ . Q some baby cub ? one small house A")
    'some baby cub $ .'

    ```
    """
    return parse(prompt).completion
