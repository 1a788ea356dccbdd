"""What goes wrong on a disk."""


class OutputError(OSError):
    """A folder or file that cannot be written: a full or read-only disk, missing rights. What was whole stays whole."""
