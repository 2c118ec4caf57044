package place

import "slices"

// anchor says from where the names of a row are counted.
type anchor uint8

const (
	atRoot            anchor = iota // the file system's root; the name and everything below it
	atHome                          // the person's home directory; the name and everything below it
	anywhere                        // at any depth; the name and everything below it (in the workspace: only the part below its root)
	baseName                        // the last element, at any depth
	extension                       // the end of the last element, at any depth
	inWorkspace                     // the last element, at any depth of the workspace
	beginsInWorkspace               // the last element up to one of its dots, at any depth of the workspace
)

type row struct {
	place Zone
	at    anchor
	names []string
}

// table is the one list of names that matter. A path gets the strictest place of all rows that it hits.
// Names that need more than a comparison (/etc/cron*, /proc/<pid>/…, .env.*, parts of .git) are in classify.go.
var table = []row{
	// Credentials: an agent that reads these can act as the person elsewhere.
	{Secret, atHome, []string{
		".ssh", ".aws", ".gnupg", ".azure", ".kube", ".password-store", ".config/gcloud",
		".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/gh/hosts.yml",
	}},
	// What agents sign in with.
	{Secret, atHome, []string{
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".qwen/oauth_creds.json",
		".local/share/opencode/auth.json", ".config/github-copilot", ".openclaw/credentials", ".cache/huggingface/token", ".huggingface/token",
	}},
	// What programs sign in with, and to whom they are a person: services, registries, clouds, databases, wallets.
	{Secret, atHome, []string{
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml",
		".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json", ".config/pypoetry/auth.toml", ".nuget/NuGet/NuGet.Config",
		".config/hub", ".config/glab-cli", ".config/doctl", ".config/hcloud", ".config/netlify", ".config/.wrangler", ".wrangler", ".fly",
		".oci", ".s3cfg", ".boto", ".databrickscfg", ".kaggle/kaggle.json", ".terraform.d/credentials.tfrc.json", ".terraformrc",
		".vault-token", ".config/rclone", ".config/op", ".config/Bitwarden CLI", ".config/sops/age", ".pgpass", ".my.cnf", ".mylogin.cnf",
		".bitcoin", ".electrum", ".ethereum/keystore", ".config/solana/id.json",
	}},
	// Where desktops and browsers keep them. A browser's own cookies answer for the person, also at Toolward's console.
	{Secret, atHome, []string{
		".local/share/keyrings", ".local/share/kwalletd", ".Xauthority", ".ICEauthority", ".mozilla", ".thunderbird",
		".config/google-chrome", ".config/google-chrome-beta", ".config/google-chrome-unstable", ".config/chromium", ".config/BraveSoftware",
		".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium",
		"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
	}},
	// What a person typed, passwords among it.
	{Secret, atHome, []string{
		".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history",
		".mysql_history", ".sqlite_history", ".rediscli_history",
	}},
	{Secret, atRoot, []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/run/secrets", "/var/run/secrets",
	}},
	{Secret, baseName, []string{
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa_sk", "id_dsa_sk", "id_ecdsa_sk", "id_ed25519_sk",
		".env", "credentials.json", "service-account.json",
	}},
	{Secret, extension, []string{".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore"}},

	// Persistence: what is written here is run later, by someone else, without the gate.
	{Protected, atHome, []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile",
		".zlogin", ".inputrc", ".xprofile", ".xsessionrc", ".gitconfig", ".config/fish/config.fish",
		".config/systemd", ".config/autostart", ".config/fish/conf.d", ".config/git", ".local/share/systemd",
		"Library/LaunchAgents",
	}},
	{Protected, atRoot, []string{
		"/etc/systemd", "/etc/init.d", "/etc/profile.d", "/etc/ld.so.conf.d", "/etc/pam.d", "/etc/udev",
		"/etc/xdg/autostart", "/etc/profile", "/etc/crontab", "/etc/environment", "/etc/passwd", "/etc/group",
		"/etc/hosts", "/etc/ld.so.preload", "/var/spool/cron",
	}},
	{Protected, anywhere, []string{
		".git/hooks", ".git/config", ".git/config.worktree", ".gitmodules", ".envrc", ".vscode", ".idea", ".cursor",
		".claude", ".codex", ".gemini", ".copilot", ".opencode", ".mcp.json", ".husky", ".devcontainer", ".toolward",
		".github/workflows", ".github/actions", ".github/instructions", ".github/prompts", ".github/agents", ".circleci",
		".buildkite", ".githooks", ".lefthook", ".cargo/config", ".cargo/config.toml", ".yarn/plugins", ".yarn/releases",
		".zed", ".windsurf", ".clinerules", ".roo", ".kiro", ".continue", ".junie", ".amazonq", ".qwen", ".goose", ".crush", ".factory",
		".augment", ".amp", ".trae", ".openclaw", ".hg/hgrc", ".mise/config.toml", ".mise/tasks", ".direnv/direnvrc",
	}},
	// What git reads as orders besides: where its configuration lies, which filters apply, which commands a rebase that
	// was interrupted runs next.
	{Protected, anywhere, []string{
		".git/commondir", ".git/info", ".git/rebase-merge", ".git/rebase-apply", ".git/sequencer",
	}},
	// A file of this name makes a repository of what it points to, with the configuration that lies there.
	{Protected, baseName, []string{".git"}},
	// Start-up files, hooks, and what build servers and editors run, by whatever way they come to be used from here: a
	// directory of dotfiles, a home that lies in the workspace.
	{Protected, inWorkspace, []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".inputrc", ".xprofile", ".xsessionrc", ".xinitrc", ".gitconfig", ".vimrc",
		".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".gdbinit", ".lldbinit", ".pre-commit-config.yaml",
		".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".overcommit.yml",
		".gitlab-ci.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml", "appveyor.yml", ".appveyor.yml", "Jenkinsfile",
		"azure-pipelines.yml", "bitbucket-pipelines.yml", "cloudbuild.yaml", "mise.toml", ".mise.toml", "mise.local.toml",
		".mise.local.toml",
	}},
	{Protected, extension, []string{".code-workspace"}},

	// Text that later runs obey: writing it is writing tomorrow's orders.
	{Instructions, inWorkspace, []string{
		"AGENTS.md", "CLAUDE.md", "GEMINI.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md",
		"HEARTBEAT.md", "AGENT.md", "AGENTS.override.md", "CLAUDE.local.md", "copilot-instructions.md", ".cursorrules",
		".windsurfrules", ".roorules", ".goosehints", "QWEN.md", "CRUSH.md", "WARP.md",
		"opencode.json", "opencode.jsonc", "crush.json", ".crush.json", ".aider.conf.yml", "amp.json",
	}},
	// So are the files in which a project says what builds, tests and installations run. Agents change them now and then,
	// unlike sources, and a person should see it: the next "make" or "npm install" is somebody else's.
	{Instructions, inWorkspace, []string{
		"Makefile", "makefile", "GNUmakefile", "BSDmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml",
		"Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Rakefile", "CMakeLists.txt", "CMakePresets.json",
		"CMakeUserPresets.json", "meson.build", "SConstruct", "wscript", "configure.ac", "build.rs", "build.zig",
		"WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", ".bazelrc", "build.gradle", "build.gradle.kts", "settings.gradle",
		"settings.gradle.kts", "gradle.properties", "gradle-wrapper.properties", "gradlew", "gradlew.bat", "mvnw",
		"mvnw.cmd", "maven-wrapper.properties", "pom.xml", "build.sbt", "build.xml", "Gemfile", "composer.json", "Podfile",
		"Fastfile", "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml",
		"deno.json", "deno.jsonc", "gulpfile.js", "Gruntfile.js", "setup.py", "setup.cfg", "pyproject.toml", "conftest.py",
		"sitecustomize.py", "usercustomize.py", "pytest.ini", "tox.ini", "noxfile.py", "fabfile.py", "dodo.py", "pip.conf",
		"Containerfile", "compose.yml", "compose.yaml", "Vagrantfile", "Procfile", "Tiltfile", "Jakefile", "flake.nix", "shell.nix", "default.nix",
		"devenv.nix", ".gitattributes", "ansible.cfg", ".tool-versions", "Brewfile", "Guardfile", "Capfile", "Berksfile", "Dangerfile", "Thorfile",
		".irbrc", ".pryrc", ".Rprofile", ".pylintrc", "pylintrc", "mypy.ini", ".mypy.ini", ".rubocop.yml", ".pythonrc", "phpunit.xml", "phpunit.xml.dist",
		".php-cs-fixer.php", "turbo.json", "nx.json", "Earthfile", "terragrunt.hcl", "skaffold.yaml", "helmfile.yaml", "pixi.toml", "hatch.toml",
	}},
	// Lock files say from where packages come, and what must be in them: programs write these, and who edits one by hand
	// makes the next installation run a stranger's code that has an ordinary name.
	{Instructions, inWorkspace, lockFiles},
	{Instructions, beginsInWorkspace, []string{
		"Dockerfile", "docker-compose", "docker-bake", ".eslintrc", ".babelrc", ".prettierrc", ".stylelintrc",
		".mocharc", ".lintstagedrc", ".commitlintrc", ".huskyrc", ".nycrc", ".swcrc", "eslint.config", "babel.config",
		"prettier.config", "stylelint.config", "commitlint.config", "lint-staged.config", "jest.config", "jest.setup",
		"vitest.config", "vitest.workspace", "vite.config", "webpack.config", "rollup.config", "rspack.config",
		"rsbuild.config", "esbuild.config", "tsup.config", "next.config", "nuxt.config", "svelte.config", "astro.config",
		"vue.config", "postcss.config", "tailwind.config", "playwright.config", "cypress.config", "karma.conf",
		"metro.config", "craco.config", "wdio.conf", "gulpfile", "Gruntfile",
	}},
}

var lockFiles = []string{
	"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "Cargo.lock", "poetry.lock", "uv.lock",
	"pdm.lock", "Pipfile.lock", "pixi.lock", "pylock.toml", "conda-lock.yml", "composer.lock", "Gemfile.lock", "gems.locked", "go.sum", "go.work.sum", "mix.lock", "rebar.lock",
	"pubspec.lock", "Podfile.lock", "Cartfile.resolved", "Package.resolved", "flake.lock", "gradle.lockfile", "buildscript-gradle.lockfile",
	"verification-metadata.xml", "packages.lock.json", "paket.lock", "MODULE.bazel.lock", ".terraform.lock.hcl", "Chart.lock", "stack.yaml.lock", "cabal.project.freeze",
}

// IsLockFile reports whether programs write a file of this name to say which packages a project has.
func IsLockFile(base string) bool { return slices.Contains(lockFiles, base) }

// envHarmless are the endings of .env.* files that are published on purpose and hold no values.
var envHarmless = []string{"example", "sample", "template", "dist"}

// procSecret are the entries of /proc/<pid> that show another process's secrets or lead into its view of
// the file system.
var procSecret = []string{"environ", "mem", "root", "cwd"}

// procOthers are those that do so for a process that is somebody else: an own descriptor is how programs name their streams.
var procOthers = []string{"fd", "map_files"}

// homesOf are the directories whose entries are homes of accounts; accountHomes are homes that stand alone.
var (
	homesOf      = []string{"/home/", "/Users/", "/var/home/", "/export/home/"}
	accountHomes = []string{"/root", "/var/root"}
)
