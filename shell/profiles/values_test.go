package profiles

import "testing"

// TestValuesThatAreFiles: an option whose value is written, obeyed or shown is no plain text, wherever in the value the file stands.
func TestValuesThatAreFiles(t *testing.T) {
	testAsking(t, `
		docker build --iidfile /etc/motd .
		docker build --iidfile=/etc/motd .
		podman build --iidfile /etc/motd .
		pip install -r r.txt --report /etc/motd
		pip install -r r.txt --report=/etc/motd
		pip freeze -r /home/other/.env
		pip freeze --requirement=/home/other/.env
		uv run --python /tmp/evil pytest
		uv run -p /tmp/evil pytest
		uv sync --python=/tmp/evil
		uv build --python /tmp/evil
		uv venv -p /tmp/evil .venv
		rustc --emit=asm=/etc/motd x.rs
		rustc --emit link,dep-info=/etc/motd x.rs
		rustc --print cfg=/etc/motd x.rs
		rustc --extern a=/tmp/evil.so x.rs
		rustc -L dependency=/tmp/evil x.rs
		rustc --sysroot /tmp/evil x.rs
		golangci-lint run --out-format json:/etc/motd
		golangci-lint run --out-format=tab,checkstyle:/etc/motd
		pylint -f json:/etc/motd a.py
		mocha -O output=/etc/motd
		mocha -u /tmp/evil
		mocha --spec /tmp/evil.js
		vitest --pool /tmp/evil
		vitest --coverage.reporter /tmp/evil
		jest --coverageReporters text,/tmp/evil
		prettier --parser /tmp/evil a.x
		node --localstorage-file=/etc/motd a.js
		pytest --durations-path=/etc/motd
		flake8 --tee --output-file=/etc/motd
		clang-format --style=file:/home/other/.env a.c
		python -m compileall /home/other`)
	testHarmless(t, `
		docker build --iidfile out.id .
		pip install -r r.txt --report report.json
		uv run --python 3.12 pytest
		uv venv --python python3.13 .venv
		rustc --emit=asm,link x.rs
		rustc --emit asm=out.s x.rs
		rustc --print cfg x.rs
		rustc -L target/debug/deps x.rs
		rustc --extern serde=target/libserde.rlib x.rs
		golangci-lint run --out-format json
		golangci-lint run --out-format json:out.json
		mocha -u bdd -R spec
		vitest -u --pool forks --coverage.reporter text
		jest -u --coverageReporters lcov
		prettier --parser typescript a.x
		clang-format -style=Google a.c
		python -m compileall -q src`)
}

// TestLongOptionsAreNoShortOnes: "-l*" stands for "-lm" and not for "--ld-path=…", the program that links.
func TestLongOptionsAreNoShortOnes(t *testing.T) {
	testAsking(t, `
		clang --ld-path=/tmp/evil x.c
		gcc --output=.git/config x.c
		gcc --include-directory=/tmp x.c
		gcc --library=x x.c
		gcc --language=c .env
		gcc --Wl,-Map=.git/config x.c
		gcc --machine=x x.c
		clang -mllvm -load -mllvm /tmp/evil.so x.c
		gcc --for-linker=-Map=.git/config x.c
		ld --library=x a.o`)
	testHarmless(t, `
		gcc --std=c11 -lm -Iinc -DX=1 -oout x.c
		gcc --version
		esbuild --loader:.svg=text a.js`)
}

// TestModulesByName: what go get asks about is no less a stranger's host where nothing is added.
func TestModulesByName(t *testing.T) {
	testExact(t, `
		go mod download evil.example/data@v1 → network; network evil.example (evil.example/data@v1)
		go mod download -json evil.example/data@latest → network; network evil.example (evil.example/data@latest)
		go list -m evil.example/data@latest → reads .; network evil.example (evil.example/data@latest)
		go mod download → network
		go list -m all → reads .`)
}
