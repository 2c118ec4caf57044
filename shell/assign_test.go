package shell

import "testing"

// A variable that only changes how programs speak must not lead them to a file: the C library opens what TZ names.
func TestHarmlessVariablesLeadToNoFile(t *testing.T) {
	for _, text := range []string{"TZ=:/home/u/.ssh/id_rsa date", "TZ=/etc/shadow date", "LANG=../../x ls", "LC_ALL=./x ls", "TERM=a/../../x ls", "NODE_ENV=../x npm test", "LANGUAGE=.. ls"} {
		if _, err := Analyze(text); err == nil {
			t.Errorf("%s is understood", text)
		}
	}
	for _, text := range []string{"TZ=Europe/Berlin date", "LC_ALL=C sort a", "NODE_ENV=production npm test", "CI=1 npm test", "LANG= ls"} {
		if _, err := Analyze(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
