# Toolward. `make up` starts it, `make test` passes all tests.
GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
# The race detector needs a C compiler; without one the tests still run.
RACE  := $(if $(shell command -v gcc cc 2>/dev/null),-race)
FUZZTIME ?= 30s
SOAKTIME ?= 30m
RATE ?= 200

.PHONY: up build release test lint bench bench-hostile soak races fuzz fuzz-shell

up:
	$(GO) run ./cmd/toolward up

build:
	CGO_ENABLED=0 $(GO) build ./...

# One file with the small programs in it.
release:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o companion/programs/ ./cmd/toolward-hook ./cmd/toolward-inside ./cmd/toolward-run
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -tags embed_programs -o bin/toolward ./cmd/toolward

lint:
	@unformatted=$$($(TOOLS) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not gofumpt-clean: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...
	@$(ERRCHECK)

# A statement that ignores an error says so, `_ = f()`, and why if that is not plain. What is deferred or started beside has no place for
# it: a Close that matters is not deferred. errcheck always finds some of those; if it finds nothing, it has not run.
ERRCHECK = found=$$($(TOOLS) errcheck -ignoretests -exclude tools/errcheck.txt ./...); [ -n "$$found" ] || exit 1; \
	ignored=$$(echo "$$found" | grep -vE '	(defer |go |case <-|<-)'); [ -z "$$ignored" ] || { echo "ignored errors:"; echo "$$ignored"; exit 1; }

# Uses the live parts that are there (Chromium, npm clients) and names what it skipped and why.
# TOOLWARD_LIVE=all installs every live part and skips none.
test: build lint
	@$(if $(RACE),,echo "no C compiler: tests run without the race detector")
	$(GO) test $(RACE) -json -timeout 35m ./... | $(GO) run ./internal/testreport

# One table of every figure, in at most ten minutes on two cores; BENCH=regexp for some of them. `bench` is a module of its own:
# peers that no program of Toolward needs.
BENCH ?= .
bench:
	$(GO) run ./internal/benchreport -bench '$(BENCH)' -skip '^BenchmarkHostile$$' . bench

# The long table of command lines that are made to cost time.
bench-hostile:
	$(GO) run ./internal/benchreport -bench '^BenchmarkHostile$$'

# Approvals for half an hour, RATE a second: asked, answered, restarted and killed. The tests have a shorter form.
soak:
	TOOLWARD_SOAK=$(SOAKTIME) TOOLWARD_SOAK_RATE=$(RATE) $(GO) test -count=1 -v -timeout 0 -run TestSoak ./internal/soak

# Links exchanged between check and use of files and mounts in sandboxes, SWAPS times for each operation, and the daemon
# killed KILLS times while sandboxes are made, and KILLS times while calls are taken back. The tests do less of the same.
SWAPS ?= 100000
KILLS ?= 100
races:
	TOOLWARD_SWAPS=$(SWAPS) TOOLWARD_KILLS=$(KILLS) $(GO) test -count=1 -v -timeout 0 \
	  -run 'Swapped|WhileLinksAreSwapped|KilledWhileSandboxesAreMade|UndoIsWholeWhenKilled' ./sandbox/... ./builtin ./undo ./internal/live

fuzz:
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; done

# What analysis says of random commands against what bash, and then zsh and dash, do with them: TIME and COUNT (of commands that bash ran)
# limit it, SEED repeats a run.
TIME  ?= 10m
COUNT ?= 0
fuzz-shell:
	TOOLWARD_FUZZ_TIME=$(TIME) TOOLWARD_FUZZ_COUNT=$(COUNT) TOOLWARD_FUZZ_SEED=$(SEED) \
	  $(GO) test -count=1 -v -timeout 0 -run 'TestBashAgreesAboutGenerated|TestOthersDoNoMoreOfGenerated|TestScriptsComeToTheSame' ./internal/shellfuzz
