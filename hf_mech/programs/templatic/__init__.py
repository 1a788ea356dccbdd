"""Templatic generation: templates, prompts and completions of the tasks of Sec. 4."""
