package light

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Need is a set of what commands are about, and so must reach: keys, agents, other services' sockets.
type Need uint32

// The needs.
const (
	SSH        Need = 1 << iota // keys and agent of ssh
	GPG                         // keys and agent of GnuPG
	Engine                      // a container engine
	Git                         // a repository's own files
	Stored                      // what git and gh keep to sign in with
	NPM                         // npm's settings, which hold tokens
	Kubernetes                  //
	AWS                         //
	Azure                       //
	GCloud                      //
	PyPI                        //
	Passwords                   // pass
	Cargo
	Maven    // and Gradle
	Database // passwords of database clients
	Vault
	Terraform
	Rclone
	OnePassword
	Hub // settings of clients of code forges and hosters
)

// kept are the names below the home directory that a need keeps in sight.
var kept = map[Need][]string{
	SSH: {".ssh"}, GPG: {".gnupg"}, Engine: {".docker/config.json"}, Stored: {".git-credentials", ".netrc", ".config/gh/hosts.yml"},
	NPM: {".npmrc"}, Kubernetes: {".kube"}, AWS: {".aws"}, Azure: {".azure"}, GCloud: {".config/gcloud"}, PyPI: {".pypirc"},
	Passwords: {".password-store"}, Cargo: {".cargo/credentials", ".cargo/credentials.toml"}, Database: {".pgpass", ".my.cnf", ".mylogin.cnf"},
	Maven: {".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"}, Vault: {".vault-token"}, Rclone: {".config/rclone"},
	OnePassword: {".config/op"}, Hub: {".config/hub", ".config/glab-cli", ".config/doctl", ".config/hcloud", ".fly", ".config/netlify", ".wrangler", ".config/.wrangler"},
	Terraform: {".terraform.d/credentials.tfrc.json", ".terraformrc"},
}

// programs says what programs are about: always, and besides if they talk to the network. Whoever is not here gets nothing:
// tests and builds run code of the project, which must not find keys.
var programs = map[string]struct{ always, network Need }{
	"git": {Git, SSH | Stored}, "gh": {Git | Stored, SSH}, "git-lfs": {Git, SSH | Stored},
	"ssh": {SSH, 0}, "scp": {SSH, 0}, "sftp": {SSH, 0}, "ssh-add": {SSH, 0}, "ssh-keygen": {SSH, 0}, "ssh-copy-id": {SSH, 0}, "mosh": {SSH, 0}, "rsync": {0, SSH},
	"gpg": {GPG, 0}, "gpg2": {GPG, 0}, "gpgv": {GPG, 0}, "pass": {GPG | Passwords, 0}, "sops": {GPG | AWS | GCloud | Azure, 0},
	"docker": {Engine, 0}, "docker-compose": {Engine, 0}, "nerdctl": {Engine, 0}, "kind": {Engine | Kubernetes, 0}, "minikube": {Engine | Kubernetes, 0},
	"npm": {0, NPM}, "npx": {0, NPM}, "pnpm": {0, NPM}, "yarn": {0, NPM}, "bun": {0, NPM},
	"kubectl": {Kubernetes | AWS | GCloud | Azure, 0}, "helm": {Kubernetes | AWS | GCloud | Azure, 0}, "k9s": {Kubernetes, 0},
	"aws": {AWS, 0}, "terraform": {0, Terraform | AWS | Azure | GCloud}, "tofu": {0, Terraform | AWS | Azure | GCloud}, "az": {Azure, 0},
	"gcloud": {GCloud, 0}, "gsutil": {GCloud, 0}, "bq": {GCloud, 0}, "twine": {PyPI, 0},
	"cargo": {0, Cargo}, "mvn": {0, Maven}, "mvnw": {0, Maven}, "gradle": {0, Maven}, "gradlew": {0, Maven},
	"psql": {Database, 0}, "pg_dump": {Database, 0}, "pg_restore": {Database, 0}, "mysql": {Database, 0}, "mysqldump": {Database, 0}, "mariadb": {Database, 0},
	"vault": {Vault, 0}, "rclone": {Rclone, 0}, "op": {OnePassword, 0}, "hub": {Hub | Git, SSH}, "glab": {Hub | Git, SSH}, "doctl": {Hub, 0}, "hcloud": {Hub, 0},
	"fly": {Hub, 0}, "flyctl": {Hub, 0}, "netlify": {Hub, 0}, "wrangler": {Hub, 0},
}

// Call is a program that a part of a command starts.
type Call struct {
	Program string // its path
	Args    []string
	Network bool // it talks to the network
}

// NeedOf says what a program that is started is about. signs reports whether git signs what it commits.
func NeedOf(c Call, signs bool) Need {
	about := programs[path.Base(c.Program)]
	need := about.always
	if c.Network {
		need |= about.network
	}
	if need&Git != 0 && makesSignature(c.Args, signs) {
		need |= GPG | SSH // either may be what signs
	}
	return need
}

// signed are the subcommands of git that sign where the settings or the arguments say so.
var signed = []string{"commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull", "tag"}

func makesSignature(args []string, signs bool) bool {
	if !slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(signed, arg) }) {
		return false
	}
	return signs || slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-S") || arg == "-s" || arg == "--sign" || strings.HasPrefix(arg, "--gpg-sign")
	})
}

// unfit are programs that cannot do their work confined: they change user, mount, or make containers of other users.
var unfit = strings.Fields("sudo su doas pkexec podman buildah mount umount fusermount fusermount3 newuidmap newgidmap systemd-run machinectl at batch crontab")

// Unfit reports whether a program can only work on the machine as it is. A user other than root has no rights to change
// user in a confinement.
func Unfit(program string) bool { return slices.Contains(unfit, path.Base(program)) }

// agents are the variables that lead to agents and screens, and the need that keeps each; 0: none does.
var agents = map[string]Need{
	"SSH_AUTH_SOCK": SSH, "SSH_AGENT_PID": SSH, "GPG_AGENT_INFO": GPG, "GNOME_KEYRING_CONTROL": 0, "DBUS_SESSION_BUS_ADDRESS": 0,
	"DBUS_STARTER_ADDRESS": 0, "DISPLAY": 0, "WAYLAND_DISPLAY": 0, "XAUTHORITY": 0, "TMUX": 0, "TMUX_PANE": 0, "STY": 0,
	"DOCKER_HOST": Engine, "CONTAINER_HOST": Engine, "VSCODE_IPC_HOOK_CLI": 0, "VSCODE_GIT_IPC_HANDLE": Git, "NVIM": 0,
}

// environment leaves out what leads to where nothing is.
func environment(env []string, need Need) []string {
	keep := func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		by, known := agents[name]
		return !known || by&need != 0
	}
	if !slices.ContainsFunc(env, func(v string) bool { return !keep(v) }) {
		return env
	}
	list := make([]string, 0, len(env))
	for _, v := range env {
		if keep(v) {
			list = append(list, v)
		}
	}
	return list
}

var signing = regexp.MustCompile(`(?im)^\s*gpgsign\s*(=\s*(true|yes|on|1)\s*)?$`)

// signsCommits reports whether git signs what the account commits, as far as its own settings say so.
func signsCommits(home string) bool {
	for _, name := range []string{".gitconfig", ".config/git/config"} {
		text, err := os.ReadFile(path.Join(home, name))
		if err == nil && signing.Match(text) {
			return true
		}
	}
	return false
}
