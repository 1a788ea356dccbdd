"""Options of a command whose runs take less than a second."""

TINY = [
    *("--layers", "1", "--hidden", "16", "--heads", "2", "--vocabulary", "300", "--batch_size", "4"),
    *("--epochs", "2", "--max_evaluation_blocks", "4", "--jobs", "1"),
]
