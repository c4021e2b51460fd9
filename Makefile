# Every way in. `make setup` makes .venv; each target that needs it sets it up first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
VENV ?= $(ROOT)/.venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
# tests/conftest.py says who runs what. With real systems, three workers keep two cores busy.
WORKERS := --dist loadscope --no-loadscope-reorder --numprocesses
WITH_JDK = cd $(ROOT) && JAVA_HOME="$$(scripts/find-jdk)" PATH="$(BIN):$$PATH"

.PHONY: help setup jdk demo playground playground-stop test unit check docs doc-output bench fuzz mutants golden spark-matrix \
	broker-matrix dist program ranges audit lock current clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(ROOT)/Makefile | expand -t 22

setup: jdk $(STAMP)  ## make .venv with every extra, from the lock; find or install a JDK

jdk:
	@$(ROOT)/scripts/find-jdk >/dev/null

$(STAMP): $(ROOT)/pyproject.toml $(ROOT)/requirements/lock.txt $(ROOT)/requirements/build.txt
	@$(ROOT)/scripts/make-venv $(VENV) $(JAR_SETS)
	@touch $@

# The jars that are fetched while the packages are installed.
demo: JAR_SETS := flink-1.20-sql kafka-4.1.1 spark-4.0.0
playground: JAR_SETS := flink-2.2 kafka-4.1.1

demo: setup  ## move two jobs from Flink to Spark and back, on a real Kafka, Flink and Spark
	@$(WITH_JDK) python -m examples.demo

playground: setup  ## a Kafka, a Flink with a job that runs, and checkpoints, to try it on (PORT)
	@$(WITH_JDK) python -m examples.playground start $(if $(PORT),--port $(PORT))

playground-stop: $(STAMP)  ## end its processes, remove the folder playground
	@cd $(ROOT) && $(BIN)/python -m examples.playground stop

test: setup  ## every test, the real systems included
	@$(WITH_JDK) python -m pytest $(WORKERS) 3

unit: $(STAMP)  ## the tests that need no other system (about a minute)
	@cd $(ROOT) && PATH="$(BIN):$$PATH" python -m pytest $(WORKERS) 2 \
		-m "not integration and not slow" --ignore tests/integration

check: docs  ## lint, formatting, types, architecture, the site's links
	cd $(ROOT) && $(BIN)/ruff check
	cd $(ROOT) && $(BIN)/ruff format --check
	cd $(ROOT) && $(BIN)/mypy
	cd $(ROOT) && $(BIN)/lint-imports

docs: $(STAMP)  ## build the site into site/; a broken link or a page outside of it fails
	cd $(ROOT) && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

doc-output: setup  ## write the output of the commands shown in README and docs anew
	@$(WITH_JDK) python -m tests.docs.rewrite

bench: setup  ## measure docs/performance.md against Flink's own readers (ten minutes)
	@$(WITH_JDK) python -m benchmarks

fuzz: $(STAMP)  ## ten million executions of the decoder on mutated bytes (RUNS, SEED, SUMMARY)
	cd $(ROOT) && $(BIN)/python -m tests.fuzz --runs $(or $(RUNS),10000000) \
		$(if $(SEED),--seed $(SEED)) $(if $(SUMMARY),--summary $(SUMMARY))

mutants: setup  ## faults put into one MODULE, which the fast tests (or TESTS) should see
	@$(WITH_JDK) scripts/mutants $(VENV) "$(MODULE)" $(TESTS)

golden: setup  ## write the golden checkpoints anew, with real Flink jobs
	@$(WITH_JDK) python -m tests.golden.generate
	@$(WITH_JDK) python -m tests.golden.synthetic.generate
	@$(WITH_JDK) python -m tests.golden.state.generate
	@$(WITH_JDK) python -m tests.golden.sinks.generate
	@$(WITH_JDK) python -m tests.golden.support_matrix

spark-matrix: setup  ## measure docs/spark-matrix.md and docs/state-matrix.md with each Spark
	@$(WITH_JDK) python -m tests.support.spark_matrix
	@$(WITH_JDK) python -m tests.support.state_matrix

broker-matrix: setup  ## measure docs/broker-matrix.md with each Kafka broker
	@$(WITH_JDK) python -m tests.support.broker_matrix

dist: $(STAMP)  ## build dist/*.tar.gz and dist/*.whl
	cd $(ROOT) && $(BIN)/uv build --quiet --offline --no-build-isolation --python $(BIN)/python \
		--clear --out-dir dist

program: $(STAMP)  ## build dist/migrate-VERSION-linux-x86_64.tar.gz, which needs no Python
	@$(ROOT)/scripts/program $(VENV) $(ROOT)/dist

ranges: $(STAMP)  ## the unit tests with the lowest and the newest of each package, on each Python
	@$(ROOT)/scripts/ranges $(VENV)

audit: $(STAMP)  ## known vulnerabilities of what is locked, as PyPI's advisory service tells
	cd $(ROOT) && $(BIN)/pip-audit --strict --disable-pip --require-hashes \
		--requirement requirements/lock.txt

lock: $(STAMP)  ## resolve requirements/*.txt anew, keeping versions (UPGRADE=1 takes the newest)
	@$(ROOT)/scripts/lock $(VENV) $(if $(UPGRADE),--upgrade)

current: $(STAMP)  ## newer releases in the package indexes than the tests run on (a minute)
	cd $(ROOT) && $(BIN)/python -m tests.support.current

clean:  ## remove .venv and what the tools left
	rm -rf $(VENV) $(ROOT)/dist $(ROOT)/site $(ROOT)/.hypothesis $(ROOT)/.mypy_cache $(ROOT)/.pytest_cache \
		$(ROOT)/.ruff_cache $(ROOT)/.import_linter_cache
	find $(ROOT) -name __pycache__ -type d -prune -exec rm -rf {} +
