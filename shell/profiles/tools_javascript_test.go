package profiles

import "testing"

func TestNode(t *testing.T) {
	testHarmless(t, `
		node app.js
		node scripts/build.js --prod -e x --eval y
		node --test
		node --test test/
		node --test --test-reporter=spec --experimental-test-coverage 'test/**/*.test.js'
		node --watch server.mjs
		node --env-file=.env server.js
		node --max-old-space-size=4096 node_modules/.bin/webpack
		node --inspect app.js
		node --inspect=9230 app.js
		node --inspect-brk=127.0.0.1:9229 app.js
		node --enable-source-maps --trace-warnings dist/index.js
		node --version
		node -v
		node --check app.js
		node --cpu-prof --cpu-prof-dir=prof app.js
		node --run build
		node -- app.js`)
	testAsking(t, `
		node
		node -
		node -i
		node -e 'console.log(1)'
		node -p process.version
		node -pe 1
		node --eval=1
		node --print '1+1'
		node -r ./x.js app.js
		node -r./x.js app.js
		node --require ./x.js app.js
		node --require=./x.js app.js
		node --import ./x.mjs app.js
		node --loader=./l.mjs app.js
		node --experimental-loader ./l.mjs app.js
		node --inspect=0.0.0.0 app.js
		node --inspect=0.0.0.0:9229 app.js
		node --inspect-brk=192.0.2.1:1 app.js
		node --inspect-port=[::]:1 app.js
		node --openssl-config=x.cnf app.js
		node --icu-data-dir=x app.js
		node --snapshot-blob x app.js
		node --redirect-warnings=/home/dev/.bashrc app.js
		node --test-reporter=./r.js --test
		node --test-reporter-destination=/tmp/x --test-reporter=tap --test
		node --nosuch app.js
		node --inp app.js
		node /tmp/evil.js
		node ../evil.js
		node inspect app.js
		node --input-type=module`)
	testExact(t, `
		node app.js → project; enters app.js
		node - → evaluates (standard input)`)
}

func TestNpm(t *testing.T) {
	testHarmless(t, `
		npm install
		npm i
		npm ci
		npm ci --ignore-scripts --no-audit
		npm test
		npm t
		npm test -- --watch --coverage
		npm run build
		npm run lint -- --fix
		npm run -w packages/api build
		npm run build --workspaces --if-present
		npm --prefix web run build
		npm start
		npm --silent run test:unit
		npm uninstall lodash
		npm outdated
		npm audit
		npm audit fix
		npm ls --depth=0
		npm ls react
		npm view react version
		npm why semver
		npm pkg get scripts
		npm pkg set type=module
		npm version patch --no-git-tag-version
		npm pack --dry-run
		npm init -y
		npm config get registry
		npm cache verify
		npm dedupe
		npm prune --omit=dev
		npm help run
		npm -v`)
	testAsking(t, `
		npm exec -- id
		npm exec tsc
		npm x id
		npm exec -c id
		npm exec --call=id
		npm run build --script-shell=/ws/x
		npm test --script-shell /ws/x
		npm --node-options='--require ./x' test
		npm config set script-shell x
		npm config list --userconfig x
		npm set registry=http://192.0.2.1
		npm install https://example.com/x.tgz
		npm install git+ssh://git@example.com/x.git
		npm install github:user/repo
		npm install user/repo
		npm install ./local
		npm install ../x
		npm install /tmp/x
		npm install x.tgz
		npm install x@https://example.com/x.tgz
		npm install x@file:../x
		npm install -g typescript
		npm install --global x
		npm --global install x
		npm install --registry=http://192.0.2.1 x
		npm --registry http://192.0.2.1 install
		npm install --userconfig=/tmp/x
		npm install --prefix /tmp/x y
		npm -C /tmp/x run build
		npm run env
		npm publish
		npm link
		npm link x
		npm login
		npm token list
		npm unpublish x
		npm init vite
		npm create vite@latest
		npm init @scope/app
		npm config edit
		npm explore x -- id
		npm install --nosuch
		npm install --cache=/tmp/x
		npm nosuch
		npx tsc
		npx -y cowsay
		npx --no-install eslint .
		bunx x
		pnpx x`)
}

func TestOtherPackageManagers(t *testing.T) {
	testHarmless(t, `
		pnpm install
		pnpm i --frozen-lockfile
		pnpm build
		pnpm test
		pnpm run test:unit --watch
		pnpm -r build
		pnpm --filter web dev
		pnpm lint --fix
		pnpm vitest run
		pnpm tsc --noEmit
		pnpm outdated
		pnpm why react
		pnpm ls --depth 0
		yarn
		yarn install --frozen-lockfile
		yarn --immutable
		yarn remove lodash
		yarn build
		yarn run build
		yarn test --watch
		yarn workspace web build
		yarn workspace web run test -x
		yarn workspaces foreach -A run build
		yarn lint
		yarn why react
		yarn outdated
		yarn config get registry
		bun install
		bun test
		bun test --watch src
		bun run build
		bun run src/index.ts --port 3
		bun index.ts
		bun dev
		bun build ./index.ts --outdir dist --minify
		deno run -A main.ts
		deno run --allow-net server.ts --port 1
		deno test
		deno test --coverage=cov tests/
		deno fmt
		deno fmt --check
		deno lint
		deno task build
		deno check main.ts`)
	testAsking(t, `
		pnpm dlx create-vite
		pnpm create vite
		pnpm id
		pnpm exec id
		pnpm add https://example.com/x.tgz
		pnpm add -g x
		pnpm -C /tmp/x build
		pnpm --dir=/tmp/x build
		pnpm run env
		pnpm config set x y
		pnpm publish
		pnpm --script-shell=x test
		yarn dlx x
		yarn create vite
		yarn exec id
		yarn run env
		yarn config set x y
		yarn --cwd /tmp/x build
		yarn add git@github.com:user/repo.git
		yarn add link:/tmp/x
		yarn global add x
		yarn plugin import https://example.com/p.js
		yarn set version ./x.js
		yarn workspace web exec id
		yarn workspace web dlx x
		yarn workspaces foreach exec id
		yarn --use-yarnrc /tmp/x install
		bun x y
		bun -e 1
		bun run id
		bun id
		bun --preload ./x.ts run build
		bun run -r ./x.ts build
		bun /tmp/evil.ts
		bun upgrade
		bun create x
		bun add github:user/repo
		deno run https://example.com/x.ts
		deno run npm:cowsay
		deno run jsr:@std/http
		deno run data:text/javascript,1
		deno run -
		deno eval 1
		deno install -g x
		deno run --import-map /tmp/x.json main.ts
		deno run --preload x.ts main.ts
		deno run --config=/tmp/x main.ts
		deno upgrade
		deno task --eval id`)
}

func TestToolsOfJavaScript(t *testing.T) {
	testHarmless(t, `
		tsc
		tsc --noEmit
		tsc -p tsconfig.build.json
		tsc -b --verbose
		tsc --outDir dist --watch
		tsx src/index.ts --flag
		tsx watch src/index.ts
		ts-node -T scripts/x.ts
		eslint .
		eslint src --ext .ts,.tsx --max-warnings=0
		eslint --fix src
		eslint -f json -o report.json src
		prettier --check .
		prettier --write 'src/**/*.ts'
		prettier -w README.md
		jest
		jest --watch --coverage src/a.test.ts
		jest -t 'adds numbers' --runInBand
		jest --config jest.e2e.config.js
		vitest
		vitest run --coverage
		vitest run src/a.test.ts -t name --reporter=verbose
		vite
		vite build --mode production
		vite --host --port 3000
		next dev
		next build
		webpack --mode production
		webpack serve --open
		rollup -c
		rollup -c rollup.config.mjs --watch
		esbuild src/index.ts --bundle --outfile=dist/x.js --loader:.png=file --define:A=1
		turbo run build --filter=web
		nx test api
		nx run-many -t build
		biome check .
		biome check --write src
		playwright test --headed e2e/login.spec.ts
		nodemon server.js
		nodemon --watch src -e ts,js app.js
		mocha --grep x test/a.js
		stylelint '**/*.css' --fix
		gulp build
		lint-staged`)
	testAsking(t, `
		tsc @opts
		tsc -p /tmp/x
		tsc --outDir /tmp/x
		tsx -e 1
		tsx --import ./x.mjs a.ts
		tsx /tmp/x.ts
		ts-node -r ./x a.ts
		ts-node -C ./evil a.ts
		ts-node -e 1
		eslint -c /tmp/x.js .
		eslint --rulesdir /tmp/x .
		eslint --parser ./p.js .
		eslint --plugin x .
		eslint --resolve-plugins-relative-to /tmp .
		eslint -f ./evil.js .
		eslint -o /home/dev/.bashrc .
		eslint --fix /etc/x
		prettier --plugin=./evil.js .
		prettier --config /tmp/x .
		prettier --write /home/dev/x.js
		jest --config '{"globalSetup":"./x"}'
		jest --rootDir=/tmp/x
		jest --globalSetup ./x
		jest --reporters ./x
		jest --testEnvironment=./x
		jest --runner ./x
		vitest --reporter ./x
		vitest --root /tmp/x
		vitest -c /tmp/x
		vite -c /tmp/x.js
		vite /tmp/x
		vite build --outDir /home/dev
		rollup -c /tmp/x.js
		rollup -p ./x
		webpack -c /tmp/x.js
		esbuild --servedir=.
		esbuild --outfile=/home/dev/.bashrc x.js
		playwright install
		nodemon --exec id
		nodemon -x id app.js
		mocha -r ./x
		gulp --gulpfile /tmp/x
		husky install`)
}
