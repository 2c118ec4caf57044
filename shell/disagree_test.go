package shell

import (
	"errors"
	"testing"
)

// TestWhatShellsReadDifferentlyIsRefused has what fuzzing against bash found: what the parser and shells, or shells
// among each other, do not read alike.
func TestWhatShellsReadDifferentlyIsRefused(t *testing.T) {
	for text, want := range map[string]Reason{
		`cat \`: LineContinuation, "cat \\ ": LineContinuation, `a # \`: LineContinuation,
		`cat $IFS`: ParameterExpansion, `rm -rf$IFS/`: ParameterExpansion, `a && rm $_`: ParameterExpansion, `a $UID`: ParameterExpansion,
		`a "$SHELL"`: ParameterExpansion, `a $BASH_SUBSHELL`: ParameterExpansion, "cat <<E\n$OLDPWD\nE": HeredocExpansion,
		`p $X{a,b}`: ParameterExpansion, `p {$X,b}c`: ParameterExpansion, `p {a..Z}`: ExtendedGlob, `p {{,}..3}`: ExtendedGlob,
		`p {~,a}`: UserHome, `p a{b,~}`: UserHome, `NO_COLOR=:~ g`: Assignment,
		`p ["x"]`: ExtendedGlob, `p ['a'b].go`: ExtendedGlob, `p [$X].go`: ExtendedGlob, `p [[:alpha:]]`: ExtendedGlob, `p [.]*`: ExtendedGlob, `p [a\]*`: ExtendedGlob,
		`p [[.a.]]*`: ExtendedGlob, `p [z-a]`: ExtendedGlob, `p [ab$].go`: ExtendedGlob, `p [A-z]`: ExtendedGlob, `p []a]`: ExtendedGlob, `p [!]`: ExtendedGlob,
		`%1`: DynamicExecutable, `% x`: DynamicExecutable, `in`: Compound, `TZ= export`: Compound, `'export' X=1`: Compound, "cat <<E\na\nE ": ParseError, `a | in`: Compound, `noglob rm *`: Compound,
		`a > /dev/tcp/h/1`: Redirection, `a < /dev/udp/h/1`: Redirection, `e>2>1`: Redirection,
		"cat <<E <x\nE": Redirection, "cat <x <<E\nE": Redirection, "cat 0>x <<E\nE": Redirection, "cat <<'E'F\n$X\nEF": Redirection,
		"p <<'E'#\nE": Redirection, "p <<é\né\né": Redirection, `p {.},}`: ExtendedGlob,
	} {
		_, err := Analyze(text)
		refused, ok := errors.AsType[*NotAnalysable](err)
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
		if _, err := Analyze(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPortable(t *testing.T) {
	for text, want := range map[string]bool{
		`ls *.go | wc > x 2>&1`: true, `ls {a,b}`: false, `ls &> x`: false, `ls &>> x`: false, `ls '{a,b}' '&>'`: true, `ls && ls {1..3}`: false, `ls ?.go`: false, `ls [^a]*`: false, `ls '?' "[a]" *.go`: true,
	} {
		command, err := Analyze(text)
		if err != nil || command.Portable() != want {
			t.Errorf("%s: portable %v, %v", text, !want, err)
		}
	}
}
