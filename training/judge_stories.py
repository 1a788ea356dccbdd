"""A language model judges the completions of two story runs (Appendix D.2).

    python -m training.judge_stories runs/stories/bst-cpu-seed0 runs/stories/fim-cpu-seed0 --judge gpt-4
    python -m training.judge_stories A B --goal unknown --judge llama --base_url http://localhost:8000/v1

The judge is a model behind any OpenAI-compatible endpoint; its key is in OPENAI_API_KEY. Every answer is written as it
comes, so the same command goes on after a fault. It ends with the win rates of the first run, with intervals.
"""

if not __package__:  # started as a file: `python training/judge_stories.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

import argparse
from collections.abc import Sequence
from pathlib import Path

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.judge import CRITERIA, OVERALL, REPEATS, Comparison, compare
from hf_mech.probing import ProbingError
from hf_mech.probing.chat_endpoint import OPENAI, ChatEndpoint, api_key_from_environment

from .engine import SettingsError
from .engine.run import OUTCOME_FILE
from .engine.tables import Table, print_markdown
from .stories.data import load_stories
from .stories.experiment import EXPERIMENT
from .stories.run import RunOutcome


def main(arguments: Sequence[str] | None = None) -> None:
    """Lets the judge compare two runs and prints the win rates."""
    parser = argparse.ArgumentParser(
        prog="python -m training.judge_stories",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", type=Path, help="the folder of a finished run of training.train_stories")
    parser.add_argument("second", type=Path, help="that of another run, with the same held-out stories")
    parser.add_argument("--judge", required=True, help="the judge's name at the endpoint")
    parser.add_argument("--base_url", default=OPENAI, help=f"the endpoint (default: {OPENAI})")
    parser.add_argument("--goal", choices=["known", "unknown"], default="known", help="known: the suffix was given")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"answers for each order (default: {REPEATS})")
    parser.add_argument("--max_tokens", type=int, default=1024, help="the most tokens of an answer (default: 1024)")
    parser.add_argument("--output", type=Path, help="the JSON of all verdicts (default: beside the first run)")
    args = parser.parse_args(arguments)
    try:
        judged(args)
    except (SettingsError, LookaheadError, ProbingError) as error:
        parser.exit(2, f"{error}\n")


def judged(args: argparse.Namespace) -> None:
    """The work of the command."""
    for folder in (args.first, args.second):
        if not (folder / OUTCOME_FILE).is_file():
            raise SettingsError(f"{folder} is no finished run: it has no {OUTCOME_FILE}. Train it first.")
    stories = whole_stories([EXPERIMENT.load(folder) for folder in (args.first, args.second)], args.goal == "known")
    names = (args.first.name, args.second.name)
    output = args.output or args.first.parent / f"{names[0]}-against-{names[1]}-goal-{args.goal}.json"
    key = api_key_from_environment("OPENAI_API_KEY")
    more = {"max_tokens": args.max_tokens, "request": {"temperature": 1}}  # repeats are to differ
    with ChatEndpoint(args.judge, args.base_url, api_key=key, **more) as judge:
        answers = output.with_suffix(".answers.jsonl")
        result = compare(judge, *stories, names=names, repeats=args.repeats, answers=answers)
    result.save(output)
    print_markdown(table(result).markdown())
    print(f"verdicts: {output}")


def whole_stories(outcomes: Sequence[RunOutcome], goal_known: bool) -> list[list[str]]:
    """The stories of each run, in the same order.

    Raises:
        SettingsError: the runs have not completed the same beginnings and ends.
    """
    wholes: list[list[str]] = []
    asked: list[tuple[str, str]] | None = None
    for outcome in outcomes:
        data = load_stories(outcome.settings)
        rows, decode = data.snippets[:], data.tokenizer.decode
        own = [(decode(a), decode(b)) for a, b in zip(rows["prefix_ids"], rows["suffix_ids"], strict=True)]
        if asked not in (None, own):
            names = " and ".join(outcome.settings.name for outcome in outcomes)
            raise SettingsError(
                f"The runs {names} have completed other stories: give both the same corpus, data_seed, vocabulary, "
                "prefix_tokens, suffix_tokens and eval_stories."
            )
        asked = own
        written = outcome.completions if goal_known else outcome.continuations
        wholes.append([a + text + (b if goal_known else "") for (a, b), text in zip(own, written, strict=True)])
    return wholes


def table(result: Comparison) -> Table:
    """The first model's win rate by each criterion and overall."""
    shown = Table(["criterion", f">{result.names[0]} wins", ">loses", ">ties", ">win rate, per cent", ">95 % interval"])
    for criterion in (OVERALL, *CRITERIA):
        of = result.win_rate(criterion)
        rate = "" if of.rate is None else f"{100 * of.rate:.0f}"
        interval = "" if of.interval is None else " to ".join(f"{100 * end:.0f}" for end in of.interval)
        name = "overall" if criterion == OVERALL else criterion
        shown.rows.append([name, str(of.wins), str(of.losses), str(of.ties), rate, interval])
    return shown


if __name__ == "__main__":
    main()
