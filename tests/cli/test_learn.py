"""`hf-mech learn`: a log becomes a domain, a picture, a model."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result
from rich.console import Console
from transformers import AutoModel
from typer.testing import CliRunner

import hf_mech.planning
from hf_mech.cli import app
from hf_mech.cli.learn import _support_table
from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain, parse_action
from hf_mech.planning import BriefDomain
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning.learn import Support
from hf_mech.planning.lifted.pddl import read_lifted_pddl
from hf_mech.planning.lifted.walks import LiftedWalks
from hf_mech.planning.lifted_figures import lifted_table
from hf_mech.planning.logs import Log, Place

ROOT = Path(__file__).parents[2]
runner = CliRunner()

ON, HELD = LiftedAtom("on", (0,)), LiftedAtom("held", (0,))
DOMAIN = LiftedDomain(
    {"on": ("block",), "held": ("block",)},
    (
        LiftedAction("pick", ("block",), frozenset({ON}), frozenset({HELD}), frozenset({ON})),
        LiftedAction("drop", ("block",), frozenset({HELD}), frozenset({ON}), frozenset({HELD})),
    ),
)
LOG = "case,verb,arguments,ok\nx,pick,b1,\nx,pick,b1,no\nx,drop,b1,yes\nx,drop,b1,yes\n"


def learn(arguments: str) -> Result:
    """The answer to `hf-mech learn`."""
    return runner.invoke(app, ["learn", *arguments.split()])


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list:
    """What the learner is given; it answers with DOMAIN. The current folder is an empty one with the log."""
    calls: list = []

    def learner(traces: list, labels: list, *, progress: bool) -> SimpleNamespace:
        calls.append((traces, labels))
        return SimpleNamespace(
            domain=DOMAIN,
            facts=set(),
            objects={"block": ["b1"]},
            bits=12.0,
            exceptions=[(0, len(traces[0]) - 1)],
            to_pddl=lambda: "(define (domain hands))\n",
            explain=lambda: [Support("drop", HELD, 4.0, 1, 17, ((0, 2),), ((0, len(traces[0]) - 1),))],
        )

    monkeypatch.setattr(hf_mech.planning, "learn_lifted_domain", learner, raising=False)
    monkeypatch.setattr(hf_mech.planning, "brief_domain", lambda own: BriefDomain(own.domain, 1.0), raising=False)
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    return calls


def test_a_log_becomes_a_domain_and_a_picture(given: list) -> None:
    answer = learn("log.csv --action verb --figure domain.svg")
    assert answer.exit_code == 0, answer.output
    assert given == [([[parse_action(f"{verb} b1") for verb in ("pick", "pick", "drop", "drop")]], [[0, 1, 0, 0]])]
    assert Path("domain.pddl").read_text() == "(define (domain hands))\n"
    assert "<svg" in Path("domain.svg").read_text()
    said = answer.stdout
    assert "cases: 1, events: 4, failed: 1, actions: 2" in said
    assert "pick(block)" in said
    assert "held(block)" in said
    assert re.search(r"drop +held\(block\) +17 +1 +4 +log.csv, line 5 *\n", said)
    assert "1 of 4 events are not explained; 12 bits" in said
    assert "log.csv, line 5: drop(b1) was done, though the domain forbids it" in said
    assert {path.name for path in Path().iterdir()} == {"log.csv", "domain.pddl", "domain.svg"}


def test_json_for_machines(given: list) -> None:
    answer = learn("log.csv --action verb --json -o d.pddl")
    told = json.loads(answer.stdout)
    assert LiftedDomain.from_dict(told["domain"]) == DOMAIN
    assert told["log"] == {"cases": 1, "events": 4, "failed": 1, "skipped": []}
    assert told["unexplained"] == [{"source": "log.csv", "line": 5, "case": "x", "action": "drop(b1)", "failed": False}]
    precondition = {"action": "drop", "predicate": "held", "places": [0], "held": 17, "not": 1, "expected": 4.0}
    assert told["preconditions"] == [precondition]
    assert told["files"] == {"domain": "d.pddl"}


def test_bad_rows_are_named_and_can_be_skipped(given: list) -> None:
    Path("log.csv").write_text(LOG + "x,drop,b1,maybe\n")
    answer = learn("log.csv --action verb")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "log.csv, line 6: expected 'ok' to be true, 1" in answer.stderr
    assert "--skip-bad-rows" in answer.stderr
    assert not Path("domain.pddl").exists()
    answer = learn("log.csv --action verb --skip-bad-rows")
    assert "skipped log.csv, line 6: expected 'ok' to be" in answer.stdout
    assert Path("domain.pddl").exists()


def test_several_columns_of_arguments(given: list) -> None:
    Path("log.csv").write_text("verb;from;to\nmove;a;b\n")
    assert learn("log.csv --action verb --arguments from --arguments to").exit_code == 0
    assert given == [([[parse_action("move a b")]], [[0]])]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--figure domain.jpeg", "--figure takes a name that ends with .png, .svg, .pdf, got 'domain.jpeg'"),
        ("--out .", ". is a folder; give the name of a file in it"),
        ("--out log.csv/domain.pddl", "cannot be written"),
        ("--save log.csv", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_log_is_read(arguments: str, said: str, given: list) -> None:
    answer = learn(f"log.csv --action verb {arguments}")
    assert answer.exit_code == 1
    assert answer.stderr.startswith("hf-mech: ")
    assert said in answer.stderr
    assert given == []
    assert Path("log.csv").read_text() == LOG


def test_a_picture_needs_its_package(given: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = learn("log.csv --action verb --figure domain.png")
    assert answer.stderr == "hf-mech: --figure needs matplotlib: pip install 'hf-mech[viz]'\n"


def test_the_guide_from_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first block writes a log with failures, its command makes a domain, a picture and a model that agree."""
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    exec(compile(guide.split("```python\n")[1].partition("```")[0], "logs.md", "exec"), {})
    (command,) = [line for line in guide.splitlines() if line.startswith("hf-mech learn")]
    answer = learn(command.removeprefix("hf-mech learn "))
    assert answer.exit_code == 0, answer.output
    (unexplained,) = re.findall(r"(\d+) of 12,000 events are not explained", answer.stdout)
    assert int(unexplained) < 120
    assert {path.name for path in Path().iterdir()} == {"calls.csv", "repository.pddl", "repository.png", "runs"}
    model = AutoModel.from_pretrained("runs/repository")
    written = read_lifted_pddl("repository.pddl")
    assert {action.name: action for action in model.to_domain().actions} == written.by_name


def test_of_many_preconditions_the_strongest_and_the_doubtful_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = [LiftedAtom(f"p{number}", (0,)) for number in range(80)]
    domain = LiftedDomain(
        {atom.predicate: ("block",) for atom in atoms}, (LiftedAction("pick", ("block",), frozenset(atoms)),)
    )
    supports = [
        Support("pick", atom, float(n), int(n == 5), 9, (), ((0, 0),) * (n == 5)) for n, atom in enumerate(atoms)
    ]
    log = Log([[parse_action("pick b1")]], [[0]], ["x"], [[Place("log.csv", 2)]])
    table = _support_table(log, SimpleNamespace(domain=domain, explain=lambda: supports), domain)
    assert [text.plain for text in table.columns[1].cells] == ["p5(block)", "p79(block)", "p78(block)"]
    assert str(table.caption).endswith("77 more without exceptions: --json")


def test_the_domain_is_printed_with_few_predicates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    traces = LiftedWalks(instance("gripper")).traces(actions=1000, length=50)
    rows = [f"{case},{a.name},{' '.join(a.objects)}" for case, trace in enumerate(traces) for a in trace.actions]
    Path("log.csv").write_text("\n".join(["case,verb,arguments", *rows]))
    short = learn("log.csv --action verb")
    assert short.exit_code == 0, short.output
    full = learn("log.csv --action verb --full")
    assert "predicates: they refuse 100.00% of what all refuse" in short.stdout
    assert "they refuse" not in full.stdout
    assert len(short.stdout) < len(full.stdout)


def test_long_names_are_folded_and_not_cut() -> None:
    atom = LiftedAtom("after-start-or-reject-of-a-branch", ())
    printed = io.StringIO()
    console = Console(width=40, file=printed)
    console.print(lifted_table(LiftedDomain({atom.predicate: ()}, (LiftedAction("pick", (), frozenset({atom})),))))
    assert "…" not in printed.getvalue()
