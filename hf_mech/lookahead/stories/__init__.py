"""Stories for goal-conditioned generation: a grammar, TinyStories, tokens, the baseline's rows, judge and measures."""
