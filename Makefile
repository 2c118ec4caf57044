# Toolward. `make up` starts it, `make test` passes all tests.
GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
# The race detector needs a C compiler; without one the tests still run.
RACE  := $(if $(shell command -v gcc cc 2>/dev/null),-race)
FUZZTIME ?= 30s

.PHONY: up build test lint bench fuzz

up:
	$(GO) run ./cmd/toolward up

build:
	CGO_ENABLED=0 $(GO) build ./...

lint:
	@unformatted=$$($(TOOLS) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not gofumpt-clean: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...

# Uses the live parts that are there (Chromium, npm clients) and names what it skipped and why.
# TOOLWARD_LIVE=all installs every live part and skips none.
test: build lint
	@$(if $(RACE),,echo "no C compiler: tests run without the race detector")
	$(GO) test $(RACE) -json -timeout 40m ./... | $(GO) run ./internal/testreport

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...
	cd bench && $(GO) test -mod=mod -v -bench . .  # a module of its own: peers that no program of Toolward needs

fuzz:
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; done
