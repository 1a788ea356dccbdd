"""No secret in a file or a message: the one place where secrets are removed."""

from hf_mech.hub.redaction.removal import (
    REDACTED,
    known_secrets,
    redact,
    redact_command,
    redact_known,
    redacted_traceback,
    remember,
)

__all__ = ["REDACTED", "known_secrets", "redact", "redact_command", "redact_known", "redacted_traceback", "remember"]
