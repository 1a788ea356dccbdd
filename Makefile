# Every target sets up what it needs: the first call installs into .venv, the next start at once.

PYTHON      ?= python3
PIP         ?= $(BIN)/python -m pip
CONSTRAINTS ?= constraints.txt# empty: the versions that the installer chooses
VENV        := .venv
BIN         := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP       := $(VENV)/.installed
PYTEST      := $(BIN)/python -m pytest
JOBS        ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-gpu test-browser lint format bench docs site release-check wheel-check checkpoints table1 stack-table stack-lm templatic-table rules-table nested-table dat-table msat-table machines-table lifted-table faults clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## set up .venv, if that has not been done

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hf_mech needs Python 3.11 or newer, this is " \
	  + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(CONSTRAINTS),$(PIP) install --quiet --no-compile -c $(CONSTRAINTS) torch)
	$(PIP) install --quiet --no-compile $(addprefix -c ,$(CONSTRAINTS)) -e '.[dev]'
	@touch $@

demo: $(STAMP) ## learn a hidden planning domain, save it, load it again, prove it right
	$(BIN)/hf-mech demo

test: $(STAMP) ## the quick test suite
	$(PYTEST) -n $(JOBS) --dist loadfile

test-slow: $(STAMP) ## the tests that take minutes
	$(PYTEST) -n $(JOBS) --dist loadfile -m "slow and not docs and not gpu and not browser"

test-gpu: $(STAMP) ## the tests that need a CUDA device
	$(PYTEST) -m gpu

test-browser: $(STAMP) ## the site and the explorer in a browser, and its Space in an environment of its own: CHROMIUM=/path/to/chromium, one in the PATH, or a download
	CHROMIUM=$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}; \
	  test -n "$$CHROMIUM" || $(BIN)/python -m playwright install chromium; \
	  CHROMIUM=$$CHROMIUM $(PYTEST) -m browser

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema

lint: $(STAMP) ## style, types, and the form of GitHub's files and of the citation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(BIN)/mypy

format: $(STAMP) ## mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## speed and memory, as JSON in benchmarks/
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

release-check: $(STAMP) ## build dist/ and look through all that a release needs; TAG=v1.2.3 for the release itself
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/*
	$(PYTEST) -m release tests/test_release.py

docs: $(STAMP) ## render the tables of results and features, and run every Python block of the pages
	$(BIN)/python -m training.render_readme
	$(BIN)/python -m tests.contract.features
	$(PYTEST) -n $(JOBS) -m docs

site: $(STAMP) ## the documentation as a web site, in build/site
	$(BIN)/sphinx-build -W --keep-going -j auto -c docs -d build/doctrees . build/site

wheel-check: $(STAMP) ## install the wheel into new environments, oldest versions and newest; import, test, train there
	$(BIN)/python -m tests.wheel_check
	$(BIN)/python -m training.render_readme

checkpoints: $(STAMP) ## train model_cards from nothing, some 3 hours of two cores; goes on after a kill; NAME=... for one
	$(BIN)/python -m training.make_checkpoints $(NAME)
	$(BIN)/python -m training.render_readme

table1: $(STAMP) ## Table 1 of the STRIPS paper, all 28 cells on five data seeds (many hours of one core)
	$(BIN)/python -m training.train_strips --domain all --sizes all --preset two_part_code,redraw,paper \
	  --data_seed 100 101 102 103 104 --cards_dir docs/results
	$(BIN)/python -m training.train_strips --domain all --sizes all --preset by_size --data_seed 102 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

stack-table: $(STAMP) ## Tables 1 and 2 of the stack attention paper, reduced (preset cpu)
	$(BIN)/python -m training.train_formal_languages --task all --layout all --model stack,vanilla --seeds 0..4 \
	  --cards_dir docs/results
	$(BIN)/python -m training.train_formal_languages --task reverse_string,stack_manipulation --layout all \
	  --encoding all --cards_dir docs/results
	$(BIN)/python -m training.train_formal_languages --task reverse_string,stack_manipulation --layout all \
	  --encoding sinusoidal,relative,rotary,alibi --model vanilla --restart_after 0 --steps 1500 \
	  --cards_dir docs/results
	$(BIN)/python -m training.train_formal_languages --task reverse_string,stack_manipulation \
	  --model rnn,stack_rnn --restart_after 0 --steps 15000 --seeds 0..2 --cards_dir docs/results
	$(BIN)/python -m training.train_formal_languages --task modular_arithmetic,solve_equation \
	  --model rnn,stack_rnn --restart_after 0 --steps 5000 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

stack-lm: $(STAMP) ## language models with and without a stack, on Python's own sources (preset cpu), and on JSON
	$(BIN)/python -m training.train_lm --corpus stdlib --num_seeds 5 --cards_dir docs/results
	$(BIN)/python -m training.train_lm --corpus stdlib --num_seeds 3 --pretrain --scratch false \
	  --stack_gate false true --cards_dir docs/results
	$(BIN)/python -m training.train_lm --dataset_name hf_mech/nested_text --dataset_config_name json --preset nested \
	  --objective clm --use_stack false true between --num_seeds 5 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

templatic-table: $(STAMP) ## learned baselines of templatic generation, Table 3, reduced (preset cpu)
	$(BIN)/python -m training.train_templatic --model all --cards_dir docs/results
	$(BIN)/python -m training.train_templatic --model transformer --steps 12000 --cards_dir docs/results
	$(BIN)/python -m training.train_templatic --task 1_shot_single --seeds 1..3 --cards_dir docs/results \
	  --model transformer,nano_gpt,nano_gpt_attn_only,cnn
	$(BIN)/python -m training.train_templatic --task 1_shot_single --seeds 1..3 --cards_dir docs/results \
	  --model nano_gpt,nano_gpt_attn_only,cnn --steps 15000
	$(BIN)/python -m training.train_templatic --task 1_shot_single --seeds 1..3 --cards_dir docs/results \
	  --model lstm_attn --steps 12000
	$(BIN)/python -m training.train_templatic --task 1_shot_single --seeds 1..3 --cards_dir docs/results \
	  --model mamba --steps 4000
	$(BIN)/python -m training.render_readme

rules-table: $(STAMP) ## the Semi-formal Transformer on texts judged by rules, beside an ordinary one
	$(BIN)/python -m training.train_semi_formal --model semi_formal --num_seeds 3 --cards_dir docs/results
	$(BIN)/python -m training.train_semi_formal --model transformer --num_seeds 3 --cards_dir docs/results
	$(BIN)/python -m training.train_semi_formal --model transformer --steps 3000 --num_seeds 1 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

nested-table: $(STAMP) ## nested functions: the compiled program, and GPT-2 (preset cpu)
	$(BIN)/python -m training.train_nested_functions --model dat --config all --cards_dir docs/results
	$(BIN)/python -m training.train_nested_functions --model gpt2 --config single --seeds 0 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

dat-table: $(STAMP) ## compiled programs on every prompt of templatic generation (hours on one core)
	$(BIN)/python -m training.run_pargen --task 1_shot_rlw 1_shot_eng 1_shot_rlw_10x --cards_dir docs/results
	$(BIN)/python -m training.run_pargen --program pargen_k_shot --num_train 20000 \
	  --task 1_shot_rlw 1_shot_eng 1_shot_rlw_10x 2_shot_rlw 3_shot_rlw 5_shot_rlw 10_shot_rlw --cards_dir docs/results
	$(BIN)/python -m training.render_readme

machines-table: $(STAMP) ## every program and Turing machine on random prompts, in three machines
	$(BIN)/python -m training.run_machines --jobs 1 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

faults: $(STAMP) ## random kills, full disks and a failing Hub on every kind of work, as docs/faults.md (an hour or two)
	$(BIN)/python -m tests.faults

lifted-table: $(STAMP) ## lifted domains from logs, beside LOCM and the alternation test (an hour of one core)
	$(BIN)/python -m training.train_lifted --domain all --condition clean habits wrong_action_2 wrong_action_5 \
	  --learner code alternation locm --seeds 301 --jobs 1 --cards_dir docs/results
	$(BIN)/python -m training.train_lifted --domain all --condition goals --models true --problems 3 --plan_seconds 5 \
	  --seeds 301 --jobs 1 --cards_dir docs/results
	$(BIN)/python -m training.render_readme

msat-table: $(STAMP) ## M-SAT in ViZDoom (preset cpu), and Tables 2 and 3 of its paper, reduced (preset compare)
	$(BIN)/python -m training.train_msat --scenario my_way_home,deadly_corridor --num_seeds 3 --cards_dir docs/results
	$(BIN)/python -m training.train_msat --preset compare --scenario my_way_home,deadly_corridor --model all \
	  --positions all --num_seeds 3 --cards_dir docs/results
	$(BIN)/python -m training.train_msat --scenario rooms,doorway --cards_dir docs/results
	$(BIN)/python -m training.train_msat --scenario doorway --component_prediction autoregressive --cards_dir docs/results
	$(BIN)/python -m training.render_readme

clean: ## remove the environment and every cache
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
