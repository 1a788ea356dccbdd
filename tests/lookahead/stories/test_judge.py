"""The judge, against a server on this machine: questions, orders, repeats, answers, faults and the key."""

import json
import math
from collections import Counter

import pytest

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.judge import (
    CRITERIA,
    SYSTEM_PROMPT,
    Comparison,
    Verdict,
    compare,
    question,
    read_answer,
    wilson_interval,
)
from hf_mech.probing import ProbingError
from hf_mech.probing.chat_endpoint import ChatEndpoint
from tests.programs.llm_test.chat_server import ChatServer, completion

GOOD, BAD = "Tom was happy, the end.", "Tom Tom Tom."
KEY = "sk-the-secret-key"
LAST = "Grammar: {0}\nFlow: {0}\nCohesiveness: equal\nCreativity: {1}\nVerdict: {0}"


def prefers_good(request):
    """A fair judge of grammar, who finds the other story more creative."""
    one, two = request["messages"][-1]["content"].removeprefix("Story 1:\n\n").split("\n\nStory 2:\n\n")
    if one == two:
        return "Both are the same.\n\n" + LAST.format("equal", "equal")
    better, other = ("1", "2") if one == GOOD else ("2", "1")
    return f"Story {other} repeats itself. Verdict: story {other} is worse.\n\n" + LAST.format(better, other)


@pytest.fixture
def server():
    with ChatServer() as running:
        running.answer = prefers_good
        yield running


@pytest.fixture
def judge(server):
    with ChatEndpoint("judge", server.url, api_key=KEY, retries=2, backoff=0, request={"temperature": 1}) as client:
        yield client


def test_every_pair_is_asked_in_both_orders_three_times_without_names(server, judge):
    first, second = [GOOD, BAD, GOOD], [BAD, GOOD, GOOD]
    result = compare(judge, first, second, names=("belief", "fim"))
    asked = [request["messages"] for _, request in server.requests]
    assert len(asked) == 3 * 6
    assert all([message["role"] for message in messages] == ["system", "user"] for messages in asked)
    assert {messages[0]["content"] for messages in asked} == {SYSTEM_PROMPT}
    pairs = Counter(messages[1]["content"] for messages in asked)
    assert pairs == {question(GOOD, BAD).prompt: 6, question(BAD, GOOD).prompt: 6, question(GOOD, GOOD).prompt: 6}
    assert "belief" not in str(asked)
    assert "fim" not in str(asked)
    assert {(v.story, v.repeat, v.swapped) for v in result.verdicts} == {
        (story, repeat, swapped) for story in range(3) for repeat in range(3) for swapped in (False, True)
    }


def test_the_system_prompt_is_that_of_the_paper():
    assert SYSTEM_PROMPT.startswith("You are evaluating two story generation models. First, analyze the outputs")
    assert SYSTEM_PROMPT.endswith("\nGrammar: \nFlow: \nCohesiveness: \nCreativity: \nVerdict: ")


def test_wins_losses_and_ties_of_a_fair_judge(judge):
    result = compare(judge, [GOOD] * 4 + [BAD] + [GOOD], [BAD] * 4 + [GOOD] + [GOOD])
    overall = result.win_rate()
    assert (overall.wins, overall.losses, overall.ties, overall.undecided) == (4, 1, 1, 0)
    assert overall.rate == 0.8
    assert overall.interval == wilson_interval(4, 5)
    assert result.win_rate("creativity").rate == pytest.approx(0.2)
    assert result.win_rate("cohesiveness").rate is None
    assert result.win_rate("cohesiveness").ties == 6
    assert result.counts == {"first": 24, "second": 6, "equal": 6, "unreadable": 0}
    assert result.shown_first_wins == 0.5


def test_a_judge_that_likes_the_first_story_decides_nothing(server, judge):
    server.answer = lambda request: LAST.format("1", "1")
    result = compare(judge, [GOOD] * 5, [BAD] * 5)
    assert result.shown_first_wins == 1.0
    assert (result.win_rate().wins, result.win_rate().losses, result.win_rate().ties) == (0, 0, 5)
    assert result.win_rate().rate is None


def test_answers_that_cannot_be_read_are_counted(server):
    replies = iter(["I like both.", "", "Verdict: 3", "Verdict: 1 or 2", "Verdict: 1", None])
    server.answer = lambda request: next(replies)
    with ChatEndpoint("judge", server.url, concurrency=1) as one_by_one:
        result = compare(one_by_one, [GOOD, GOOD, GOOD], [BAD, BAD, BAD], repeats=1)
    assert result.counts == {"first": 1, "second": 0, "equal": 0, "unreadable": 5}
    assert (result.win_rate().wins, result.win_rate().undecided) == (1, 2)
    assert result.win_rate("grammar").undecided == 3


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("Verdict: 1", "first"),
        ("so\n**Verdict:** Story 2\n", "second"),
        ("- verdict: **1**.", "first"),
        ("Verdict: 1\nNo, wait.\nVerdict: 2", "second"),
        ("VERDICT: Equal", "equal"),
        ("### Verdict: Story 1", "first"),
        ("Verdict:\nStory 1", None),
        ("My verdict: 1", None),
        ("Verdict: 12", None),
        ("Verdict: neither 1 nor 2", None),
        ("", None),
    ],
)
def test_the_last_lines_are_read(text, choice):
    assert read_answer(text, swapped=False).get("verdict") == choice
    swap = {"first": "second", "second": "first", "equal": "equal", None: None}
    assert read_answer(text, swapped=True).get("verdict") == swap[choice]


def test_a_busy_server_is_asked_again(server, judge):
    server.first.extend([(429, {"Retry-After": "0"}, "busy"), (503, {}, "down")])
    assert compare(judge, [GOOD], [BAD], repeats=1).win_rate().wins == 1
    assert len(server.requests) == 4


def test_a_run_that_broke_off_goes_on_and_pays_for_no_answer_twice(server, judge, tmp_path):
    path = tmp_path / "answers.jsonl"
    with ChatEndpoint("judge", server.url, concurrency=1, retries=0, request={"temperature": 1}) as one_by_one:
        server.first.extend([*[ok] * 4, (401, {}, "no key")])
        with pytest.raises(ProbingError):
            compare(one_by_one, [GOOD, BAD], [BAD, GOOD], answers=path)
        assert len(path.read_text().splitlines()) == 4
        with path.open("a") as file:
            file.write('{"number": 4, "key": "ab')  # a kill in the middle of a line
        result = compare(one_by_one, [GOOD, BAD], [BAD, GOOD], answers=path)
        assert len(server.requests) == 5 + 8
        assert result == compare(one_by_one, [GOOD, BAD], [BAD, GOOD], answers=path)
        assert len(server.requests) == 5 + 8
        assert (result.win_rate().wins, result.win_rate().losses) == (1, 1)
        for other in ({"first": [GOOD, GOOD]}, {"repeats": 2}):
            arguments = {"first": [GOOD, BAD], "second": [BAD, GOOD], "answers": path, **other}
            with pytest.raises(LookaheadError, match="answers of another comparison"):
                compare(one_by_one, **arguments)
    entry = json.dumps({"number": 0, "key": "", "answer": None})
    for other in (b"no JSON\n", b"\xff\xfe\n", entry.encode() + b"\n"):
        path.write_bytes(other)
        with pytest.raises(LookaheadError, match=r"Line 1 of .*answers.jsonl is not an answer"):
            compare(judge, [GOOD], [BAD], answers=path)


def ok(request):
    return 200, {}, completion(prefers_good(request))


def test_the_key_is_sent_and_never_written(server, judge, tmp_path, caplog):
    server.answer = lambda request: f"your key is {KEY}\nVerdict: 1"
    result = compare(judge, [GOOD], [BAD], answers=tmp_path / "answers.jsonl")
    result.save(tmp_path / "comparison.json")
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers, _ in server.requests)
    written = [path.read_text() for path in tmp_path.iterdir()]
    assert len(written) == 2
    assert not any(KEY in text for text in (*written, caplog.text, repr(result)))
    server.first.append((400, {}, f'{{"error": {{"message": "{KEY} is wrong"}}}}'))
    with pytest.raises(ProbingError) as caught:
        compare(judge, [GOOD], [BAD])
    assert KEY not in str(caught.value)


def test_the_result_as_json(judge, tmp_path):
    result = compare(judge, [GOOD, BAD], [BAD, GOOD], names=("belief", "fim"), repeats=1)
    saved = json.loads(result.save(tmp_path / "comparison.json").read_text())
    assert saved == result.to_dict()
    assert saved["models"] == ["belief", "fim"]
    assert saved["judge"]["model"] == "judge"
    assert saved["stories"] == 2
    assert saved["answers"] == {"first": 2, "second": 2, "equal": 0, "unreadable": 0}
    assert saved["win_rates_of_the_first"].keys() == {"verdict", *CRITERIA}
    assert saved["win_rates_of_the_first"]["verdict"] | {"interval": None} == {
        **{"wins": 1, "losses": 1, "ties": 0, "undecided": 0},
        **{"rate": 0.5, "interval": None},
    }
    assert saved["verdicts"][1]["swapped"] is True


def test_the_majority_of_a_story_counts():
    def verdicts(story, *choices):
        return [Verdict(story, n, False, {"verdict": choice}) for n, choice in enumerate(choices)]

    mixed = [*verdicts(0, "first", "first", "second"), *verdicts(1, "equal", "second"), *verdicts(2, "first", "second")]
    rate = Comparison(("a", "b"), tuple(mixed), {}).win_rate()
    assert (rate.wins, rate.losses, rate.ties, rate.rate) == (1, 1, 1, 0.5)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(64, 100, 0.5424, 0.7273), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 2, 0.0945, 0.9055)],
)
def test_the_interval_against_published_values(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


def test_the_interval_solves_its_equation():
    """Its ends are the shares p whose distance from the observed one is z standard errors of p."""
    for end in wilson_interval(37, 90, 0.9):
        assert abs(37 / 90 - end) == pytest.approx(1.6448536 * math.sqrt(end * (1 - end) / 90), rel=1e-6)
    for wrong in ((1, 0, 0.95), (3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)):
        with pytest.raises(LookaheadError, match="successes <= trials"):
            wilson_interval(*wrong)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (([GOOD], [BAD, BAD]), LookaheadError, "got 1 and 2 stories"),
        (([], []), LookaheadError, "got 0 and 0"),
        (([GOOD, " "], [BAD, BAD]), LookaheadError, r"the pairs \[1\] have a blank one"),
    ],
)
def test_stories_that_cannot_be_compared(server, judge, arguments, error, said):
    with pytest.raises(error, match=said):
        compare(judge, *arguments)
    for repeats in (0, 1.5, "3"):
        with pytest.raises(LookaheadError, match=f"repeats must be a whole number, 1 or more, got {repeats!r}"):
            compare(judge, [GOOD], [BAD], repeats=repeats)
    assert server.requests == []
    with pytest.raises(LookaheadError, match=r"criterion must be one of grammar, .*, verdict, got 'length'"):
        Comparison(("a", "b"), (), {}).win_rate("length")
