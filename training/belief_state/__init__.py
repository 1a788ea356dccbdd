"""Star graphs with the Belief State Transformer and its baselines (Sections 3.4 to 3.6 and 5.4, Appendix C)."""
