"""The programs of the package and Turing machines, on random prompts, in all machines."""
