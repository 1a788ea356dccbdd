"""M-SAT and its baselines in ViZDoom and in environments without an engine (Section 5 of M-SAT)."""
