"""The Hub on this machine, its client and a card folder, as in the tests of the Hub."""

from tests.hub.conftest import api, card_folder, hub, results

__all__ = ["api", "card_folder", "hub", "results"]
