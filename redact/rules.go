package redact

import "strings"

// rule is one family of secrets.
type rule struct {
	kind     string
	prefixes []string // at least 3 bytes each
	fold     bool     // prefixes are lower case and match in both cases
	guess    bool     // not a shape of its own: a value behind a telling word
	// verify is called with the offset and length of a prefix; it returns the bytes to hide. It must look at
	// a bounded stretch, or at one that begins at a boundary of its characters, so that scanning stays linear.
	verify func(s string, at, length int) (start, end int, ok bool)
}

// rules is the table of shapes. Lengths are the makers'; "least" leaves room for longer ones.
var rules = []rule{
	{kind: "private-key", prefixes: []string{"-----BEGIN "}, verify: privateKey},
	{kind: "private-key", prefixes: []string{"AGE-SECRET-KEY-1"}, verify: key(upper, 50)},
	{kind: "aws-key", prefixes: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, verify: exactly(upper, 16)},
	{kind: "google-key", prefixes: []string{"AIza"}, verify: exactly(word, 35)},
	{kind: "google-key", prefixes: []string{"GOCSPX-"}, verify: key(word, 24)},
	{kind: "google-token", prefixes: []string{"ya29."}, verify: key(word, 30)},
	{kind: "github-token", prefixes: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, verify: key(word, 30)},
	{kind: "github-token", prefixes: []string{"github_pat_"}, verify: key(word, 40)},
	{kind: "gitlab-token", prefixes: []string{
		"glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glcbt-", "glsoat-", "glimt-", "glagent-", "gloas-",
	}, verify: key(dotted, 20)},
	{kind: "slack-token", prefixes: []string{"xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"}, verify: key(dotted, 16)},
	{kind: "slack-webhook", prefixes: []string{"hooks.slack.com/services/"}, verify: key(pathlike, 20)},
	{kind: "discord-webhook", prefixes: []string{"discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}, verify: key(pathlike, 40)},
	{kind: "stripe-key", prefixes: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"}, verify: key(word, 16)},
	{kind: "anthropic-key", prefixes: []string{"sk-ant-"}, verify: key(word, 20)},
	{kind: "openai-key", prefixes: []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"}, verify: key(word, 20)},
	{kind: "provider-key", prefixes: []string{"sk-"}, verify: key(word, 32)},
	{kind: "provider-key", prefixes: []string{"xai-", "gsk_", "pplx-", "nvapi-"}, verify: key(word, 40)},
	{kind: "huggingface-token", prefixes: []string{"hf_"}, verify: key(word, 30)},
	{kind: "replicate-token", prefixes: []string{"r8_"}, verify: exactly(word, 37)},
	{kind: "npm-token", prefixes: []string{"npm_"}, verify: exactly(word, 36)},
	{kind: "pypi-token", prefixes: []string{"pypi-AgE"}, verify: key(word, 50)},
	{kind: "docker-token", prefixes: []string{"dckr_pat_", "dckr_oat_"}, verify: key(word, 20)},
	{kind: "digitalocean-token", prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, verify: exactly(hexadecimal, 64)},
	{kind: "sendgrid-key", prefixes: []string{"SG."}, verify: sendgrid},
	{kind: "shopify-token", prefixes: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, verify: exactly(hexadecimal, 32)},
	{kind: "square-token", prefixes: []string{"sq0atp-", "sq0csp-"}, verify: key(word, 22)},
	{kind: "tailscale-key", prefixes: []string{"tskey-"}, verify: key(word, 20)},
	{kind: "vault-token", prefixes: []string{"hvs.", "hvb.", "hvr."}, verify: key(word, 24)},
	{kind: "linear-key", prefixes: []string{"lin_api_"}, verify: key(word, 32)},
	{kind: "atlassian-token", prefixes: []string{"ATATT3", "ATCTT3"}, verify: key(padded, 50)},
	{kind: "databricks-token", prefixes: []string{"dapi"}, verify: exactly(hexadecimal, 32)},
	{kind: "planetscale-token", prefixes: []string{"pscale_tkn_", "pscale_pw_", "pscale_oauth_"}, verify: key(word, 30)},
	{kind: "telegram-token", prefixes: []string{":AA"}, verify: telegram},
	{kind: "azure-key", prefixes: []string{"AccountKey=", "SharedAccessKey="}, verify: afterPrefix(padded, 40)},
	// {"alg", "typ", "kid", "enc", "cty", "jku", "x5t", "zip", "b64", "p2s" in base64
	{kind: "jwt", prefixes: []string{"eyJh", "eyJ0", "eyJr", "eyJl", "eyJj", "eyJq", "eyJ4", "eyJ6", "eyJi", "eyJw", "eyAi", "ewog"}, verify: jwt},

	{kind: "url-password", prefixes: []string{"://"}, guess: true, verify: urlPassword},
	{kind: "bearer", prefixes: []string{"bearer ", "basic "}, fold: true, guess: true, verify: authorization},
	{kind: "password", prefixes: []string{"password", "passwd", "passphrase", "passcode"}, fold: true, guess: true, verify: assigned(4)},
	{kind: "secret", prefixes: []string{"secret"}, fold: true, guess: true, verify: assigned(8)},
	{kind: "token", prefixes: []string{"token"}, fold: true, guess: true, verify: assigned(12)},
	{kind: "key", prefixes: []string{
		"api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey",
		"signing_key", "signing-key", "signingkey", "encryption_key", "auth_key", "authkey", "account_key",
	}, fold: true, guess: true, verify: assigned(12)},
}

// class is a set of bytes.
type class [256]bool

func classOf(ranges string) *class {
	var c class
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			c[b] = true
		}
	}
	return &c
}

var (
	upper       = classOf("AZ09")
	hexadecimal = classOf("afAF09")
	word        = classOf("azAZ09__--")
	dotted      = classOf("azAZ09__--..")
	padded      = classOf("azAZ09__--++//==")
	pathlike    = classOf("azAZ09__--//")
	base64Body  = classOf("azAZ09++//==")
)

// run is the end of the stretch of class characters that begins at i.
func (c *class) run(s string, i int) int {
	for i < len(s) && c[s[i]] {
		i++
	}
	return i
}

// fresh reports whether a token can begin at i: it does not continue another word.
func fresh(s string, i int) bool { return i == 0 || !word[s[i-1]] || escapedBefore(s, i) }

// escapedBefore reports whether what stands before i is the letter of an escape such as \n in quoted text.
func escapedBefore(s string, i int) bool {
	return i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrt", s[i-1]) >= 0
}

// key accepts at least so many class characters after the prefix.
func key(c *class, least int) func(string, int, int) (int, int, bool) {
	return func(s string, at, length int) (int, int, bool) {
		if !fresh(s, at) {
			return 0, 0, false
		}
		// Decided on a bounded stretch: a rejected candidate must not cost the rest of a long run, or a text of
		// many such candidates would take quadratic time.
		body := at + length
		probe := c.run(s[:min(len(s), body+least+64)], body)
		if probe-body < least || !various(s[body:probe]) {
			return 0, 0, false
		}
		return at, c.run(s, probe), true
	}
}

// exactly accepts so many class characters and no more after the prefix.
func exactly(c *class, n int) func(string, int, int) (int, int, bool) {
	return func(s string, at, length int) (int, int, bool) {
		body := at + length
		end := body + n
		if !fresh(s, at) || end > len(s) || (end < len(s) && word[s[end]]) {
			return 0, 0, false
		}
		return at, end, c.run(s[:end], body) == end && various(s[body:end])
	}
}

// afterPrefix hides only what follows the prefix.
func afterPrefix(c *class, least int) func(string, int, int) (int, int, bool) {
	return func(s string, at, length int) (int, int, bool) {
		body := at + length
		end := c.run(s, body)
		return body, end, end-body >= least
	}
}

// various refuses the placeholders of documentation: xxxxxxxx, ********, 00000000.
func various(s string) bool {
	var seen [256]bool
	n := 0
	for i := 0; i < len(s) && i < 64; i++ {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n >= 5
}

// jwt accepts three parts of base64url between dots, of which the first two begin as JSON objects do. A part may be
// missing its signature (alg none) only if the dot is there.
func jwt(s string, at, _ int) (int, int, bool) {
	if !fresh(s, at) || (at > 0 && s[at-1] == '.') {
		return 0, 0, false
	}
	head := word.run(s, at)
	if head-at < 12 || head >= len(s) || s[head] != '.' {
		return 0, 0, false
	}
	if rest := s[head+1:]; !strings.HasPrefix(rest, "ey") && !strings.HasPrefix(rest, "ew") {
		return 0, 0, false
	}
	body := word.run(s, head+1)
	if body-head < 8 || body >= len(s) || s[body] != '.' {
		return 0, 0, false
	}
	end := word.run(s, body+1)
	for end < len(s) && s[end] == '.' && end+1 < len(s) && word[s[end+1]] { // encrypted tokens have five parts
		end = word.run(s, end+1)
	}
	return at, end, true
}

func sendgrid(s string, at, length int) (int, int, bool) {
	if !fresh(s, at) {
		return 0, 0, false
	}
	first := word.run(s, at+length)
	if first-at-length < 16 || first >= len(s) || s[first] != '.' {
		return 0, 0, false
	}
	end := word.run(s, first+1)
	return at, end, end-first > 30
}

// telegram accepts <8 to 10 digits>:AA<33 characters>.
func telegram(s string, at, _ int) (int, int, bool) {
	start := at
	for start > 0 && at-start < 11 && s[start-1] >= '0' && s[start-1] <= '9' {
		start--
	}
	end := word.run(s, at+1)
	return start, end, at-start >= 8 && at-start <= 10 && end-at-1 >= 33 && end-at-1 <= 40
}

// privateKey accepts a PEM or OpenPGP private-key block, also when its line breaks are written as \n and when
// its end is cut off. The public half of a pair is not a secret.
func privateKey(s string, at, length int) (int, int, bool) {
	head := at + length
	for head < len(s) && head-at < 80 && (s[head] == ' ' || upper[s[head]]) {
		head++
	}
	title := s[at+length : head]
	if !strings.Contains(title, "PRIVATE KEY") || !strings.HasPrefix(s[head:], "-----") {
		return 0, 0, false
	}
	end := head + len("-----")
	for end < len(s) {
		next := end + lineBreak(s[end:])
		if next == end {
			break
		}
		if strings.HasPrefix(s[next:], "-----END ") {
			if stop := strings.Index(s[next+9:min(len(s), next+100)], "-----"); stop >= 0 {
				return at, next + 9 + stop + len("-----"), true
			}
		}
		body := base64Body.run(s, next)
		if body > next && body < len(s) && (s[body] == ':' || s[body] == '-' && !strings.HasPrefix(s[body:], "-----")) {
			for body < len(s) && body-next < 200 && s[body] != '\n' && s[body] != '\\' && s[body] != '"' {
				body++ // a header line: "Proc-Type: 4,ENCRYPTED", "Version: …"
			}
		}
		if body == next && lineBreak(s[body:]) == 0 {
			break
		}
		end = body
	}
	return at, end, true
}

// lineBreak is the length of the line breaks and indentation at the start of s, real ones or escaped ones.
func lineBreak(s string) int {
	i := 0
	for i < len(s) {
		switch {
		case s[i] == '\n' || s[i] == '\r' || i > 0 && (s[i] == ' ' || s[i] == '\t'):
			i++
		case s[i] == '\\': // \n, also escaped several times
			j := i
			for j < len(s) && j-i < 8 && s[j] == '\\' {
				j++
			}
			if j >= len(s) || (s[j] != 'n' && s[j] != 'r') {
				return i
			}
			i = j + 1
		default:
			return i
		}
	}
	return i
}
