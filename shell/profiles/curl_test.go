package profiles

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var (
	curlOption = regexp.MustCompile(`(?m)^ (?:-(.),|   ) --([a-z0-9.-]+)( [<\[])?`)
	wgetOption = regexp.MustCompile(`(?m)^  (?:-([A-Za-z0-9]),|   )  --([a-z0-9.-]+)(=)?`)
)

// TestOptionsTakeValuesAsTheProgramsReadThem compares options with what the programs of this machine print about
// themselves. An option that the profile and the program read differently would hide the word that follows it.
func TestOptionsTakeValuesAsTheProgramsReadThem(t *testing.T) {
	for _, c := range []struct {
		argv   []string
		option *regexp.Regexp
		except string // options about which the help is silent or wrong
	}{
		{[]string{"curl", "--help", "all"}, curlOption, "help"},
		{[]string{"wget", "--help"}, wgetOption, "max-redirect hsts-file"},
	} {
		out, err := exec.Command(c.argv[0], c.argv[1:]...).Output()
		if err != nil {
			continue // it is not here, or too old to tell
		}
		options := Of(c.argv[0]).Sections[""].Options
		found := c.option.FindAllStringSubmatch(string(out), -1)
		if len(found) < 50 {
			t.Errorf("%q: only %d options are found in what it prints", c.argv, len(found))
		}
		for _, m := range found {
			spellings := []string{"--" + m[2]}
			if m[1] != "" {
				spellings = append(spellings, "-"+m[1])
			}
			for _, spelling := range spellings {
				option := options[spelling]
				switch {
				case strings.Contains(" "+c.except+" ", " "+m[2]+" "):
				case option == nil:
					t.Logf("%s %s is not known", c.argv[0], spelling)
				case (m[3] != "") != (option.Value == Required):
					t.Errorf("%s %s: the profile says otherwise", c.argv[0], spelling)
				}
			}
		}
	}
}
