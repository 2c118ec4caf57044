package profiles

import (
	"errors"
	"testing"

	"github.com/toolward/toolward/shell"
)

// TestWhatShellsReadDifferentlyIsRefused has what fuzzing against bash found: what the parser and shells, or shells
// among each other, do not read alike.
func TestWhatShellsReadDifferentlyIsRefused(t *testing.T) {
	for text, want := range map[string]shell.Reason{
		`cat \`: shell.LineContinuation, "cat \\ ": shell.LineContinuation, `a # \`: shell.LineContinuation,
		`cat $IFS`: shell.ParameterExpansion, `rm -rf$IFS/`: shell.ParameterExpansion, `a && rm $_`: shell.ParameterExpansion, `a $UID`: shell.ParameterExpansion,
		`a "$SHELL"`: shell.ParameterExpansion, `a $BASH_SUBSHELL`: shell.ParameterExpansion, "cat <<E\n$OLDPWD\nE": shell.HeredocExpansion,
		`p $X{a,b}`: shell.ParameterExpansion, `p {$X,b}c`: shell.ParameterExpansion, `p {a..Z}`: shell.ExtendedGlob, `p {{,}..3}`: shell.ExtendedGlob,
		`p {~,a}`: shell.UserHome, `p a{b,~}`: shell.UserHome, `NO_COLOR=:~ g`: shell.Assignment,
		`p ["x"]`: shell.ExtendedGlob, `p ['a'b].go`: shell.ExtendedGlob, `p [$X].go`: shell.ExtendedGlob, `p [[:alpha:]]`: shell.ExtendedGlob, `p [.]*`: shell.ExtendedGlob, `p [a\]*`: shell.ExtendedGlob,
		`p [[.a.]]*`: shell.ExtendedGlob, `p [z-a]`: shell.ExtendedGlob, `p [ab$].go`: shell.ExtendedGlob, `p [A-z]`: shell.ExtendedGlob, `p []a]`: shell.ExtendedGlob, `p [!]`: shell.ExtendedGlob,
		`%1`: shell.DynamicExecutable, `% x`: shell.DynamicExecutable, `in`: shell.Compound, `TZ= export`: shell.Compound, `'export' X=1`: shell.Compound, "cat <<E\na\nE ": shell.ParseError, `a | in`: shell.Compound, `noglob rm *`: shell.Compound,
		`a > /dev/tcp/h/1`: shell.Redirection, `a < /dev/udp/h/1`: shell.Redirection, `e>2>1`: shell.Redirection,
		"cat <<E <x\nE": shell.Redirection, "cat <x <<E\nE": shell.Redirection, "cat 0>x <<E\nE": shell.Redirection, "cat <<'E'F\n$X\nEF": shell.Redirection,
		"p <<'E'#\nE": shell.Redirection, "p <<é\né\né": shell.Redirection, `p {.},}`: shell.ExtendedGlob,
	} {
		_, err := shell.Analyze(text)
		refused, ok := errors.AsType[*shell.NotAnalysable](err)
		if !ok || refused.Reason != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestWhatLooksLikeItIsUnderstood(t *testing.T) {
	for _, text := range []string{
		"cat <<E\na\nE\n ", `cat a\ b`, `cat 'a\'`, `p "$X"{a,b}`, `p ${X}{a,b}`, `p $X/{a,b}`, `p {a..c} {1..3} {C..A}`, `p ~/{a,b}`, `p '{~,a}'`, `NO_COLOR=1 g ~/x`,
		`p [ab].go v[0-9.]* http://[::1]:80/ "[x]" '[[:alpha:]]' [!a]* [^a]*`, `p %1 in`, `"in" x`, `a > /dev/null`, `a > 2 >1`, `p $HOME $PWD $PATH $USER`,
	} {
		if _, err := shell.Analyze(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPortable(t *testing.T) {
	for text, want := range map[string]bool{
		`ls *.go | wc > x 2>&1`: true, `ls {a,b}`: false, `ls &> x`: false, `ls &>> x`: false, `ls '{a,b}' '&>'`: true, `ls && ls {1..3}`: false, `ls ?.go`: false, `ls [^a]*`: false, `ls '?' "[a]" *.go`: true,
	} {
		command, err := shell.Analyze(text)
		if err != nil || command.Portable() != want {
			t.Errorf("%s: portable %v, %v", text, !want, err)
		}
	}
}
