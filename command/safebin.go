package command

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// SafeBin is what a stream filter may be given so that it reads its standard input and nothing else.
type SafeBin struct {
	MinPositional     int      `json:"minPositional,omitempty" jsonschema:"least operands; default 0"`
	MaxPositional     int      `json:"maxPositional,omitempty" jsonschema:"most operands; default 0. None may look like a path"`
	AllowedFlags      []string `json:"allowedFlags,omitempty" jsonschema:"options without a value, as -x or --name"`
	AllowedValueFlags []string `json:"allowedValueFlags,omitempty" jsonschema:"options with a value"`
	DeniedFlags       []string `json:"deniedFlags,omitempty" jsonschema:"options that are refused, long ones also abbreviated; so is every option that is in no list"`

	pairs  []string          // flags with two values
	number bool              // "-20" is a flag
	text   bool              // operands are text: the program opens none of them
	refuse func(string) bool // looks into operands
}

// safeBinArgument is an argument of a safe bin.
type safeBinArgument struct {
	text     string
	glob     bool // an unquoted glob or brace: it stands for files
	expanded bool // it came from a parameter or "~"
}

// allows reports whether the filter may run with these arguments. No file is looked for: the answer must not tell
// which files exist.
func (b *SafeBin) allows(args []safeBinArgument) bool {
	positional, options := 0, true
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg.glob:
			return false
		case arg.text == "" || arg.text == "-":
		case options && arg.text == "--":
			options = false
		case options && strings.HasPrefix(arg.text, "--"):
			n, ok := b.long(arg, args)
			if !ok {
				return false
			}
			args = args[n:]
		case options && arg.text[0] == '-' && !(b.number && digits(arg.text[1:])):
			n, ok := b.cluster(arg, args)
			if !ok {
				return false
			}
			args = args[n:]
		case options && arg.text[0] == '-':
		default:
			if positional++; positional > b.MaxPositional || !b.plain(arg) || b.refuse != nil && b.refuse(arg.text) {
				return false
			}
		}
	}
	return positional >= b.MinPositional
}

// long takes a long option and says how many of the following words are its values.
func (b *SafeBin) long(arg safeBinArgument, rest []safeBinArgument) (n int, ok bool) {
	name, value, attached := strings.Cut(arg.text, "=")
	name, ok = b.complete(name)
	switch {
	case !ok || slices.Contains(b.DeniedFlags, name):
		return 0, false
	case slices.Contains(b.AllowedValueFlags, name):
		if attached {
			return 0, b.plain(safeBinArgument{text: value, expanded: arg.expanded})
		}
		return b.values(1, rest)
	case slices.Contains(b.pairs, name):
		n, ok := b.values(2, rest)
		return n, ok && !attached
	}
	return 0, !attached
}

// complete finds the long option that a spelling stands for: itself, or the only one that begins so.
func (b *SafeBin) complete(name string) (string, bool) {
	known := slices.Concat(b.AllowedFlags, b.AllowedValueFlags, b.DeniedFlags, b.pairs)
	if slices.Contains(known, name) {
		return name, true
	}
	var found string
	for _, flag := range known {
		switch {
		case !strings.HasPrefix(flag, name) || name == "--":
		case found != "" && found != flag:
			return "", false
		default:
			found = flag
		}
	}
	return found, found != ""
}

// cluster takes short options in one word, from left to right.
func (b *SafeBin) cluster(arg safeBinArgument, rest []safeBinArgument) (n int, ok bool) {
	for i := 1; i < len(arg.text); i++ {
		flag := "-" + arg.text[i:i+1]
		switch {
		case slices.Contains(b.DeniedFlags, flag):
			return 0, false
		case slices.Contains(b.AllowedValueFlags, flag):
			if i+1 < len(arg.text) {
				return 0, b.plain(safeBinArgument{text: arg.text[i+1:], expanded: arg.expanded})
			}
			return b.values(1, rest)
		case !slices.Contains(b.AllowedFlags, flag):
			return 0, false
		}
	}
	return 0, true
}

// values takes words that are values; they must be there.
func (b *SafeBin) values(n int, rest []safeBinArgument) (int, bool) {
	if len(rest) < n {
		return 0, false
	}
	for _, v := range rest[:n] {
		if v.glob || !b.plain(v) {
			return 0, false
		}
	}
	return n, true
}

// plain reports whether a word cannot name a file. Where the operands are text anyway, what a parameter stands for may
// look like a path.
func (b *SafeBin) plain(arg safeBinArgument) bool {
	return b.text && arg.expanded || !pathLike.MatchString(arg.text)
}

var pathLike = regexp.MustCompile(`^(?:\./|\.\./|\.\.$|~|/|[A-Za-z]:\\)`)

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// DefaultSafeBins are those that run if nothing is configured.
var DefaultSafeBins = []string{"cut", "uniq", "head", "tail", "tr", "wc"}

// safeBins are the built-in rows. An option that is in no list is refused.
var safeBins = map[string]*SafeBin{
	"jq": {
		MaxPositional:     1,
		AllowedValueFlags: strings.Fields("--indent"),
		AllowedFlags: strings.Fields(`-r -c -n -e -s -S -a -j -M -C -R --tab --raw-output --compact-output --null-input
			--exit-status --slurp --sort-keys --ascii-output --join-output --monochrome-output --color-output --raw-input`),
		DeniedFlags: strings.Fields(`--argfile --rawfile --slurpfile --from-file --library-path -L -f --args --jsonargs
			--seq --stream`),
		pairs: strings.Fields("--arg --argjson"), text: true, refuse: jqReaches,
	},
	"grep": {
		AllowedValueFlags: strings.Fields(`-e -m -A -B -C -D --regexp --max-count --after-context --before-context --context
			--devices --binary-files --exclude --include --label`),
		AllowedFlags: strings.Fields(`-i -v -n -c -o -w -x -E -F -P -G -q -s -h -H -a -z --ignore-case --no-ignore-case
			--invert-match --line-number --count --only-matching --word-regexp --line-regexp --extended-regexp --fixed-strings
			--perl-regexp --basic-regexp --quiet --silent --no-messages --no-filename --with-filename --text --null-data
			--line-buffered --color --colour`),
		DeniedFlags: strings.Fields(`-f -d -r -R --file --exclude-from --dereference-recursive --directories --recursive`),
	},
	"cut": {
		AllowedValueFlags: strings.Fields("-b -c -f -d --bytes --characters --fields --delimiter --output-delimiter"),
		AllowedFlags:      strings.Fields("-s -z -n --only-delimited --complement --zero-terminated"),
	},
	"sort": {
		AllowedValueFlags: strings.Fields("-k -t -S --key --field-separator --buffer-size --parallel --batch-size"),
		AllowedFlags: strings.Fields(`-n -r -u -b -f -g -h -i -M -V -s -z -c -C -d --numeric-sort --reverse --unique
			--ignore-leading-blanks --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort
			--version-sort --stable --zero-terminated --check --dictionary-order`),
		DeniedFlags: strings.Fields("-o -T --output --compress-program --files0-from --random-source --temporary-directory"),
	},
	"uniq": {
		AllowedValueFlags: strings.Fields("-f -s -w --skip-fields --skip-chars --check-chars --group"),
		AllowedFlags: strings.Fields(`-c -d -D -i -u -z --count --repeated --all-repeated --ignore-case --unique
			--zero-terminated`),
	},
	"head": {
		number:            true,
		AllowedValueFlags: strings.Fields("-n -c --lines --bytes"),
		AllowedFlags:      strings.Fields("-q -v -z --quiet --silent --verbose --zero-terminated"),
	},
	"tail": { // to follow a file never ends
		number:            true,
		AllowedValueFlags: strings.Fields("-n -c --lines --bytes"),
		AllowedFlags:      strings.Fields("-q -v -z --quiet --silent --verbose --zero-terminated"),
		DeniedFlags:       strings.Fields("-f -F --follow --retry --pid --sleep-interval --max-unchanged-stats"),
	},
	"tr": {
		MinPositional: 1, MaxPositional: 2, text: true,
		AllowedFlags: strings.Fields("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1"),
	},
	"wc": {
		AllowedFlags: strings.Fields("-c -l -m -w -L --bytes --chars --lines --words --max-line-length"),
		DeniedFlags:  strings.Fields("--files0-from"),
	},
}

// jqWord finds a name of jq that reaches beyond its input: the environment, modules, names of files. A field such as
// ".env" is none, but "..env" could be one.
var jqWord = regexp.MustCompile(`(?:^|[^A-Za-z0-9_$.]|\.\.)(?:env|import|include|input_filename|modulemeta|get_search_list)(?:[^A-Za-z0-9_]|$)`)

func jqReaches(program string) bool {
	return strings.Contains(program, "$ENV") || strings.Contains(program, "$__prog_args") || jqWord.MatchString(program)
}

// safeBinSet is the compiled set of an agent.
type safeBinSet map[string]*SafeBin

// compileSafeBins takes names and rows of the configuration, and says what is ignored.
func compileSafeBins(names []string, custom map[string]SafeBin) (set safeBinSet, ignored settingErrors) {
	if names == nil {
		names = DefaultSafeBins
	}
	set = safeBinSet{}
	for _, name := range names {
		row, own := custom[name]
		switch {
		case own:
			set[name] = &row
		case safeBins[name] != nil:
			set[name] = safeBins[name]
		case carriesCode(name):
			ignored.add("exec.safeBins", "%s runs code that it is given: ignored without a profile in safeBinProfiles", name)
		default:
			ignored.add("exec.safeBins", "there is no profile for %s: ignored; write one in safeBinProfiles", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		if set[name] == nil {
			ignored.add("exec.safeBinProfiles"+memberKey(name), "safeBins does not name it: the profile has no effect")
		}
	}
	return set, ignored
}
