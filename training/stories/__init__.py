"""Stories with a goal and without: the Belief State Transformer beside fill-in-the-middle (Section 5)."""
