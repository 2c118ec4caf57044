package toolward_test

import (
	"testing"

	"github.com/toolward/toolward"
)

// A look-alike letter or an invisible character must not turn an unknown action into a known one.
func TestNormalAction(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "list": "list", "send-keys": "sendkeys", "sendKeys": "sendkeys", "SEND_keys ": "sendkeys", "config.get": "configget",
		"lіst": "lіst", "li\u200bst": "li\u200bst", "li\x00st": "li\x00st", "\u212aill": "\u212aill",
	} {
		if got := toolward.NormalAction(in); got != want {
			t.Errorf("NormalAction(%q) = %q, want %q", in, got, want)
		}
	}
}
