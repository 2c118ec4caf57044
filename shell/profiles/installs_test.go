package profiles

import (
	"slices"
	"testing"

	"github.com/toolward/toolward/shell"
)

// What is installed by its name is code of others; what the project's own lists name is not told again, and neither is a
// name that only gets onto such a list: nothing of it runs before the next build.
func TestInstallsByName(t *testing.T) {
	for _, line := range commandLines(`
		npm install express
		npm install -D typescript@5.4 @types/node@^20
		npm i --save-exact lodash
		npm install --workspace=packages/api zod
		pnpm add -D vitest
		pnpm add zod --filter api
		yarn add react@18
		yarn add -D jest
		bun add zod
		pip install requests
		pip install 'django>=4,<5' 'uvicorn[standard]==0.30.*'
		uv add httpx
		uv add --dev pytest
		poetry add requests@^2.31
		composer require monolog/monolog:^3.0
		bundle add rack
		pdm add httpx
		pipenv install flask
		deno add npm:zod
		uv pip install torch
		npm add left-pad
		npx cowsay hi
		npx -y tsc
		bunx --bun vite`) {
		effects := commandEffects(t, line)
		if !slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == shell.Installs && e.Text != "" }) {
			t.Errorf("%s installs nothing: %v", line, effects)
		}
	}
	for _, line := range commandLines(`
		go get golang.org/x/sync@latest
		dotnet add package Serilog
		cargo add serde --features derive
		cargo add --dev tokio@1
		go get example.com/x
		npm install
		npm ci
		npm install .
		npm uninstall express
		npm update express
		pnpm install
		yarn
		yarn upgrade react
		bun install
		pip install -r requirements.txt
		pip install .
		pip uninstall -y requests
		uv sync
		uv pip install -r requirements.txt
		poetry install
		go mod download
		go get -u ./...
		go get
		go get -u all
		cargo fetch
		cargo update -p tokio
		bundle install
		composer install
		dotnet restore
		npx --version`) {
		if effects := commandEffects(t, line); slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == shell.Installs }) {
			t.Errorf("%s: %v", line, effects)
		}
	}
}

// npx runs what the project has installed, with what is known of it.
func TestPackageRunners(t *testing.T) {
	for line, want := range map[string]string{
		"npx tsc --noEmit":             "node_modules/.bin/tsc",
		"npx --no-install jest":        "node_modules/.bin/jest",
		"npx prisma migrate dev":       "node_modules/.bin/prisma",
		"npx create-next-app@latest x": "",
		"npx @scope/tool":              "",
		"npx -p cowsay cowsay hi":      "",
		"npx --package=cowsay cowsay":  "",
		"npx -c 'echo $PATH'":          "",
		"npx ./tool":                   "",
		"npx github:someone/something": "",
	} {
		effects := commandEffects(t, line)
		tool, unknown := "", false
		for _, e := range effects {
			tool, unknown = tool+e.Unless, unknown || e.Kind == shell.Unknown
		}
		if tool != want || unknown != (want == "") {
			t.Errorf("%s: %v", line, effects)
		}
	}
	for _, line := range []string{"npx tsx -e 'process.exit()'", "npx node -e 1", "npx ts-node --eval 1"} {
		if effects := commandEffects(t, line); !slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == shell.Evaluates }) {
			t.Errorf("%s: %v", line, effects)
		}
	}
}
