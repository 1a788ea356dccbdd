"""The figures in README.md and in the cards are those of the runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from hf_mech.hub import check_folder

ROOT = Path(__file__).parents[2]
CARDS = sorted(path.parent for path in (ROOT / "model_cards").glob("*/results.json"))


@pytest.mark.parametrize("card", CARDS, ids=lambda path: path.name)
def test_card_is_the_rendering_of_its_results(card: Path) -> None:
    check_folder(card)


def test_table_1_is_the_rendering_of_the_results() -> None:
    subprocess.run([sys.executable, ROOT / "training/render_readme.py", "--check"], check=True)


def test_there_are_cards_to_check() -> None:
    assert {"strips-simple", "strips-blocksworld-3b"} <= {card.name for card in CARDS}
