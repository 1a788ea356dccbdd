"""Errors between a question and its answer. Each message names the fault and its remedy."""

from __future__ import annotations


class LanguageModelError(RuntimeError):
    """Base of all errors between a question and its answer. Answers received before the error are kept."""


class ModelNotLoadedError(LanguageModelError):
    """transformers cannot make a text-generation pipeline from the name or folder."""


class PromptTooLongError(LanguageModelError):
    """A prompt and its answer need more tokens than the model has positions."""


class EndpointSettingsError(LanguageModelError):
    """The address, key, limits or further fields do not make a valid chat-completions request."""


class EndpointUnreachableError(LanguageModelError):
    """No connection, or no complete answer in time, after every retry."""


class EndpointKeyError(LanguageModelError):
    """The endpoint asks for an API key, or for another one (status 401 or 403)."""


class EndpointBusyError(LanguageModelError):
    """Too many requests or a failing server (status 408, 429 or 5xx), also after every retry."""


class EndpointRefusedError(LanguageModelError):
    """The endpoint refuses the request (any other status than 200). A retry would not help."""


class EndpointAnswerError(LanguageModelError):
    """The endpoint answers with status 200, but not with a chat completion."""
