# Makes the project of TestSessionCommands in the current directory: parts in Go, TypeScript and Python, without dependencies.
set -e
mkdir -p .github/workflows app bin cmd/{cli,gen,server} config docs frontend backend web lib packages/{core,web}/src pkg scripts src/{components,lib,pager,server,store} \
  templates/base test tests/unit internal/{a,b,codec,gen,queue,server,store} node_modules/.bin dist build coverage

cat > go.mod <<'EOF'
module example.org/acme

go 1.26
EOF
for p in a b codec queue server store; do
  printf 'package %s\n\n// Two is TODO.\nfunc Two() int { return 2 }\n' $p > internal/$p/$p.go
  printf 'package %s\n\nimport "testing"\n\nfunc TestServer(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error(Two())\n\t}\n}\n\nfunc TestPager(t *testing.T) { TestServer(t) }\n\nfunc BenchmarkTwo(b *testing.B) {\n\tfor b.Loop() {\n\t\tTwo()\n\t}\n}\n' $p > internal/$p/${p}_test.go
done
printf 'package pkg\n\n//go:generate true\n' > pkg/pkg.go
printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("package gen") }\n' > cmd/gen/main.go
printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("[1, 2]") }\n' > cmd/cli/main.go
printf 'package main\n\nimport "example.org/acme/internal/server"\n\nfunc main() { println(server.Two()) }\n' > cmd/server/main.go

cat > package.json <<'EOF'
{
  "name": "acme", "version": "1.1.0", "private": true, "workspaces": ["packages/*"],
  "scripts": {
    "build": "node scripts/build.js", "lint": "eslint src", "typecheck": "tsc --noEmit", "test": "node --test test/", "test:unit": "node --test test/",
    "preflight": "npm run lint && npm test", "dev": "echo dev"
  }
}
EOF
for d in web frontend backend packages/core packages/web; do
  printf '{"name": "%s", "version": "1.0.0", "scripts": {"build": "echo built", "lint": "echo linted", "test": "echo tested"}}\n' $(basename $d)-$(dirname $d | tr -d ./) > $d/package.json
done
for tool in tsc eslint prettier jest vitest; do
  printf '#!/bin/sh\necho "%s $*"\n' $tool > node_modules/.bin/$tool
  chmod +x node_modules/.bin/$tool
done
echo '{"compilerOptions": {"strict": true}}' > tsconfig.json
echo 'module.exports = {}' > jest.config.js
echo '{}' > .eslintrc.json
for f in a b index old util app pager pager.test pager.old store/index server/routes components/App; do printf '// old oldName foo\nexport function createServer() {}\nimport x from "lodash"\n' > src/$f.ts; done
mv src/components/App.ts src/components/App.tsx
printf 'export function a() {}\n' > packages/core/src/a.ts
printf "require('fs').writeFileSync('dist/index.js', '// built')\n" > scripts/build.js
printf "console.log('checked')\n" > scripts/check.js
printf "console.log('usage: cli')\n" > dist/cli.js
echo '// built' > dist/index.js
printf "require('node:test').test('two', () => {})\n" > test/two.test.js
echo "test('x')" > tests/store.test.ts

printf 'import sys\n\n\nclass A:\n    def deprecated(self):\n        return 1\n' | tee src/app.py > src/models.py
printf 'import unittest\n\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(1 + 1, 2)\n' | tee tests/test_api.py > tests/test_pager.py
printf 'print("| a |")\n' > scripts/gen.py
printf 'import sys\nprint(sys.argv[1:])\n' > scripts/migrate.py
printf '[project]\nname = "acme"\nversion = "1.1.0"\n' > pyproject.toml
touch requirements.txt

printf 'all:\n\t@echo all\nbuild clean test lint fmt:\n\t@echo $@\n.PHONY: all build clean test lint fmt\n' > Makefile
printf '#!/bin/sh\necho ran $0 "$@"\n' | tee scripts/check.sh scripts/build.sh scripts/deploy.sh > scripts/run.sh
printf '#!/bin/sh\ncase "$1" in --help) echo usage;; *) exec sleep 5;; esac\n' > bin/server
chmod +x scripts/build.sh bin/server
for f in README CHANGELOG docs/a docs/b docs/c; do printf '# %s\n\n1.2.3 TODO\n' $f > $f.md; done
printf 'b\na\nfoo\n' | tee a.txt b.txt x.txt words.txt old.txt > list.txt
printf 'b\nnew\n' > new.txt
printf '1,x\n2,y\n' > data.csv
echo 1.1.0 > version.txt
echo '{"x": 5}' | tee a.json > config.example.json
printf '\211PNG\n' > image.bin
touch templates/base/x app.log dev.log x.tmp
printf -- '--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,3 +1,3 @@\n # docs/a\n \n-1.2.3 TODO\n+1.2.3 done\n' > fix.patch
echo 'on: push' > .github/workflows/ci.yml
printf 'node_modules\n.venv\nbuild\n' > .gitignore
python3 -c 'import sqlite3; c = sqlite3.connect("dev.db"); c.execute("create table users (id integer)"); c.commit()'
python3 -c 'import zipfile; zipfile.ZipFile("assets.zip", "w").writestr(zipfile.ZipInfo("logo.svg"), "<svg/>")'

git init -q
git add -A
git commit -qm first
git branch feature
echo later >> docs/b.md
git commit -qam second
git update-ref refs/remotes/origin/main HEAD
