package envname

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostPaths = 1024     // that one value may name
	mostValue = 16 << 10 // bytes of a value that is looked at
	mostWork  = 4 << 20  // bytes of all that is looked at of it
	mostPath  = 4095     // bytes that the kernel takes for a path
)

// separators are the signs by which programs part lists, settings, options and addresses. White space parts, too.
const separators = ":;,=|\"'`@&!<>()[]{}"

// Paths lists what a value could name as files, and reports whether that is all of it: the whole value, and what stands behind any
// separator, up to the first or the last of each kind of separator behind it, or up to the end. So a list at colons is seen part by
// part, and a path with blanks in a list at colons as a whole: which signs part a value only its program knows.
//
// A value that is cut at a bound, or hidden behind an address, would carry a secret's path unseen.
func Paths(value string) (paths []string, whole bool) {
	if len(value) > mostValue {
		return nil, false
	}
	l := lister{seen: map[string]bool{}}
	value = homes.Replace(value)
	l.list(value)
	if plain := unescaped(value); plain != value {
		l.list(plain) // what is written with escapes parts, too, for who undoes them first
	}
	return l.paths, l.whole()
}

// homes are the words for directories that a program may expand in its settings.
var homes = strings.NewReplacer("${HOME}", "~", "$HOME", "~", "${PWD}", ".", "$PWD", ".")

// address is the beginning of what is looked for on the network. What a scheme that is not listed names may be a file
// ("sqlite:////home/u/x"). What stands behind a separator in an address is looked at as anywhere: "https://a,/home/u/.ssh/id_rsa".
var address = regexp.MustCompile(`^(?i)(https?|wss?|ftps?|sftp|ssh|git|svn|postgres(ql)?|mysql|mariadb|mssql|sqlserver|oracle|clickhouse|cassandra|couchbase|` +
	`mongodb|rediss?|valkey|memcached|amqps?|mqtts?|nats|kafka|pulsar|tcp|udp|tls|quic|grpcs?|ldaps?|smtps?|imaps?|pop3s?|stuns?|turns?|socks[45]?[ah]?|` +
	`s3a?|gs|gcs|bolt|neo4j|consul|etcd|vault|docker|oci)` +
	`(\+(ssh|https?|srv|tls|ssl|s|psycopg2?|asyncpg|pg8000|pymysql|aiomysql|mysqldb|mysqlconnector|pymssql))?://(\[[0-9a-fA-F:.]*\]/?)?`)

type lister struct {
	value  string
	starts []int          // where something can begin
	signs  map[rune][]int // where each separator stands
	paths  []string
	seen   map[string]bool
	work   int
}

// whole reports whether nothing was left out.
func (l *lister) whole() bool { return len(l.paths) <= mostPaths && l.work <= mostWork }

func (l *lister) list(value string) {
	l.value = value
	l.part()
	hidden := 0 // up to here an address says how it is reached: its "//" begins no path
	for _, start := range l.starts {
		if start < hidden || start == len(value) {
			continue
		}
		if hidden = start + len(address.FindString(value[start:])); hidden == start {
			l.from(start)
		}
	}
}

// part finds the separators.
func (l *lister) part() {
	l.starts, l.signs = []int{0}, map[rune][]int{}
	for i, r := range l.value {
		if unicode.IsSpace(r) {
			l.starts, r = append(l.starts, i+utf8.RuneLen(r)), ' '
		} else if strings.ContainsRune(separators, r) {
			l.starts = append(l.starts, i+1)
		} else {
			continue
		}
		l.signs[r] = append(l.signs[r], i)
	}
}

// from adds what could be a path that begins here.
func (l *lister) from(start int) {
	l.add(l.value[start:])
	nearest := len(l.value)
	for _, r := range slices.Sorted(maps.Keys(l.signs)) { // in order: the same value names the same file each time
		at := l.signs[r]
		if i, _ := slices.BinarySearch(at, start); i < len(at) {
			l.upTo(start, at[i])
			l.upTo(start, at[len(at)-1])
			if r != ' ' {
				nearest = min(nearest, at[i])
			}
		}
	}
	l.add(l.value[start:nearest]) // a name with blanks
	l.add(strings.TrimSpace(l.value[start:nearest]))
}

// upTo adds a part with other separators in it only if it has a directory: a bare name is looked at by its own parts.
func (l *lister) upTo(start, end int) {
	if span := l.value[start:end]; strings.ContainsRune(span, '/') || !strings.ContainsFunc(span, separates) {
		l.add(span)
	}
}

func separates(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(separators, r) }

// add adds a path, and what programs make of an option or an address that holds it.
func (l *lister) add(p string) {
	if l.work += len(p); p == "" || !l.whole() || l.seen[p] || strings.ContainsRune(p, 0) {
		return
	}
	l.seen[p] = true
	kernel := p
	if len(p) > mostPath {
		kernel = path.Clean(p)
	}
	if len(kernel) <= mostPath { // the kernel knows no longer one
		l.paths = append(l.paths, kernel)
	}
	if short, ok := strings.CutPrefix(p, "//"); ok {
		l.add(strings.TrimLeft(short, "/")) // file://./x: to some what stands behind the scheme, to others what stands behind the host
		if _, below, ok := strings.Cut(short, "/"); ok {
			l.add("/" + strings.TrimLeft(below, "/"))
		}
	}
	if p[0] == '-' && len(p) > 2 {
		l.add(strings.TrimLeft(p[2:], "-")) // -Idir
		if at := strings.IndexAny(p, "/~"); at > 0 {
			l.add(p[at:]) // -isystem/dir
		}
	}
}

// unescaped is a value without the signs that addresses and shells write for a character.
func unescaped(p string) string {
	plain := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '%' && i+2 < len(p) && isHex(p[i+1]) && isHex(p[i+2]):
			plain = append(plain, hex(p[i+1])<<4|hex(p[i+2]))
			i += 2
		case p[i] != '\\':
			plain = append(plain, p[i])
		}
	}
	return string(plain)
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

func hex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
