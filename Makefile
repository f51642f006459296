# Two commands: `make demo` moves real rows, `make test` proves everything. Both install what they need.
SHELL := /bin/bash
export NT_CACHE ?= $(HOME)/.cache/native-transfer
# Where tools/setup.sh puts Rust and Go when the machine's own are missing or too old.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(NT_CACHE)/go/bin:$(PATH)
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help setup tools build check test torture demo demo-down bench clean-demo

help: ## what there is to run
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: ## install what the machine lacks
	@tools/setup.sh

tools: setup ## fetch the engine and the foreign clients of the test kit
	@tests/tools/libchdb.sh
	@tests/tools/python-env.sh

build: setup ## build every binary
	cargo build --workspace --all-targets --locked

check: setup ## the fast part: format, lints, unit tests, vectors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --locked -p contract -p runtime -p journal-sqlite -p operator
	cargo test --locked --lib -p source-clickhouse -p sink-sqlserver

test: export NATIVE_TRANSFER_BIN = $(abspath $(TARGET)/debug/native-transfer)
test: export NATIVE_TRANSFER_OPERATOR_BIN = $(abspath $(TARGET)/debug/native-transfer-operator)
test: tools ## everything
	cargo fmt --all --check
	cargo build --workspace --all-targets --locked
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@$(TARGET)/debug/testkit cluster build
	@# Always the whole workspace: a part of it would be built again with the features that the part alone asks for.
	cargo test --workspace --locked
	@tests/tools/second-engine.sh
	cargo test --workspace --test it --locked -- --ignored containerd

torture: tools ## everything at length: property targets 10 minutes each, an oracle of 200 tables and 10 GB (FUZZ_SECONDS=600)
	@tools/torture.sh planted
	@tools/torture.sh

demo: ## move 336,776 flights by the operator in a real cluster and check them with foreign clients (DEMO=cli, KEEP=1, YES=1)
	@demo/announce.sh
	@$(MAKE) --no-print-directory tools
	cargo build --locked -p cli -p testkit $(if $(filter cli,$(DEMO)),,-p operator)
	@demo/run.sh

demo-down: ## end what a kept demo left running
	@demo/down.sh

bench: tools ## rows/s, MB/s, CPU s per million rows, overlap and peak RSS of each stage of the road
	@tools/bench.sh
