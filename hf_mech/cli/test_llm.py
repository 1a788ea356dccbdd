"""The command `hf-mech test-llm`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hf_mech.probing.language_models import LanguageModel
    from hf_mech.programs.llm_test.report import Row

_OF_ONE = "One variant"
_ENDPOINT = "A model behind an endpoint (--base-url)"
_PIPELINE = "A model of transformers"


def ask_llm(
    model: Annotated[
        str, typer.Argument(help="A model on the Hub, a folder, or a model's name at --base-url.", show_default=False)
    ],
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table of the paper, all rows: 2, 6, 7, 8, 9, 10 or all; may be repeated.", metavar="TABLE"
        ),
    ] = None,
    task: Annotated[str, typer.Option(help="k_shot_rlw, 1_shot_eng ...", rich_help_panel=_OF_ONE)] = "1_shot_rlw",
    split: Annotated[str, typer.Option(help="test, ood_lexical ...", rich_help_panel=_OF_ONE)] = "test",
    con_count: Annotated[
        int | None, typer.Option(help="Only prompts with that number of constituents.", rich_help_panel=_OF_ONE)
    ] = None,
    con_length: Annotated[
        int | None, typer.Option(help="Only prompts with constituents of that length.", rich_help_panel=_OF_ONE)
    ] = None,
    grammar: Annotated[
        bool, typer.Option("--grammar", help="Tell the model the grammar.", rich_help_panel=_OF_ONE)
    ] = False,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts for each variant; the paper has 100.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The data set's seed.")] = 0,
    no_system_prompt: Annotated[
        bool, typer.Option("--no-system-prompt", help="Bare prompts, for a model made for this task.")
    ] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="The most tokens of a reply.")] = 256,
    out: Annotated[Path, typer.Option(help="The folder of answers and results; a killed run goes on there.")] = Path(
        "test-llm"
    ),
    base_url: Annotated[
        str | None,
        typer.Option(
            help="An OpenAI-compatible endpoint, such as http://localhost:8000/v1.", rich_help_panel=_ENDPOINT
        ),
    ] = None,
    api_key_env: Annotated[
        str, typer.Option(help="The environment variable with the API key.", rich_help_panel=_ENDPOINT)
    ] = "OPENAI_API_KEY",
    timeout: Annotated[float, typer.Option(help="Seconds for a reply.", rich_help_panel=_ENDPOINT)] = 120.0,
    retries: Annotated[int, typer.Option(help="Further attempts.", rich_help_panel=_ENDPOINT)] = 6,
    deadline: Annotated[
        float, typer.Option(help="Seconds for a prompt, with all attempts and waits.", rich_help_panel=_ENDPOINT)
    ] = 600.0,
    max_reply_bytes: Annotated[
        int, typer.Option(help="The most bytes of a reply, also after decompression.", rich_help_panel=_ENDPOINT)
    ] = 4_000_000,
    concurrency: Annotated[int, typer.Option(help="Simultaneous requests.", rich_help_panel=_ENDPOINT)] = 4,
    request: Annotated[
        str | None,
        typer.Option(
            help="Further fields of the request, as JSON; null removes one.", rich_help_panel=_ENDPOINT, metavar="JSON"
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Prompts in a batch.", rich_help_panel=_PIPELINE)] = 8,
    device: Annotated[str | None, typer.Option(help="cpu, cuda:0 ...", rich_help_panel=_PIPELINE)] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 ...", rich_help_panel=_PIPELINE)] = "auto",
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run code that the checkpoint brings.", rich_help_panel=_PIPELINE),
    ] = False,
) -> None:
    """Test a language model on templatic generation, as the paper tested GPT-4 (Tables 2 and 6 to 10)."""
    from rich.console import Console

    from hf_mech.programs.llm_test.evaluate import evaluate
    from hf_mech.programs.llm_test.report import save_results, score_tables
    from hf_mech.programs.llm_test.variants import Variant

    rows = _rows(table or [])
    one = Variant(task, split, con_count, con_length, grammar)
    if rows and one != Variant():
        raise typer.BadParameter(
            "a table has its own tasks and splits; leave out the other options.", param_hint="--table"
        )
    variants = [row.variant for row in rows] or [one]
    pipeline = {"batch_size": batch_size, "device": device, "dtype": dtype, "trust_remote_code": trust_remote_code}
    limits = {"timeout": timeout, "retries": retries, "deadline": deadline, "max_reply_bytes": max_reply_bytes}
    endpoint = {**limits, "concurrency": concurrency, "request": _fields(request)}
    with (
        _endpoint(model, base_url, api_key_env, max_tokens=max_tokens, **endpoint)
        if base_url is not None
        else _pipeline(model, max_new_tokens=max_tokens, **pipeline)
    ) as tested:
        system = not no_system_prompt
        scores = evaluate(tested, variants, out, prompts=prompts, seed=seed, system=system)
        setting = {"seed": seed, "system_prompt": system, "model": tested.settings()}
        path = save_results(out / "results.json", tested.name, scores, setting)
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a file has room for the whole table
    console.print(*score_tables(tested.name, scores, rows), sep="\n")
    typer.echo(f"Wrote {path}")


def _rows(tables: list[str]) -> list[Row]:
    from hf_mech.programs.llm_test.report import TABLES

    names = list(dict.fromkeys(name for asked in tables for name in (TABLES if asked == "all" else [asked])))
    for name in names:
        if name not in TABLES:
            raise typer.BadParameter(f"must be {', '.join(TABLES)} or all, got {name}.", param_hint="--table")
    return [row for name in names for row in TABLES[name]]


def _fields(request: str | None) -> dict[str, Any]:
    try:
        fields = json.loads(request or "{}")
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"is no JSON: {error}", param_hint="--request") from error
    if not isinstance(fields, dict):
        raise typer.BadParameter(
            f'must be an object such as {{"seed": 1}}, got a {type(fields).__name__}', param_hint="--request"
        )
    return fields


@contextmanager
def _endpoint(model: str, base_url: str, api_key_env: str, **options: Any) -> Iterator[LanguageModel]:
    from hf_mech.probing.chat_endpoint import ChatEndpoint, api_key_from_environment

    with ChatEndpoint(model, base_url, api_key=api_key_from_environment(api_key_env), **options) as endpoint:
        yield endpoint


@contextmanager
def _pipeline(model: str, **options: Any) -> Iterator[LanguageModel]:
    from transformers.utils import logging

    from hf_mech.probing.language_models import TextPipeline

    logging.set_verbosity_error()  # only the bar and the table are shown
    yield TextPipeline.from_pretrained(model, **options)
