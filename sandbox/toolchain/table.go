package toolchain

import "slices"

// kind is one row of the table: where a toolchain lies, and which files there hold credentials. "~" is the home, "$NAME" what a
// variable of the person's environment says; a row lists directories, so that what lies beside them is not shown: of ~/.cargo the
// programs, not credentials.toml; of ~/.m2, ~/.gem and ~/.config nothing.
type kind struct {
	name   string
	dirs   []string
	hidden []string // patterns below each directory
	vars   []string // variables by which programs find it, told inside if it is shown
}

// credentials are hidden at the top of every directory, whosever it is.
var credentials = []string{
	".npmrc", "npmrc", "etc/npmrc", "lib/node_modules/npm/npmrc", "pip.conf", "credentials", "credentials.toml", "credentials.json", ".credentials",
	".netrc", ".git-credentials", ".pypirc", ".env", "auth.json", ".git/config",
}

var kinds = []kind{
	{"nvm", []string{"$NVM_DIR", "~/.nvm"}, []string{"versions/node/*/etc/npmrc", "versions/node/*/lib/node_modules/npm/npmrc"}, []string{"NVM_DIR"}},
	{"fnm", []string{"$FNM_DIR/node-versions", "~/.local/share/fnm/node-versions", "~/.fnm/node-versions"}, []string{"*/installation/etc/npmrc", "*/installation/lib/node_modules/npm/npmrc"}, nil},
	{"volta", []string{"$VOLTA_HOME", "~/.volta"}, []string{"tools/image/node/*/etc/npmrc", "tools/user/*/.npmrc"}, []string{"VOLTA_HOME"}},
	{"mise", []string{"$MISE_DATA_DIR/installs", "$MISE_DATA_DIR/shims", "~/.local/share/mise/installs", "~/.local/share/mise/shims"}, []string{"node/*/etc/npmrc", "maven/*/conf/settings.xml"}, nil},
	{"asdf", []string{"$ASDF_DATA_DIR", "$ASDF_DIR", "~/.asdf"}, []string{"installs/nodejs/*/etc/npmrc", "installs/nodejs/*/.npm", "installs/maven/*/conf/settings.xml"}, []string{"ASDF_DATA_DIR", "ASDF_DIR"}},
	{"pyenv", []string{"$PYENV_ROOT", "~/.pyenv"}, []string{"versions/*/pip.conf", "versions/*/etc/pip.conf"}, []string{"PYENV_ROOT"}},
	{"uv", []string{"~/.local/share/uv/python", "~/.local/share/uv/tools"}, []string{"*/pip.conf"}, nil},
	{"rustup", []string{"$RUSTUP_HOME", "~/.rustup"}, nil, []string{"RUSTUP_HOME"}},
	{"cargo", []string{"$CARGO_HOME/bin", "~/.cargo/bin"}, nil, nil},
	{"go", []string{"$GOROOT", "$GOBIN", "$GOPATH/bin", "~/sdk", "~/go/bin"}, nil, nil},
	{"sdkman", []string{"$SDKMAN_DIR/candidates", "~/.sdkman/candidates", "~/.sdkman/bin", "~/.sdkman/src", "~/.sdkman/libexec"}, []string{"maven/*/conf/settings.xml", "gradle/*/init.d"}, nil},
	{"bun", []string{"$BUN_INSTALL/bin", "~/.bun/bin", "~/.bun/install/global"}, nil, nil},
	{"deno", []string{"$DENO_INSTALL/bin", "~/.deno/bin"}, nil, nil},
	{"pnpm", []string{"$PNPM_HOME", "~/.local/share/pnpm"}, []string{"rc", "global/*/.npmrc", "nodejs/*/etc/npmrc"}, []string{"PNPM_HOME"}},
	{"local", []string{"~/.local/bin", "~/.local/lib", "~/.local/pipx", "~/.local/share/pipx"}, []string{"venvs/*/pip.conf"}, nil},
	{"homebrew", []string{
		"/home/linuxbrew/.linuxbrew/bin", "/home/linuxbrew/.linuxbrew/sbin", "/home/linuxbrew/.linuxbrew/lib", "/home/linuxbrew/.linuxbrew/libexec",
		"/home/linuxbrew/.linuxbrew/include", "/home/linuxbrew/.linuxbrew/opt", "/home/linuxbrew/.linuxbrew/share", "/home/linuxbrew/.linuxbrew/Cellar",
		"/home/linuxbrew/.linuxbrew/etc/openssl@3", "/home/linuxbrew/.linuxbrew/etc/ca-certificates",
	}, nil, nil},
	{"nix", []string{"/nix/store"}, nil, nil},
	{optional, nil, []string{"etc", "conf", "config", "var", "data", "*/etc/npmrc", "*/.npmrc"}, nil},
}

// optional is the toolchain of what lies below /opt: the directories there whose programs are on the search path.
const optional = "opt"

// Names are those of the tables, as configurations write them.
func Names() (names []string) {
	for _, k := range slices.Concat(kinds, cacheKinds) {
		names = append(names, k.name)
	}
	return names
}
