"""`hf-mech compile | run | trace`: what they print and write, and how they fail."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.cli.open_program import OpenedProgram
from hf_mech.programs.psl.library import program_names, program_text, read_program
from hf_mech.programs.psl.machines import PSM

ROOT = Path(__file__).parents[2]
SWAP = "Q B V D E A D E V B . Q F G H V K L A"
ENGLISH = "Q blicket => dax A dax or not blicket . Q wug => fep A"
FIVE_LINES = """registers: {symbol: 's', position: 'p', before: 'b'}
system: {symbol: symbol, position: position, output: symbol}
where position[n] == position[N]@pos_decrement:
    before[N] = symbol[n]
where_rm before[n] == symbol[N]:
    symbol[N] = symbol[n]
"""
NEWCOMER = """
from hf_mech.cli import app
app(["compile", "induction.psl", "-o", "induction"], standalone_mode=False)

from transformers import AutoModelForCausalLM, AutoTokenizer
model, tokenizer = (auto.from_pretrained("induction") for auto in (AutoModelForCausalLM, AutoTokenizer))
prompt = tokenizer("red green blue red green blue red", return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=3)[0, prompt["input_ids"].shape[1]:]))
"""

runner = CliRunner()


def hf_mech(*arguments: object, stdin: str | None = None) -> Result:
    return runner.invoke(app, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture(scope="module")
def pargen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled") / "pargen"
    done = hf_mech("compile", "pargen", "-o", folder)
    assert (done.exit_code, done.stderr) == (0, "")
    return folder


def refused(done: Result, *said: str) -> None:
    """One message on stderr, code 1, nothing else."""
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("hf-mech: ")
    assert "Traceback" not in done.stderr
    for text in said:
        assert text in done.stderr


# ------------------------------------------------------------------------------------------------------------- compile


@pytest.mark.slow
def test_a_five_line_program_is_compiled_and_loaded_by_auto_classes(tmp_path: Path) -> None:
    (tmp_path / "induction.psl").write_text(FIVE_LINES)
    done = subprocess.run(
        [sys.executable, "-c", NEWCOMER],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\ngreen blue red\n")


def test_compile_says_what_it_made(pargen: Path, tmp_path: Path) -> None:
    done = hf_mech("compile", "pargen", "-o", tmp_path / "small", "--max-position-embeddings", 30)
    numbers = dict(re.findall(r"^ (\w+) +([\d,]*\d)", done.stdout, re.MULTILINE))
    files = [path for path in (tmp_path / "small").iterdir() if path.is_file()]
    assert numbers.pop("weights").isdecimal()
    size = sum(path.stat().st_size for path in files)
    assert numbers == {"registers": "16", "layers": "31", "positions": "30", "bytes": f"{size:,}"}
    assert (tmp_path / "small" / "program.psl").read_text() == program_text("pargen")
    assert json.loads((pargen / "config.json").read_text())["max_position_embeddings"] == 512
    assert [path.name for path in tmp_path.iterdir()] == ["small"]  # nothing half-written is left


def test_compile_with_dense_vectors_and_heads(tmp_path: Path) -> None:
    sizes = ("--max-position-embeddings", 30, "--num-open-values", 200)
    options = ("--embedding", "distributed", "--filler-dim", 49, "--heads")
    done = hf_mech("compile", "pargen", "-o", tmp_path / "dense", *sizes, *options)
    assert done.exit_code == 0, done.stderr
    assert "distributed, 784 dimensions" in done.stdout
    assert " 28, of up to 2 heads" in done.stdout
    assert hf_mech("run", tmp_path / "dense", "Q a b A b . Q c b A").stdout.strip() == "b ."
    refused(hf_mech("compile", "pargen", "-o", tmp_path / "narrow", *sizes, "--filler-dim", 49), "embedding='local'")
    assert not (tmp_path / "narrow").exists()


def test_compile_replaces_a_checkpoint_only_if_told_and_no_other_file(tmp_path: Path) -> None:
    source, folder = tmp_path / "induction.psl", tmp_path / "made"
    source.write_text(FIVE_LINES)
    assert hf_mech("compile", source, "-o", folder).exit_code == 0
    refused(hf_mech("compile", source, "-o", folder), "is not empty", "--force")
    source.write_text(FIVE_LINES.replace("where_rm", "where_lm"))
    assert hf_mech("compile", source, "-o", folder, "--force").exit_code == 0
    assert "where_lm" in (folder / "program.psl").read_text()
    (folder / "notes.txt").write_text("mine")
    source.write_text(FIVE_LINES)
    refused(hf_mech("compile", source, "-o", folder, "--force"), "notes.txt")
    assert "where_lm" in (folder / "program.psl").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["induction.psl", "made"]


def test_a_program_that_cannot_be_compiled_leaves_no_folder(tmp_path: Path) -> None:
    source, folder = tmp_path / "bad.psl", tmp_path / "made"
    source.write_text(FIVE_LINES.replace("symbol[n]\nwhere_rm", "symbol[n)\nwhere_rm"))
    done = hf_mech("compile", source, "-o", folder)
    refused(done, f"{source}, line 4, column ", "    before[N] = symbol[n)\n")
    assert done.stderr.splitlines()[-1].strip() == "^"
    source.write_text(FIVE_LINES.replace("before[n] ==", "befor[n] =="))
    refused(hf_mech("compile", source, "-o", folder), "line 5", "befor", "Did you mean `before`?")
    refused(hf_mech("compile", tmp_path / "none.psl", "-o", folder), "none.psl", "pargen")
    refused(hf_mech("compile", "pargne", "-o", folder), "pargne", "pargen")
    assert not folder.exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("where", ["mkdir", "write_text"])
def test_compile_to_a_full_or_read_only_disk(
    code: int, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "induction.psl", tmp_path / "made"
    source.write_text(FIVE_LINES)

    def fail(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, where, fail)
    done = hf_mech("compile", source, "-o", folder)
    refused(done, str(tmp_path), "made", f"cannot be written: {os.strerror(code)}")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["induction.psl"]


def test_run_restores_a_checkpoint_whose_replacement_was_killed(pargen: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    shutil.copytree(pargen, tmp_path / ".made.old")  # a kill between the two renames
    done = hf_mech("run", folder, SWAP)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "K L V F G H .\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


# ----------------------------------------------------------------------------------------------------------------- run


@pytest.mark.parametrize("machine", ["dat", "psm", "qkvm"])
@pytest.mark.parametrize("compiled", [True, False])
def test_run_completes_prompts_on_each_machine(machine: str, compiled: bool, pargen: Path) -> None:
    done = hf_mech("run", pargen if compiled else "pargen", SWAP, ENGLISH, "--machine", machine)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "K L V F G H .\nfep or not wug .\n", "")


@pytest.mark.parametrize("machine", ["dat", "psm", "qkvm"])
@pytest.mark.parametrize("word", ["<nil>", "<eop>", "b<nil>c"])
def test_run_takes_every_text_as_data(machine: str, word: str, tmp_path: Path) -> None:
    """`id.psl`, the program that copies the symbol."""
    source = tmp_path / "id.psl"
    source.write_text(
        "".join(FIVE_LINES.splitlines(True)[:2]) + "where position[N] == position[N]:\n    symbol[N] = symbol[N]\n"
    )
    done = hf_mech("run", source, f"a {word}", "--machine", machine, "--max-new-tokens", 2)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{word} {word}\n", "")


@pytest.mark.parametrize("machine", ["dat", "psm"])
def test_run_reads_stdin_line_by_line(machine: str, pargen: Path) -> None:
    lines = f"{SWAP}\n\n{ENGLISH}\n{SWAP}"
    done = hf_mech("run", pargen, "--machine", machine, "--batch-size", 3, "--max-new-tokens", 3, stdin=lines)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "K L V\n\nfep or not\nK L V\n"


def test_run_meets_any_number_of_words(tmp_path: Path) -> None:
    """Twelve open places: those of one batch."""
    lines = "".join(f"Q a{i} + b{i} A b{i} + a{i} Q c{i} + d{i} A\n" for i in range(12))
    folder = tmp_path / "pargen"
    assert hf_mech("compile", "pargen", "-o", folder, "--num-open-values", 12).exit_code == 0
    for program in (("pargen", "--num-open-values", 12), (folder,)):
        done = hf_mech("run", *program, "--batch-size", 2, stdin=lines)
        assert (done.exit_code, done.stdout) == (0, "".join(f"d{i} + c{i}\n" for i in range(12)))


def test_run_warns_of_what_the_grammar_forbids(pargen: Path) -> None:
    repeated = "Q a a + b A b a Q c + d A"
    done = hf_mech("run", pargen, repeated, "Q is no prompt of the grammar", SWAP)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 3
    _, warning, *no_prompts, cut = done.stderr.split("hf-mech: warning: ")
    assert len(no_prompts) == 2
    assert cut.startswith("prompt 2: The completion was cut")
    assert all("no prompt of templatic generation" in text for text in no_prompts)
    assert "'a': no symbol can be repeated within the <question> of example 1" in warning


@pytest.mark.parametrize("machine", ["dat", "psm", "qkvm"])
def test_run_tells_that_a_completion_was_cut(machine: str, pargen: Path, tmp_path: Path) -> None:
    done = hf_mech("run", pargen, "a", SWAP, "--machine", machine)
    assert (done.exit_code, done.stdout) == (0, f"{' '.join(['a'] * 64)}\nK L V F G H .\n")
    (note,) = done.stderr.splitlines()
    assert note.startswith("hf-mech: warning: prompt 1: The completion was cut after 64 words")
    assert "(nil or 'Q'). --max-new-tokens" in note
    assert "This is no prompt of templatic generation. " in note
    source = tmp_path / "induction.psl"
    source.write_text(FIVE_LINES)
    (note,) = hf_mech("run", source, "a b a", "--machine", machine).stderr.splitlines()
    assert note.endswith("cut after 64 words: the program did not end it (nil). --max-new-tokens sets another bound.")


def test_a_bound_that_the_user_set_needs_no_note(pargen: Path) -> None:
    for command in ("run", "trace"):
        assert hf_mech(command, pargen, "a", "--max-new-tokens", 64).stderr == ""
    assert "cut after 64 words" in hf_mech("trace", pargen, "a", "--generate").stderr


def test_a_program_without_q_and_a_has_no_grammar(tmp_path: Path) -> None:
    (tmp_path / "induction.psl").write_text(FIVE_LINES)
    done = hf_mech("run", tmp_path / "induction.psl", "Q a a A a Q b A", "--max-new-tokens", 1)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "a\n", "")


@pytest.mark.parametrize("machine", ["dat", "psm", "qkvm"])
def test_a_prompt_that_is_too_long(machine: str, pargen: Path) -> None:
    options = ("--machine", machine, "--max-position-embeddings", 22)
    refused(hf_mech("run", "pargen", SWAP, *options), "22", "\nOn the command line: --max-position-embeddings ")
    done = hf_mech("run", pargen, "a " * 600, "--machine", machine)
    refused(done, "512", "hf-mech compile ... --max-position-embeddings ")


def test_the_prompts_before_a_wrong_one_are_completed(pargen: Path) -> None:
    done = hf_mech("run", pargen, stdin=f"{SWAP}\n{'a ' * 600}\n{SWAP}\n")
    assert (done.exit_code, done.stdout) == (1, "K L V F G H .\n")
    assert done.stderr.startswith("hf-mech: prompt 2: ")


def test_a_block_that_does_not_end_and_places_that_do_not_suffice(tmp_path: Path) -> None:
    source = tmp_path / "endless.psl"
    source.write_text(
        FIVE_LINES.replace("where_rm", "repeat 7:\n    where_rm").replace(
            "symbol[N]:\n    symbol[N] = symbol[n]", "symbol[N]:\n        before[N] = symbol[n]\n"
        )
        + 'until symbol[n] == "never"\n'
    )
    for machine in ("dat", "psm"):
        refused(hf_mech("run", source, "a b a", "--machine", machine), "7 repetitions")
    refused(hf_mech("run", "pargen", SWAP, "--num-open-values", 3), "3 different words", "--num-open-values")


def test_what_is_no_program_and_no_prompt(pargen: Path, tmp_path: Path) -> None:
    refused(hf_mech("run", "nowhere", "a"), "nowhere", "pargen_k_shot")
    refused(hf_mech("run", tmp_path, "a"), str(tmp_path), "config.json")
    refused(hf_mech("run", pargen, " "), "no word")
    refused(hf_mech("run", pargen, "a", "--num-open-values", 9), "is a checkpoint", "num_open_values")
    for config in ("no JSON", '{"model_type": "gpt2"}', '{"model_type": "dat", "qkvl": {}}'):
        (tmp_path / "config.json").write_text(config)
        refused(hf_mech("trace", tmp_path, "a"))
    assert hf_mech("run", pargen, "a", "--machine", "tm").exit_code == 2


def test_the_text_of_another_program_is_not_run_as_the_checkpoint(pargen: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in pargen.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "program.psl").write_text(FIVE_LINES)
    assert hf_mech("run", folder, SWAP, "--machine", "qkvm").exit_code == 0
    refused(hf_mech("run", folder, SWAP, "--machine", "psm"), "program.psl")
    (folder / "program.psl").unlink()
    refused(hf_mech("run", folder, SWAP, "--machine", "psm"), "program.psl")


# --------------------------------------------------------------------------------------------------------------- trace


def rows_of(text: str, title: str) -> dict[str, list[str]]:
    """The rows of the table below a title, by their first words."""
    lines = text[text.index(title) :].split("\n\n")[0].splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("──"))
    return {line.split()[0]: line.split()[1:] for line in lines[rule + 1 :] if not line.startswith("Layer")}


def test_trace_of_swap_shows_the_papers_parse(pargen: Path) -> None:
    done = hf_mech("trace", pargen, SWAP)
    assert (done.exit_code, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert done.stdout.endswith("First word of the completion: K\n")
    # (36): five delimiters and the constituents; what P5b says of the cue's V.
    changed = rows_of(done.stdout, "Layer 14  P5b: ")
    assert (changed["field"].index("*3"), changed["type"].index("*D")) == (15, 15)
    assert sum(value.startswith("*") for row in changed.values() for value in row) == 2
    final = rows_of(done.stdout, "The parse:")
    assert final["region"] == ["XQ"] * 5 + ["XA"] * 6 + ["CQ"] * 7 + ["CA"]
    assert final["field"][:18] == [
        *("FQ", "2", "3", "4", "4"),
        *("FA", "4", "4", "3", "2", "11"),
        *("FQ", "2", "2", "2", "3", "4", "4"),
    ]
    assert final["symbol"] == [*SWAP.split()[:-1], "K"]


def test_trace_marks_exactly_what_changed(pargen: Path) -> None:
    """Against the states themselves: the marks are the differences, the values the states, of every layer."""
    names = ["region", "field", "type", "index", "symbol"]
    shown = hf_mech("trace", pargen, SWAP, "--all", "--registers", ",".join(names)).stdout
    tables = [text for text in shown.split("\n\n") if re.match(r"Layer \d+  ", text)]
    steps = PSM(read_program("pargen")).run(SWAP, max_new_tokens=1).trace[0]
    assert len(tables) == len(steps) - 1
    for (before, after), table in zip(pairwise(steps), tables, strict=True):
        assert table.startswith(f"Layer {after.path.production}  ")
        expected = {
            name: [("*" if old[name] != new[name] else "") + str(new[name] or "·") for old, new in cells]
            for name in names
            for cells in [list(zip(before.cells, after.cells, strict=True))]
        }
        rows = rows_of(table, "Layer")
        assert rows == {name: expected[name] for name in rows}
        assert {"region", "field", "type", "index"} <= rows.keys()


def test_trace_wraps_long_prompts_and_follows_generation(tmp_path: Path) -> None:
    prompt = " ".join(f"word{i}" for i in range(30))
    source = tmp_path / "induction.psl"
    source.write_text(FIVE_LINES)
    done = hf_mech("trace", source, f"{prompt} word3", "--generate", "--max-new-tokens", 4, "--machine", "qkvm")
    assert max(map(len, done.stdout.splitlines())) <= 120
    parse = done.stdout[done.stdout.index("The parse:") :]
    befores = [word for line in parse.splitlines() if line.startswith("before") for word in line.split()[1:]]
    assert befores == ["·", *prompt.split(), "word3", "word4", "word5"]
    assert re.findall(r"^Generated cell (.*)", done.stdout, re.MULTILINE) == ["32 word4", "33 word5", "34 word6"]
    assert done.stdout.endswith("Completion: word4 word5 word6 word7\n")


def test_trace_chooses_layers_and_registers(pargen: Path) -> None:
    done = hf_mech("trace", pargen, SWAP, "--layer", "P5b", "--layer", "23", "--registers", "field,d")
    assert re.findall(r"^Layer (\d+)", done.stdout, re.MULTILINE) == ["14", "23"]
    assert list(rows_of(done.stdout, "The parse:")) == ["field", "index"]
    everything = hf_mech("trace", pargen, SWAP, "--layer", "1", "--registers", "all")
    assert len(rows_of(everything.stdout, "The parse:")) == 16
    refused(hf_mech("trace", pargen, SWAP, "--registers", "regoin"), "'regoin'", "`region`")
    refused(hf_mech("trace", pargen, SWAP, "--layer", "P5x"), "'P5x'", "31")
    refused(hf_mech("trace", pargen, SWAP, "--layer", "32"), "'32'", "31")


def test_a_program_without_comments_has_no_names_of_layers(tmp_path: Path) -> None:
    source = tmp_path / "induction.psl"
    source.write_text(FIVE_LINES)
    done = hf_mech("trace", source, "a b a", "--layer", 9)
    refused(done, "no layer '9': give a number from 1 to 2")
    assert "Known" not in done.stderr


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_trace_refuses_a_file_in_no_folder_before_it_runs(option: str, pargen: Path, tmp_path: Path) -> None:
    for file in (tmp_path / "none" / "trace", tmp_path):
        done = hf_mech("trace", pargen, SWAP, option, file)
        refused(done, f"{file} cannot be written: name a file in a folder that exists")
        assert not done.stdout


@pytest.mark.parametrize("command", ["compile", "run", "trace"])
def test_too_many_positions_are_refused_before_tables_are_made(command: str, tmp_path: Path) -> None:
    source = tmp_path / "induction.psl"
    source.write_text(FIVE_LINES)
    rest = ["-o", tmp_path / "made"] if command == "compile" else ["a b a", "--machine", "psm"]
    done = hf_mech(command, source, *rest, "--max-position-embeddings", 10**15)
    refused(done, "max_position_embeddings may be at most 1,000,000, got 1,000,000,000,000,000")


def test_trace_writes_json_and_html(pargen: Path, tmp_path: Path) -> None:
    data, page = tmp_path / "trace.json", tmp_path / "trace.html"
    done = hf_mech("trace", pargen, SWAP, "--generate", "--json", data, "--html", page)
    assert done.exit_code == 0
    assert f"Wrote {data}" in done.stdout
    saved = json.loads(data.read_text())
    run = OpenedProgram("pargen").run(SWAP, machine="psm")
    assert saved["completion"] == run.completion
    assert [[(s["layer"], tuple(s["repetitions"]), tuple(s["cells"])) for s in steps] for steps in saved["trace"]] == [
        [(*step.path, step.cells) for step in steps] for steps in run.trace
    ]
    text = page.read_text()
    assert "P5b: a symbol of CQ that repeats one of XQ" in text
    assert "*XQ" not in text  # highlighted instead


# -------------------------------------------------------------------------------------------------------------- README


def test_the_commands_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "hf_mech/programs/psl/README.md").read_text("utf-8").split("\n## Commands\n")[1]
    program, commands = re.search(r"<<'END'\n(.*?)END\n(.*?)```", section, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    Path("induction.psl").write_text(program)
    said = []
    for command in commands.splitlines():
        name, *arguments = shlex.split(command)
        done = hf_mech(*arguments)
        assert (name, done.exit_code, done.stderr) == ("hf-mech", 0, ""), command
        if arguments[0] == "run":
            said.append(done.stdout.strip())
    assert said == ["green blue red", "c b a", "low low middle high", "K L V F G H ."]


def test_an_empty_completion_says_how_the_program_is_prompted() -> None:
    done = hf_mech("run", "sort", "3 1 2")
    assert (done.exit_code, done.stdout) == (0, "\n")
    assert "The completion is empty. sort says of itself:" in done.stderr
    assert "Prompt: the order, words that differ; then `|`; then the words to be sorted" in done.stderr
    assert hf_mech("run", "sort", "1 2 3 | 3 1 2").stderr == ""


def test_programs_are_listed_with_what_they_say_of_themselves() -> None:
    listed = hf_mech("programs").stdout
    assert all(name in listed for name in program_names())
    assert "Sorts words by an order that the prompt gives." in listed
    assert "a b c | c a b a   ->   a a b c" in listed
    assert "Prompt: the order" in hf_mech("programs", "sort").stdout
    refused(hf_mech("programs", "sorted"), "there is no program 'sorted'")
