"""Names what differs in a failed comparison."""

from collections.abc import Callable


def named(name: str) -> Callable[[str], str]:
    """A `msg` for `torch.testing.assert_close` that says which tensor it is about."""
    return lambda text: f"{name}: {text}"
