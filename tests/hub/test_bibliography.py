"""The bibliography: whole entries under their own keys, and the same papers as in CITATION.cff."""

import re
from pathlib import Path

import pytest
import yaml

from hf_mech.dataset_builders.formal_languages import FormalLanguages
from hf_mech.dataset_builders.strips_traces import StripsTraces
from hf_mech.dataset_builders.templatic_generation import TemplaticGeneration
from hf_mech.hub import HubError
from hf_mech.hub.bibliography import KEYS, bibtex

CFF = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8"))
PAPERS = ("li2024stack", "hu2025belief", "nunezmolina2025strips", "smolensky2024mechanisms", "moodley2024msat")
ACCENTS = {r"{\'u}": "ú", r"{\~n}": "ñ", r"{\'o}": "ó", r"{\c{c}}": "ç", r"{\'e}": "é"}


def fields(key: str) -> dict[str, str]:
    """The entry's fields as plain text, on one line each."""
    text = re.sub(r"\s+", " ", bibtex(key))
    for latex, plain in ACCENTS.items():
        text = text.replace(latex, plain)
    return {
        name: re.sub(r"[{}]", "", value) for name, value in re.findall(r"(\w+) = {(.*?)},(?= \w+ =| }$)", text.strip())
    }


@pytest.mark.parametrize("key", KEYS)
def test_every_entry_is_whole(key):
    text = bibtex(key)
    assert text.isascii()
    assert re.match(rf"@(article|inproceedings|misc)\{{{key},\n", text)
    assert text.endswith("},\n}\n")
    assert text.count("{") == text.count("}")
    entry = fields(key)
    assert entry.keys() >= {"title", "author", "year"}
    assert entry["year"] in key
    assert not re.search(r"[\\~]", "".join(entry.values()))


@pytest.mark.parametrize("key", PAPERS)
def test_titles_and_authors_are_those_of_the_citation_file(key):
    entry = fields(key)
    (reference,) = (r for r in CFF["references"] if r["title"].replace("\N{EN DASH}", "--") == entry["title"])
    authors = [f"{a['family-names']}, {a['given-names']}" for a in reference["authors"]]
    assert entry["author"].split(" and ") == authors
    assert len(CFF["references"]) == len(PAPERS)


def test_an_unknown_key_is_refused_with_those_there_are():
    with pytest.raises(HubError, match=r"no entry 'li2024'; choose one of .*hu2025belief, li2024stack"):
        bibtex("li2024")


def test_the_data_sets_cite_their_papers():
    for builder, key in (
        (FormalLanguages(config_name="parity_check"), "deletang2023neural"),
        (StripsTraces(config_name="simple"), "nunezmolina2025strips"),
        (TemplaticGeneration(config_name="1_shot_rlw"), "smolensky2024mechanisms"),
    ):
        assert builder.info.citation == bibtex(key)
