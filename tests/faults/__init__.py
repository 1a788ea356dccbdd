"""Faults on purpose: random kills, full disks, a failing Hub. The table of docs/faults.md.

`python -m tests.faults` makes it; each piece of work is small, and every moment of a fault is drawn from its seed.
"""
