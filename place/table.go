package place

// anchor says from where the names of a row are counted.
type anchor uint8

const (
	atRoot      anchor = iota // the file system's root; the name and everything below it
	atHome                    // the person's home directory; the name and everything below it
	anywhere                  // at any depth; the name and everything below it (in the workspace: only the part below its root)
	baseName                  // the last element, at any depth
	extension                 // the end of the last element, at any depth
	inWorkspace               // the last element, at any depth of the workspace
)

type row struct {
	place Place
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
	{Secret, atRoot, []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"}},
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
		".github/workflows",
	}},

	// Text that later runs obey: writing it is writing tomorrow's orders.
	{Instructions, inWorkspace, []string{
		"AGENTS.md", "CLAUDE.md", "GEMINI.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md",
		"HEARTBEAT.md",
	}},
}

// envHarmless are the endings of .env.* files that are published on purpose and hold no values.
var envHarmless = []string{"example", "sample", "template", "dist"}

// procSecret are the entries of /proc/<pid> that show another process's secrets or lead into its view of
// the file system.
var procSecret = []string{"environ", "mem", "root", "cwd"}
