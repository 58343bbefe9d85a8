# All set-up is done by the targets themselves; a second run is quick.
.PHONY: help run test test-all lint check bench campaign docs rules lock clean

BIN := .venv/bin

## make run        a Prosody, the service and a feed, to try out
## make test       the quick part of the tests; ARGS="tests/http -k tokens" runs these alone
## make test-all   the quick part, then the rest
## make check      the linter, the type checker and the quick part
## make bench      the benchmark; QUICK=1 for a look, ARGS="rounds --beside COMMIT" for two versions
## make campaign   faults under load: NAME=kill ARGS="--seed 1 --count 50"
## make docs       the generated pages
## make rules      docs/rules.md: each rule with its modules and tests
## make lock       new pins of all dependencies
## make clean      removes what the other targets have made
help:
	@sed -n 's/^## //p' Makefile

run:
	@tools/setup run
	@$(BIN)/smartfeeds demo serve

# Test databases sync each commit. In memory that takes half the time; power cuts and full disks have file systems of their own.
TEMPORARY := $(shell [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'END {print $$4}')" -gt 8000000 ] && echo /dev/shm)
# In the order of the folders: those with long tests run first, so that no process waits for another one at the end.
# Compiling the tests takes each process 12 s, so their compiled form is stored also where others are not.
PYTEST := PYTHONDONTWRITEBYTECODE= $(if $(TEMPORARY),PYTEST_DEBUG_TEMPROOT=$(TEMPORARY)) $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=20
# What `make test` leaves out, and the properties again with all their examples.
REST := tests/browser tests/bench tests/clients tests/commands tests/fault tests/federation tests/integration tests/property \
	$(wildcard tests/features/*/full tests/features/*/test_*properties.py)

test:
	@tools/setup test
	@$(PYTEST) $(ARGS)

test-all: test
	@tools/setup test-all
	@HYPOTHESIS_PROFILE=full $(PYTEST) $(REST)

lint:
	@tools/setup lint
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

check: lint test

# Ours beside Prosody's and ejabberd's own pubsub and beside HTTP servers, in one run of half an hour; QUICK=1 for a look.
bench:
	@tools/setup bench
	@PYTHONPATH=tests $(BIN)/python -m bench $(if $(QUICK),--quick) $(ARGS)

# Breaks the service under load and judges what clients saw: make campaign NAME=kill ARGS="--seed 1 --count 50"
campaign:
	@tools/setup test-all
	@PYTHONPATH=tests $(BIN)/python -m campaign $(NAME) $(ARGS)

# docs/rules.md: each rule with its modules and tests. It changes with every test, so it is not committed.
rules:
	@tools/setup test
	@$(BIN)/python tools/rules_table.py

# The generated pages: the man page, and the table of clients, which runs them.
docs:
	@tools/setup test-all
	@$(BIN)/python tools/man_page.py
	@$(BIN)/python tools/clients_table.py

# New pins for the newest allowed versions of everything. The pins for running are a part of those for developing.
COMPILE := .venv-lock/bin/pip-compile -q --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --all-build-deps --allow-unsafe --strip-extras

lock:
	@tools/setup run
	@$(BIN)/python -m venv .venv-lock && .venv-lock/bin/python -m pip install -q pip-tools
	@$(COMPILE) --upgrade --extra dev --output-file requirements-dev.lock pyproject.toml
	@$(COMPILE) --constraint requirements-dev.lock --extra postgres --output-file requirements.lock pyproject.toml

clean:
	@rm -rf .venv .venv-lock .venv-bench .venv-clients .run build/versions tests/integration/js/node_modules tests/clients/js/node_modules tests/browser/js/node_modules
