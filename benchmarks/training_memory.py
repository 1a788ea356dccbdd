"""The memory that a training takes at its peak: the data and models of its preset, and fewer steps.

    python benchmarks/training_memory.py

Each command runs in an empty folder; the figure is the largest resident set of its process, the interpreter and the
libraries included, as the system reports it at the end (Linux). Each has some steps of its training and the
measurement after it, so what grows over all steps is not in it: nothing does but the losses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import arguments, report

from hf_mech.hub import measurement

ROOT = Path(__file__).resolve().parents[1]
SHORT = ["--steps", "20"]
FEW_TEXTS = ["--use_stack", "true", "--epochs", "1", "--max_train_characters", "60000", "--max_evaluation_blocks", "4"]
TRAININGS: dict[str, list[tuple[str, list[str]]]] = {
    "strips": [
        ("redraw", ["--domain", "blocksworld-3b", "--sizes", "500", "--num_seeds", "10", "--max_steps", "20"]),
        ("lifted", ["--domain", "blocksworld-3b", "--sizes", "500"]),
    ],
    "formal_languages": [
        ("cpu", ["--task", "reverse_string", *SHORT, "--restart_after", "0", "--test_samples", "4"]),
        ("even", ["--task", "solve_equation", "--model", "recurrent_stack", *SHORT, "--test_samples", "4"]),
    ],
    "lm": [
        ("cpu", ["--corpus", "stdlib", "--objective", "clm", *FEW_TEXTS]),
        ("nested", ["--dataset_name", "hf_mech/nested_text", "--dataset_config_name", "json", *FEW_TEXTS]),
    ],
    "belief_state": [
        (preset, ["--model", "bst", *SHORT, "--eval_graphs", "500", "--eval_steps", "20"])
        for preset in ("cpu", "cpu-long")
    ],
    "stories": [("cpu", ["--model", "bst", *SHORT, "--eval_stories", "4", "--num_rollouts", "0"])],
    "templatic": [("cpu", ["--model", "nano_gpt", *SHORT, "--eval_prompts", "20"])],
    "nested_functions": [("cpu", ["--model", "gpt2", *SHORT, "--eval_prompts", "20"])],
    "semi_formal": [("cpu", [*SHORT, "--num_eval", "20"])],
    "msat": [("cpu", ["--scenario", "my_way_home", *SHORT, "--eval_episodes", "4", "--curve_episodes", "4"])],
}


def peak_megabytes(name: str, preset: str, options: list[str]) -> float:
    """Trains in a folder of its own.

    Raises:
        RuntimeError: the training failed.
    """
    command = [sys.executable, "-m", f"training.train_{name}", "--preset", preset, *options, "--jobs", "1"]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "printed").open("w+b") as printed:
        command += ["--output_dir", f"{folder}/runs", "--cards_dir", f"{folder}/cards"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=printed)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            printed.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed:\n{printed.read().decode()[-2000:]}")
        return usage.ru_maxrss / 1024


def main() -> None:
    args = arguments(__doc__, __file__, runs=1)
    began, measured = time.perf_counter(), []
    for name, presets in TRAININGS.items():
        for preset, options in presets:
            peaks = [peak_megabytes(name, preset, options) for _ in range(args.runs)]
            setting = {"preset": preset, "options": " ".join(options)}
            measured.append(measurement("training_memory", name, setting, "peak_megabytes", peaks))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
