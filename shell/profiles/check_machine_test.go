package profiles

import (
	"testing"

	"github.com/toolward/toolward/shell"
)

func TestMachine(t *testing.T) {
	testKinds(t, map[string][]string{
		"": {
			"systemctl status nginx", "systemctl --user list-units --type=service --no-pager", "systemctl is-active x", "journalctl -u nginx -n 50 --no-pager", "journalctl -f", "journalctl -b -1 -p err",
			"crontab -l", "apt list --installed", "apt-cache policy x", "apt show x", "dpkg -l", "openssl version", "openssl rand -hex 16", "gpg --version",
		},
		"network":        {"brew list", "brew info x", "openssl s_client -connect h.example:443 -servername h.example"},
		"config":         {"systemctl start x", "systemctl --user enable x", "systemctl enable --now x", "systemctl daemon-reload", "service x restart", "crontab -e", "crontab -r", "at now", "batch", "launchctl load x", "useradd x", "journalctl --rotate"},
		"config reads":   {"crontab file"},
		"config network": {"apt install x", "apt-get -y install x", "apt update", "brew install x", "dnf install x", "pacman -S x", "snap install x"},
		"destroys":       {"journalctl --vacuum-time=1d"},
		"environment":    {"systemctl show-environment"},
		"reads":          {"openssl x509 -in c.pem -noout -text", "openssl dgst -sha256 f", "openssl verify -CAfile ca.pem c.pem", "dpkg -c x.deb"},
		"reads writes":   {"openssl rsa -in k -pubout -out p", "openssl enc -aes-256-cbc -d -in a -out b -pass pass:x -pbkdf2"},
		"writes":         {"openssl genrsa -out k.pem 2048", "openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 30 -subj /CN=x"},
	})
	testAsks(t, shell.Unknown,
		"systemctl -H h status", "systemctl --root=/x status", "systemctl frob", "journalctl -M x", "apt -o x=y list", "apt install -o Dpkg::Pre-Invoke::=id x", "apt-get -c f update", "mount /x", "umount x", "apt frob",
		"openssl s_server", "openssl engine x", "openssl req -config x", "openssl dgst -engine x f", "openssl enc -provider x", "openssl x509 -in a -passin file:/etc/passwd", "openssl enc -pass env:X", "openssl ca -config x", "openssl frob", "openssl", "openssl x509 -provider-path /x",
		"gpg --decrypt x", "gpg x", "brew frob",
	)
	testAsks(t, shell.Configures, "apt-get install x", "dpkg -i x.deb", "brew services start x", "apt-get remove x", "systemctl link x")
	testPlaces(t, [][2]string{
		{"openssl s_client -connect h:443 -CAfile /x", "network h:443; reads /x (-CAfile)"},
		{"openssl enc -in /etc/shadow -out /x -base64", "reads /etc/shadow (-in); writes /x (-out)"},
		{"journalctl --file=/x -D /y", "reads /x (--file); reads /y (-D)"},
	})
}
