"""Templatic generation: the tasks of the paper's Sec. 4, as templates, prompts and their completions."""
