"""What models are compared with and looked into: baselines and probes."""
