# Shortcuts for what is done often; CMakePresets.json has the details. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BENCH ?=
# One configuration serves build, demo, test and bench, so that none rebuilds what another built.
WARNINGS_AS_ERRORS ?= ON
SOURCES = $(shell find mercer cli tests bench experiments fuzz examples -name '*.cpp' -o -name '*.hpp')

.PHONY: help deps configure build all demo test check bench format format-check lint install clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

deps:
	@scripts/install-deps build

configure: deps
	@cmake --preset release --log-level=WARNING -DMERCER_WARNINGS_AS_ERRORS=$(WARNINGS_AS_ERRORS)

build: configure  ## install dependencies, build the program, leave it at build/mercer
	@cmake --build --preset release -j $(JOBS) --target mercer_cli
	@ln -sfn release/cli/mercer build/mercer

all: configure  ## build everything: program, tests, benchmarks, examples
	@cmake --build --preset release -j $(JOBS)
	@ln -sfn release/cli/mercer build/mercer

demo: build  ## the whole story on simulated data, in about two minutes
	@build/mercer demo

test:  ## build everything and run all tests
	@JOBS=$(JOBS) scripts/test build tests

check:  ## the slower checks: arithmetics of other machines, sanitizers, fuzzers, lint, format
	@JOBS=$(JOBS) scripts/test build arithmetics asan fuzz tsan lint format

bench: all  ## benchmark tables; BENCH=product or evidence for one of them
	@bench/run $(BENCH)

format:  ## rewrite sources in the house style
	@clang-format -i $(SOURCES)

format-check:  ## fail if a source is not in the house style
	@clang-format --dry-run -Werror $(SOURCES)

lint: configure  ## clang-tidy over mercer/ and cli/
	@scripts/install-deps test
	@run-clang-tidy -quiet -j $(JOBS) -p build/release -extra-arg=-Wno-unknown-warning-option \
	  '^$(CURDIR)/(build/release/)?(mercer|cli)/' 2>/dev/null

install: build  ## install program and library under PREFIX (default /usr/local)
	@cmake --build --preset release -j $(JOBS) --target mercer/all
	@cmake --install build/release --prefix $(PREFIX)

clean:  ## remove build/
	@rm -rf build
