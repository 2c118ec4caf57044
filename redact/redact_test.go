package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// body makes text that looks random but is written nowhere as a key.
func body(n int) string {
	const abc = "q7Wm2Zt9Xr4Kp8Vn1Bc6Yh3Jd5LfGs0aQeRuTiOwPx"
	return strings.Repeat(abc, n/len(abc)+1)[:n]
}

func hexBody(n int) string { return strings.Repeat("3f9a0c7b5e1d8246", n/16+1)[:n] }

var pem = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" +
	body(64) + "\n" + body(64) + "\nMII+/==\n-----END RSA PRIVATE KEY-----"

func jwtOf() string { return "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + body(43) }

func TestShapes(t *testing.T) {
	for _, tc := range []struct{ name, kind, secret string }{
		{"private key", "private-key", pem},
		{"private key with written line breaks", "private-key", strings.ReplaceAll(pem, "\n", `\n`)},
		{"private key with twice written line breaks", "private-key", strings.ReplaceAll(pem, "\n", `\\n`)},
		{"private key without end", "private-key", "-----BEGIN PRIVATE KEY-----\n" + body(64) + "\n" + body(30)},
		{"OpenSSH key", "private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + body(70) + "\n-----END OPENSSH PRIVATE KEY-----"},
		{"OpenPGP key", "private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n" + body(64) + "\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----"},
		{"AWS", "aws-key", "AKIA" + "QYLPMN5HNM4OZ2XT"},
		{"Google", "google-key", "AIza" + body(35)},
		{"GitHub", "github-token", "ghp_" + body(36)},
		{"GitHub fine-grained", "github-token", "github_pat_" + body(82)},
		{"GitLab", "gitlab-token", "glpat-" + body(20)},
		{"Slack", "slack-token", "xoxb-" + "123456789012-" + body(24)},
		{"Slack webhook", "slack-webhook", "hooks.slack.com/services/T000/B000/" + body(24)},
		{"Stripe", "stripe-key", "sk_live_" + body(24)},
		{"Anthropic", "anthropic-key", "sk-ant-api03-" + body(80)},
		{"OpenAI", "openai-key", "sk-proj-" + body(80)},
		{"OpenAI, old", "provider-key", "sk-" + body(48)},
		{"npm", "npm-token", "npm_" + body(36)},
		{"SendGrid", "sendgrid-key", "SG." + body(22) + "." + body(43)},
		{"Databricks", "databricks-token", "dapi" + hexBody(32)},
		{"Telegram", "telegram-token", "123456789:AA" + body(33)},
		{"JWT", "jwt", jwtOf()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, around := range [][2]string{{"", ""}, {"use ", " now"}, {`"`, `"`}, {"\n", "\n"}, {"x=", ";"}, {"(", ")"}} {
				text := around[0] + tc.secret + around[1]
				got := Shapes(text)
				if len(got) != 1 || got[0].Kind != tc.kind || text[got[0].Start:got[0].End] != tc.secret {
					t.Fatalf("%q: %+v", text, got)
				}
			}
			if clean := New().String("a " + tc.secret + " b"); clean != "a [hidden: "+tc.kind+"] b" {
				t.Errorf("cleaned: %q", clean)
			}
		})
	}
}

func TestNotAShape(t *testing.T) {
	for _, text := range []string{
		"-----BEGIN PUBLIC KEY-----\n" + body(64) + "\n-----END PUBLIC KEY-----",
		"-----BEGIN CERTIFICATE-----\n" + body(64) + "\n-----END CERTIFICATE-----",
		"AKIAIOSFODNN7", "AKIA" + strings.Repeat("A", 16), "xAKIA" + "QYLPMN5HNM4OZ2XT", "AKIA" + "QYLPMN5HNM4OZ2XTMORE",
		"ghp_short", "ghp_" + strings.Repeat("x", 36), "eyJhbGciOiJIUzI1NiJ9", "eyJ.eyJ.", "sk-learn", "task-" + "list-of-things",
		"the disk-" + "based-index-of-the-whole-repository-tree", "hf_model", "SG.1", "12:AA" + body(33), "npm_config_registry",
		"postgres://user:secretpw@host/db", "password=Tr0ub4dor&3",
	} {
		if got := Shapes(text); len(got) != 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestGuesses(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"environment", "DB_PASSWORD=correcthorse x", "DB_PASSWORD=[hidden: password] x"},
		{"json", `{"password": "hunter22"}`, `{"password": "[hidden: password]"}`},
		{"escaped json", `"{\"password\": \"hunter22\"}"`, `"{\"password\": \"[hidden: password]\"}"`},
		{"yaml", "password: hunter22\nuser: x", "password: [hidden: password]\nuser: x"},
		{"aws", "aws_secret_access_key = " + body(40), "aws_secret_access_key = [hidden: key]"},
		{"client secret", `clientSecret: '` + body(20) + `'`, `clientSecret: '[hidden: secret]'`},
		{"secret key", "SECRET_KEY=" + body(30), "SECRET_KEY=[hidden: secret]"},
		{"option", "tool --token " + body(20) + " go", "tool --token [hidden: token] go"},
		{"bearer", "Authorization: Bearer " + body(30), "Authorization: Bearer [hidden: bearer]"},
		{"basic", "authorization: basic dXNlcjpwYXNzd29yZDE=", "authorization: basic [hidden: bearer]"},
		{"url", "psql postgres://app:s3cretpw@db/x", "psql postgres://app:[hidden: url-password]@db/x"},
		{"query", "GET /?api_key=" + body(20) + "&x=1", "GET /?api_key=[hidden: key]&x=1"},
		{"azure", "AccountKey=" + body(86) + "==;x", "AccountKey=[hidden: azure-key];x"},
		{"dollar inside", `password = "pa$$w0rd1"`, `password = "[hidden: password]"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := New()
			got, found := r.Clean(tc.in)
			if got != tc.want || !found {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if again := r.String(got); again != got {
				t.Errorf("cleaned twice: %q", again)
			}
		})
	}
}

// What programs and documents say about secrets is not a secret.
func TestCleanTextIsUnchanged(t *testing.T) {
	for _, text := range []string{
		"password := os.Getenv(\"DB_PASSWORD\")", "password: string;", "token = getToken(ctx)", "if token == other {",
		"connect(password=self.password)", "max_tokens: 4096", "tokens = 12345678901234", "PASSWORD=$DB_PASSWORD", `password: "${DB_PASSWORD}"`,
		"--token <your token here>", "api_key = process.env.API_KEY1", `"token": "string"`, "Password: ********", "secret: null",
		"the password is asked for at the start", "http://localhost:8080/a@b", "https://user@host/", "git@github.com:a/b.git",
		"bearer of bad news", "basic understanding", "func (r *Redactor) secret(token string) error {", "token: {{ .Values.token }}",
		`{ label: "Password", type: "password" }`, "secretKeyRef:\n  name: x", "password must contain 8 characters",
	} {
		if got, found := New().Clean(text); found || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestHeld(t *testing.T) {
	const secret = "s3cr3t/va+lue?"
	r := New(secret, "short", "")
	b64 := func(prefix string) string {
		return base64.StdEncoding.EncodeToString([]byte(prefix + secret + "suffix"))
	}
	for name, text := range map[string]string{
		"plain":       "x" + secret + "y",
		"hex":         hex.EncodeToString([]byte("a" + secret)),
		"HEX":         strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":      b64(""),
		"base64 +1":   b64("a"),
		"base64 +2":   b64("ab"),
		"base64 +3":   b64("abc"),
		"base64 url":  base64.URLEncoding.EncodeToString([]byte("x" + secret)),
		"base64 raw":  base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"query":       "q=" + url.QueryEscape(secret),
		"path":        "/" + url.PathEscape(secret),
		"all percent": percent(secret),
	} {
		if !r.Holds(text) {
			t.Errorf("%s: %q is not recognised", name, text)
		}
		if clean := r.String(text); strings.Contains(clean, secret) || !strings.Contains(clean, "[hidden: held]") {
			t.Errorf("%s: cleaned to %q", name, clean)
		}
	}
	if r.Holds("nothing short here") || New().Holds(secret) || (&Redactor{}).Holds(secret) {
		t.Error("held what it does not hold")
	}
	r.Hold("", "another-value")
	if r.Holds(secret) || !r.Holds("another-value") {
		t.Error("Hold must replace the set of its source")
	}
	r.Hold("elsewhere", secret)
	if !r.Holds(secret) || !r.Holds("another-value") {
		t.Error("the secrets of one source put away those of another")
	}
	r.Hold("elsewhere")
	if r.Holds(secret) || !r.Holds("another-value") {
		t.Error("a source that has none any more")
	}
}

func TestJSON(t *testing.T) {
	r := New("known-value")
	token := "ghp_" + body(36)
	for _, tc := range []struct{ name, in, want string }{
		{"clean", `{"a" : [1, "x", null]}`, `{"a" : [1, "x", null]}`},
		{"leaf", `{"a": "` + token + `", "n": 1.0}`, `{"a": "[hidden: github-token]", "n": 1.0}`},
		{"telling key", `{"db": {"password" : "hunter22"}, "b": "hunter22"}`, `{"db": {"password" : "[hidden: password]"}, "b": "hunter22"}`},
		{"key is kept", `{"known-value": "known-value"}`, `{"known-value": "[hidden: held]"}`},
		{"escapes", `["\u0067hp_` + body(36) + `<\n"]`, `["[hidden: github-token]<\n"]`},
		{"list under a telling key is not its value", `{"password": ["hunter22"]}`, `{"password": ["hunter22"]}`},
		{"scalar", `"known-value"`, `"[hidden: held]"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, found, err := r.JSON([]byte(tc.in))
			if err != nil || string(got) != tc.want || found != (tc.in != tc.want) {
				t.Errorf("got  %s (%v, %v)\nwant %s", got, found, err, tc.want)
			}
		})
	}
	if got, _, err := r.JSON([]byte(`{"a": "known-value"`)); err == nil || got != nil {
		t.Errorf("broken document: %s, %v", got, err)
	}
}

func TestLaws(t *testing.T) {
	token := "ghp_" + body(36)
	r := New("held-secret-1")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z"=: \n]{0,20}`).Draw(t, "before") + " " + token + " " + rapid.String().Draw(t, "middle") +
			"held-secret-1" + rapid.String().Draw(t, "after")
		clean := r.String(text)
		if strings.Contains(clean, token) || strings.Contains(clean, "held-secret-1") {
			t.Fatalf("%q was cleaned to %q", text, clean)
		}
		document, err := json.Marshal(map[string]any{"k": text, "n": []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		cleaned, found, err := r.JSON(document)
		var back map[string]any
		if err != nil || !found || json.Unmarshal(cleaned, &back) != nil || len(back) != 2 {
			t.Fatalf("%s → %s, %v", document, cleaned, err)
		}
	})
}

// No text may take more than linear time: ten times the text, about ten times the time.
func TestLinear(t *testing.T) {
	for _, unit := range []string{
		"eyJ", "eyJ.", "sk-", "sk-.", "xoxb-.", "ATATT3=", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "password=", "token=a.", "://", "://a:", ":AA",
		"bearer ", "key", "api_key='", `"password": "`, "\\n", "AccountKey=", "secret secret_key: ", "glpat-", "SG.a", "--token ",
	} {
		text := strings.Repeat(unit, (256<<10)/len(unit))
		start := time.Now()
		New("held-secret-value").String(text)
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("256 KiB of %q took %v", unit, took)
		}
	}
}

func clean() string {
	return strings.Repeat("func (c *Classifier) Resolve(workDir, asked string) (Resolved, error) {\n\treturn c.resolve(workDir, asked, true)\n}\n// The quick brown fox jumps over the lazy dog, 1234.\n", 100)
}

func BenchmarkClean(b *testing.B) {
	text := clean()
	for name, r := range map[string]*Redactor{"shapes": New(), "held": New("abcdef0123456789", "another secret value", "tok_12345678901234")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, found := r.Clean(text); found {
					b.Fatal("found")
				}
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{pem, jwtOf(), "password: x", "a://b:c@d", `{"token": "abc123def456"}`} {
		f.Add(s)
	}
	r := New("held-secret-1")
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		for _, m := range r.Find(s) {
			if m.Start < last || m.End <= m.Start || m.End > len(s) {
				t.Fatalf("%q: %+v", s, m)
			}
			last = m.End
		}
		if r.Holds(r.String(s)) && !strings.Contains(s, "[hidden") {
			t.Fatalf("%q", s)
		}
	})
}
