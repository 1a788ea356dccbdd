"""The files of answers that a run of the test writes."""

import json


def answers(out, variant="1_shot_rlw.test"):
    """The records without the times, which no two runs have in common."""
    lines = (out / "answers" / f"{variant}.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]
