package toolward

import "fmt"

// Verdict is the answer to "may this call run?". Verdicts are ordered from strict to permissive, so that the zero
// value refuses and [Stricter] is the minimum.
type Verdict uint8

// The three verdicts.
const (
	Deny  Verdict = iota // refuse; the zero value, so a forgotten decision refuses
	Ask                  // a person decides, or a grant that a person gave earlier
	Allow                // run
)

var verdictNames = [...]string{"deny", "ask", "allow"}

// Stricter returns the stricter of two verdicts: deny beats ask beats allow.
func Stricter(a, b Verdict) Verdict { return min(a, b) }

func (v Verdict) String() string { return nameOf(verdictNames[:], int(v)) }

// MarshalText writes "deny", "ask" or "allow".
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (v *Verdict) UnmarshalText(text []byte) error {
	i, err := parseName("verdict", verdictNames[:], string(text))
	*v = Verdict(i)
	return err
}

// Level says how tense a session is. The zero value is the tensest: a session that nobody has looked at is in
// lockdown.
type Level uint8

// The three levels.
const (
	Lockdown Level = iota // every call asks; no grant counts
	Elevated              // more calls ask; grants count only if made for it
	Normal
)

var levelNames = [...]string{"lockdown", "elevated", "normal"}

// Tenser returns the tenser of two levels: lockdown beats elevated beats normal.
func Tenser(a, b Level) Level { return min(a, b) }

func (l Level) String() string { return nameOf(levelNames[:], int(l)) }

// MarshalText writes "lockdown", "elevated" or "normal".
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (l *Level) UnmarshalText(text []byte) error {
	i, err := parseName("level", levelNames[:], string(text))
	*l = Level(i)
	return err
}

// Class says what a tool may do before anybody is asked. The zero value is blocked.
type Class uint8

// The three classes.
const (
	Blocked       Class = iota // refused until the operator enables it by name
	NeedsApproval              // a person or a grant decides
	Safe                       // runs, until the session's level reaches the row's threshold
)

var classNames = [...]string{"blocked", "needs_approval", "safe"}

func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// MarshalText writes "blocked", "needs_approval" or "safe".
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (c *Class) UnmarshalText(text []byte) error {
	i, err := parseName("class", classNames[:], string(text))
	*c = Class(i)
	return err
}

// Severity colors a prompt. Critical, the zero value, also means: once only, no grant.
type Severity uint8

// The three severities.
const (
	Critical Severity = iota
	Warning
	Info
)

var severityNames = [...]string{"critical", "warning", "info"}

// Graver returns the graver of two severities.
func Graver(a, b Severity) Severity { return min(a, b) }

func (s Severity) String() string { return nameOf(severityNames[:], int(s)) }

// MarshalText writes "critical", "warning" or "info".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := parseName("severity", severityNames[:], string(text))
	*s = Severity(i)
	return err
}

// Effect is what a finding does to the verdict. A finding only ever raises.
type Effect uint8

// The three effects; the zero value denies.
const (
	EffectDeny Effect = iota
	EffectAsk
	EffectNote // recorded and shown, nothing more
)

var effectNames = [...]string{"deny", "ask", "note"}

func (e Effect) String() string { return nameOf(effectNames[:], int(e)) }

// MarshalText writes "deny", "ask" or "note".
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (e *Effect) UnmarshalText(text []byte) error {
	i, err := parseName("effect", effectNames[:], string(text))
	*e = Effect(i)
	return err
}

// Decision is a person's answer to an approval. The zero value is no decision at all: time-out, disconnect,
// canceled. Only the two allowing decisions allow.
type Decision uint8

// The decisions.
const (
	NoDecision Decision = iota
	DenyCall
	AllowOnce
	AllowAlways
)

var decisionNames = [...]string{"", "deny", "allow-once", "allow-always"}

func (d Decision) String() string { return nameOf(decisionNames[:], int(d)) }

// Allows reports whether the decision lets the call run.
func (d Decision) Allows() bool { return d == AllowOnce || d == AllowAlways }

// ParseDecision reads one of the three exact words "allow-once", "allow-always" and "deny". Near misses such as
// "allow", "yes" or "Allow-Once" are no decision: a confused or hostile surface must not be read as consent.
func ParseDecision(word string) (Decision, error) {
	if word == "" {
		return NoDecision, fmt.Errorf("invalid decision: empty")
	}
	i, err := parseName("decision", decisionNames[:], word)
	return Decision(i), err
}

// MarshalText writes the decision's word; no decision is the empty word.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses every other word.
func (d *Decision) UnmarshalText(text []byte) error {
	i, err := parseName("decision", decisionNames[:], string(text))
	*d = Decision(i)
	return err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

// parseName returns the index of word, or 0 — the strictest value of every enumeration here — and an error.
func parseName(kind string, names []string, word string) (int, error) {
	for i, name := range names {
		if name == word {
			return i, nil
		}
	}
	return 0, fmt.Errorf("invalid %s %q: expected one of %q", kind, word, names)
}
