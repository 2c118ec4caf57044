package profiles

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkCrontab: a file, or the input, takes the place of the table.
func checkCrontab(a *arguments) {
	if !a.has("-l") {
		a.does(shell.Effect{Kind: shell.Configures})
	}
}

// checkGPG: without an option that lists, gpg guesses what to do with a file.
func checkGPG(a *arguments) {
	lists := slices.ContainsFunc([]string{"--version", "--help", "-k", "-K", "--list-keys", "--list-secret-keys", "--fingerprint"}, a.has)
	if !lists {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "gpg"})
	}
}

// What the subcommands of openssl have in common. Other options, such as -config and -engine, load what they name.
var (
	opensslReads = strings.Fields(`-in -inkey -key -CA -CAkey -CAfile -cafile -CApath -cert -certfile -untrusted -trusted -rand
		-signature -sigfile -verify -prverify -sign -pubin-key -peerkey -content -issuer -VAfile -chain`)
	opensslWrites = strings.Fields(`-out -keyout -writerand -sigout -respout -reqout`)
	opensslText   = strings.Fields(`-inform -outform -keyform -certform -CAform -subj -days -digest -sha256 -newkey -algorithm -pkeyopt
		-name -nameopt -dateopt -set_serial -addext -ext -passin -passout -pass -k -K -iv -S -iter -md -curves -purpose -checkhost
		-checkemail -checkip -attime -startdate -enddate -checkend -bytes -num -bits -primes -caname -servername -alpn -starttls -tls1_2
		-verify_hostname -verify_depth -cipher -ciphersuites -sigalgs -prexit`)
	opensslValues = slices.DeleteFunc(slices.Clone(opensslText), func(s string) bool {
		return slices.Contains([]string{"-digest", "-sha256", "-startdate", "-enddate", "-tls1_2", "-prexit"}, s)
	})
	opensslFlags = strings.Fields(`-text -noout -modulus -serial -subject -issuer -dates -startdate -enddate -fingerprint -hash -pubkey
		-pubin -pubout -nodes -noenc -new -x509 -batch -verbose -check -checkkey -sha1 -sha224 -sha256 -sha384 -sha512 -md5 -hex -r -c -binary
		-base64 -d -e -a -A -salt -nosalt -pbkdf2 -aes-128-cbc -aes-256-cbc -aes128 -aes256 -des3 -showcerts -connect-only -brief -quiet
		-ign_eof -no_ign_eof -tls1_2 -tls1_3 -tls1_1 -status -prexit -export -nocerts -nokeys -clcerts -cacerts -info -legacy-no
		-param_enc -conv_form -genkey -list_curves -issuer_hash -subject_hash -ocsp_uri -email -purpose-all -req -CAcreateserial
		-copy_extensions-no -z -v -V -p -digest -crlf`)
	opensslCommands = strings.Fields(`asn1parse base64 ciphers crl dgst ec ecparam enc genpkey genrsa list md5 passwd pkcs12 pkcs7 pkcs8
		pkey pkeyparam pkeyutl prime rand req rsa rsautl s_client sha1 sha224 sha256 sha384 sha512 verify version x509 help sess_id nseq`)
	opensslFileOperands = strings.Fields(`dgst md5 sha1 sha224 sha256 sha384 sha512 verify`)
)

// checkOpenSSL reads a subcommand and its options, of which most have their names from one list.
func checkOpenSSL(a *arguments) {
	args := a.operands
	if len(args) == 0 || !slices.Contains(opensslCommands, args[0]) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(args[:min(1, len(args))], "")})
		return
	}
	command, args := args[0], args[1:]
	if command == "s_client" {
		a.does(shell.Effect{Kind: shell.Network, Host: opensslHost(args)})
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		value := ""
		switch {
		case arg == "-issuer", slices.Contains(opensslFlags, arg) && !slices.Contains(opensslReads, arg):
			continue
		case strings.HasPrefix(arg, "-") && len(args) > 0:
			value = args[0]
		case !strings.HasPrefix(arg, "-") && slices.Contains(opensslFileOperands, command):
			a.does(shell.Effect{Kind: shell.Reads, Path: arg})
			continue
		case !strings.HasPrefix(arg, "-") && slices.Contains([]string{"rand", "passwd", "prime", "genrsa", "ciphers", "list", "version", "help"}, command):
			continue
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			continue
		}
		switch {
		case slices.Contains(opensslReads, arg):
			a.does(shell.Effect{Kind: shell.Reads, Path: value, Via: arg})
		case slices.Contains(opensslWrites, arg):
			a.does(shell.Effect{Kind: shell.Writes, Path: value, Via: arg})
		case arg == "-connect" && command == "s_client":
		case slices.Contains([]string{"-passin", "-passout", "-pass"}, arg) && !strings.HasPrefix(value, "pass:") && value != "stdin":
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg + " " + value}) // file:, env: and fd: read secrets
		case slices.Contains(opensslValues, arg):
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			continue
		}
		args = args[1:]
	}
}

func opensslHost(args []string) string {
	for i, arg := range args {
		if arg == "-connect" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
