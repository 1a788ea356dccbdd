"""Even failures: a rule is told from what an expert merely never does."""

from hf_mech.planning import learn_lifted_domain
from hf_mech.planning.lifted.learning.events import kinds_of, read_steps
from hf_mech.planning.lifted.learning.exchange import weaker
from hf_mech.planning.lifted.learning.learn import LiftedCode
from hf_mech.planning.lifted.learning.rules import Rule
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.traces import TraceSettings, generate_traces


def test_weaker_rules_end_with_one_action_more():
    kinds = kinds_of(read_steps([["load p t", "unload p t", "go t"]], None), 2)
    named = {
        kind.types: [f"{('load', 'unload', 'go')[pattern.action]}{list(pattern.places)}" for pattern in kind.patterns]
        for kind in kinds
    }
    number = next(n for n, kind in enumerate(kinds) if len(kind.types) == 2)
    one = next(n for n, p in enumerate(kinds[number].patterns) if (p.action, p.places) == (0, (0, 1)))
    found = set(weaker(Rule(number, 0, one, one), kinds))
    said = {
        (named[kinds[rule.kind].types][rule.need], named[kinds[rule.kind].types][rule.adds.bit_length() - 1])
        for rule in found
    }
    assert said == {
        ("load[0, 1]", "unload[0, 1]"),  # the pair
        ("load[0]", "unload[0]"),  # the package, the truck
        ("load[1]", "unload[1]"),
        ("load[1]", "go[0]"),
    }


def test_plans_of_an_expert_who_boards_nobody_twice():
    """`board` may be repeated; walks of the hidden domain do, the plans that are learned from never."""
    settings = TraceSettings(
        seed=3, num_train=200, num_test=300, max_train_length=20, max_test_length=20, policy="expert"
    )
    problem = load_bundled("miconic-2p")
    actions, data = problem.domain.action_names, generate_traces(problem, settings)
    log = [[actions[each] for each in trace.actions] for trace in data.train]
    labels = [trace.labels for trace in data.train]

    def right(code: LiftedCode) -> float:
        learned = learn_lifted_domain(log, labels, code=code, progress=False)
        verdicts = (learned.verdicts([actions[each] for each in trace.actions]) for trace in data.test)
        return sum(own == list(trace.labels) for own, trace in zip(verdicts, data.test, strict=True)) / len(data.test)

    assert right(LiftedCode()) < 0.8
    assert right(LiftedCode(walks=0.01, failures="uniform")) > 0.95
