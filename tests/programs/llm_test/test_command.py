"""The command `hf-mech test-llm`: requests, tables and results; a killed run ends like a whole one."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.hub.files import held
from hf_mech.hub.results import Results
from hf_mech.programs.llm_test.report import TABLES
from hf_mech.programs.llm_test.variants import Variant, prompts_of, system_prompt
from tests.programs.llm_test.answers import answers
from tests.programs.llm_test.chat_server import ChatServer, completion
from tests.programs.templatic.regex_solver import solve

ROOT = Path(__file__).parents[3]
runner = CliRunner()


@pytest.fixture
def server():
    with ChatServer() as running:
        yield running


def run(server, out, *options):
    return runner.invoke(app, ["test-llm", "solver", "--base-url", server.url, "--out", str(out), *map(str, options)])


def test_tables_against_a_server_that_solves_the_prompts(server, tmp_path):
    done = run(server, tmp_path, "--table", "6", "--table", "10", "--prompts", 4)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert ["solver,", "Table", "6"] in lines
    assert ["1_shot_rlw", "ood_cons_count_10", "10", "1,2,4", "4", "1.00", "1.00", "0.23"] in lines
    results = Results.load(tmp_path / "results.json")
    whole = [entry for entry in results.results if not entry.setting.keys() & {"of_con_count", "of_longest_con_length"}]
    assert [entry.values for entry in results.results] == [[1.0]] * len(results.results)
    rows = [*TABLES["6"], *TABLES["10"]]
    matches = [entry for entry in whole if entry.metric == "exact_match"]
    assert [(entry.config, entry.setting["split"], entry.paper.mean) for entry in matches] == [
        (row.variant.task, row.variant.split, row.paper) for row in rows
    ]
    assert matches[0].paper.where == "Table 6 and Table 7, gpt-4, 100 prompts"
    assert matches[0].setting["con_count"] == matches[0].setting["con_length"] == 1
    assert {entry.setting["prompts"] for entry in whole} == {4}
    assert len(server.requests) == 4 * len(rows)
    assert {request["messages"][0]["content"] for _, request in server.requests} == {system_prompt()}


def test_the_paper_is_not_told_of_prompts_it_did_not_have(server, tmp_path):
    assert run(server, tmp_path, "--task", "2_shot_rlw", "--prompts", 2).exit_code == 0
    assert {entry.paper for entry in Results.load(tmp_path / "results.json").results} == {None}


def test_grammar_and_no_system_prompt(server, tmp_path):
    assert run(server, tmp_path / "a", "--grammar", "--prompts", 2).exit_code == 0
    assert run(server, tmp_path / "b", "--no-system-prompt", "--prompts", 2).exit_code == 0
    messages = [[message["content"] for message in request["messages"]] for _, request in server.requests]
    prompts = [prompt.text for prompt in prompts_of(Variant(), count=2)]
    assert sorted(messages) == sorted(
        [*([system_prompt(grammar=True), text] for text in prompts), *([t] for t in prompts)]
    )
    assert Results.load(tmp_path / "a" / "results.json").results[0].paper.mean == 0.8


def test_accuracy_is_that_of_the_replies(server, tmp_path):
    """Every third reply is wrong in its own way: a lost symbol, a word too many, a full stop that is stuck, nothing."""
    prompts = [prompt.text for prompt in prompts_of(Variant(), count=30)]
    spoil = [lambda t: t.partition(" ")[2], lambda t: f"A {t}", lambda t: t.replace(" .", "."), lambda t: ""]

    def answer(request):
        prompt = request["messages"][-1]["content"]
        index = prompts.index(prompt)
        right = solve(prompt)
        return f" {right}\n" if index % 3 else spoil[index // 3 % 4](right)

    server.answer = answer
    assert run(server, tmp_path, "--prompts", 30).exit_code == 0
    assert [record["correct"] for record in answers(tmp_path)] == [index % 3 != 0 for index in range(30)]
    exact, constituents, *parts = Results.load(tmp_path / "results.json").results
    assert (exact.metric, exact.values) == ("exact_match", [20 / 30])
    assert constituents.metric == "constituent_accuracy"
    assert 20 / 30 < constituents.values[0] < 1
    for name in ("of_con_count", "of_longest_con_length"):
        groups = [part for part in parts if name in part.setting]
        assert [part.setting[name] for part in groups] == [1, 2, 4]
        assert sum(part.setting["prompts"] for part in groups) == 30
        assert sum(part.setting["prompts"] * part.values[0] for part in groups) == pytest.approx(20)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(tmp_path):
    """SIGKILL while the server holds back a reply; what was written stays, and nothing of it is asked again."""
    count, before = 12, 5
    held, release = threading.Event(), threading.Event()

    def hold(request):
        held.set()
        release.wait(60)
        return 500, {}, ""

    with ChatServer() as server:
        command = [sys.executable, "-m", "hf_mech.cli", "test-llm", "solver", "--base-url", server.url]
        command += ["--prompts", str(count), "--out", str(tmp_path / "killed"), "--concurrency", "1"]
        prompts = [prompt.text for prompt in prompts_of(Variant(), count=count)]
        server.answer = lambda request: solve(request["messages"][-1]["content"])
        server.first.extend([None] * before + [hold])
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            assert held.wait(120)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            release.set()
        assert not (tmp_path / "killed" / "results.json").exists()
        assert len(answers(tmp_path / "killed")) == before
        asked = len(server.requests)
        done = run(server, tmp_path / "killed", "--prompts", count, "--concurrency", 1)
        assert done.exit_code == 0, done.output
        assert [request["messages"][-1]["content"] for _, request in server.requests[asked:]] == prompts[before:]
        assert run(server, tmp_path / "whole", "--prompts", count).exit_code == 0
    assert answers(tmp_path / "killed") == answers(tmp_path / "whole")
    killed, whole = (Results.load(tmp_path / name / "results.json").results for name in ("killed", "whole"))
    assert [(e.setting | {"model": 0}, e.values) for e in killed] == [
        (e.setting | {"model": 0}, e.values) for e in whole
    ]


def test_a_failing_server_ends_the_run_with_one_message_and_the_next_goes_on(server, tmp_path):
    server.first.extend([None] * 3 + [(500, {}, "out of memory")] * 9)
    done = run(server, tmp_path, "--prompts", 8, "--concurrency", 1, "--retries", 0)
    assert done.exit_code == 1
    assert done.stderr.strip().splitlines()[-1].startswith("hf-mech: ")
    assert "status 500 after 0 retries: out of memory" in done.stderr
    assert len(answers(tmp_path)) == 3
    server.first.clear()
    assert run(server, tmp_path, "--prompts", 8).exit_code == 0
    assert [record["correct"] for record in answers(tmp_path)] == [True] * 8


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--table", "3"], 2, "must be 2, 6, 7, 8, 9, 10 or all"),
        (["--table", "6", "--grammar"], 2, "leave out the other options"),
        (["--request", "{"], 2, "is no JSON"),
        (["--request", "[]"], 2, "must be an object"),
        (["--prompts", "0"], 2, "greater than or equal to 1"),
        (["--task", "1_shot"], 1, "hf-mech: The task must be one of"),
        (["--con-count", "5"], 1, "hf-mech: con_count must be one of 1, 2, 4"),
        (["--base-url", "nowhere"], 1, "hf-mech: The endpoint's address must look like"),
    ],
)
def test_wrong_command_lines(server, tmp_path, options, code, said):
    done = run(server, tmp_path / "out", *options)
    assert done.exit_code == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not server.requests
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_model_of_transformers_that_learned_four_of_the_answers(tmp_path):
    """A tiny GPT-2, trained here on the first four prompts as they are asked, gets these right by the command line."""
    prompts = prompts_of(Variant(con_count=1, con_length=1), count=6)
    texts = [f"{system_prompt()}\n\n{prompt.text}" for prompt in prompts]
    words = {word for text in texts for word in text.split()}
    ids = {word: number for number, word in enumerate(["<eos>", "<unk>", *sorted(words)])}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    special = {"eos_token": "<eos>", "unk_token": "<unk>"}
    # A tokenizer that by itself would write "ab." for "ab .".
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=True, **special)
    config = GPT2Config(
        vocab_size=len(ids), n_positions=128, n_embd=64, n_layer=2, n_head=2, eos_token_id=0, bos_token_id=0
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    pairs = zip(texts[:4], prompts[:4], strict=True)
    learned = [fast(f"{text} {prompt.completion} <eos>")["input_ids"] for text, prompt in pairs]
    for _ in range(40):
        for row in learned:
            optimizer.zero_grad()
            model(input_ids=torch.tensor([row]), labels=torch.tensor([row])).loss.backward()
            optimizer.step()
    model.save_pretrained(tmp_path / "model")
    fast.save_pretrained(tmp_path / "model")

    command = ["test-llm", str(tmp_path / "model"), "--con-count", "1", "--con-length", "1", "--prompts", "6"]
    command += ["--max-tokens", "8", "--batch-size", "3", "--device", "cpu", "--out", str(tmp_path / "out")]
    done = runner.invoke(app, command)
    assert done.exit_code == 0, done.output
    records = answers(tmp_path / "out", "1_shot_rlw.test.count-1.length-1")
    assert [record["correct"] for record in records] == [True] * 4 + [False] * 2
    assert Results.load(tmp_path / "out" / "results.json").results[0].values == [4 / 6]


def test_a_model_that_is_not_there(tmp_path):
    done = runner.invoke(app, ["test-llm", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "hf-mech: " in done.stderr
    assert "cannot be loaded as a causal language model" in done.stderr


@pytest.mark.slow
def test_the_command_line_starts_without_what_only_this_command_needs():
    ours = ("hf_mech.programs.templatic", "hf_mech.programs.llm_test")
    code = f"import sys, hf_mech.cli; print([m for m in sys.modules if m.startswith({ours})])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert eval(done.stdout) == []


# ------------------------------------------------------------------------------------------------------------- secrets


def written_in(folder):
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.slow
def test_no_secret_is_written_or_printed(server, tmp_path):
    """The server repeats the key, and a token of the environment, in an error and in an answer."""
    secrets = {"MY_API_KEY": "key-of-the-server", "HF_TOKEN": "token-of-the-hub"}
    request = {"extra": {"n": 1}, "user": "u"}
    command = [sys.executable, "-m", "hf_mech.cli", "test-llm", "solver", "--base-url", server.url]
    command += ["--api-key-env", "MY_API_KEY", "--request", json.dumps(request), "--retries", "0", "--prompts", "3"]
    command += ["--out", str(tmp_path / "out"), "--concurrency", "1"]
    echo = "no: key-of-the-server, token-of-the-hub"
    server.first.extend([(200, {}, completion(echo)), (400, {}, json.dumps({"error": {"message": echo}}))])
    environment = {**os.environ, **secrets, "PYTHONPATH": str(ROOT)}
    failed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert failed.returncode == 1
    assert "no: ***, ***" in failed.stderr
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    headers, body = server.requests[0]
    assert headers["Authorization"] == "Bearer key-of-the-server"
    assert body["extra"] == request["extra"]
    written = written_in(tmp_path / "out") + (failed.stdout + failed.stderr + done.stdout + done.stderr).encode()
    for secret in secrets.values():
        assert secret.encode() not in written
    results = Results.load(tmp_path / "out" / "results.json")
    assert results.results[0].setting["model"]["extra"] == request["extra"]
    assert "--api-key-env MY_API_KEY" in results.command
    assert json.loads((tmp_path / "out" / "run.json").read_text())["model"]["user"] == "u"


def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path):
    command = ["test-llm", "m", "--base-url", "http://me:pass-word@127.0.0.1:1/v1", "--out", str(tmp_path / "out")]
    done = runner.invoke(app, command)
    assert done.exit_code == 1
    assert "must not hold a user name or password" in done.stderr
    assert "pass-word" not in done.output
    assert not (tmp_path / "out").exists()


def test_a_wrong_request_is_not_repeated_with_its_key(server, tmp_path):
    done = run(server, tmp_path, "--request", '[{"api_key": "key-in-the-request"}]')
    assert done.exit_code == 2
    assert "must be an object" in " ".join(done.stderr.replace("│", " ").split())
    assert "key-in-the-request" not in done.stderr


def test_the_traceback_of_a_bug_shows_no_secret(server, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyError("key-of-the-server")

    monkeypatch.setenv("MY_API_KEY", "key-of-the-server")
    monkeypatch.setattr("hf_mech.programs.llm_test.evaluate.evaluate", fail)
    done = run(server, tmp_path, "--api-key-env", "MY_API_KEY")
    assert done.exit_code == 1
    assert "Traceback" in done.stderr
    assert "KeyError: '***'" in done.stderr
    assert "key-of-the-server" not in done.output


# ------------------------------------------------------------------------------------------- one folder, and full disks


def test_two_commands_in_one_folder(server, tmp_path):
    """The second is refused in one line while the first has the folder."""
    out = tmp_path / "out"
    with held(out):
        second = run(server, out, "--prompts", 3)
    assert second.exit_code == 1
    assert f"hf-mech: Another process writes answers to {out}." in second.stderr
    assert not server.requests
    assert run(server, out, "--prompts", 3).exit_code == 0
    assert len(answers(out)) == len(server.requests) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "inside"):
        done = run(server, out, "--prompts", 1)
        assert done.exit_code == 1
        (line,) = [line for line in done.stderr.splitlines() if line]
        assert line.startswith(f"hf-mech: {tmp_path}")
        assert "cannot be written: " in line
    assert not server.requests
