package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// sqlFunctions are functions, and other words that stand before "(", that only compute.
var sqlFunctions = strings.Fields(`abs avg ceil ceiling coalesce concat concat_ws count date date_trunc datetime dense_rank
	exists extract first_value floor format greatest group_concat hex ifnull iif in instr json_array_length json_extract
	julianday lag last_value lead least left length lower lpad ltrim max min mod now ntile nullif over position power
	printf quote random rank replace right round row_number rpad rtrim sign sqrt strftime string_agg substr substring sum
	time total trim typeof unicode unixepoch upper year month day values and or not on where as union all when then else
	from select any some between like having by using with case join filter within limit interval cast distinct
	char_length array_agg to_char age pg_size_pretty pg_database_size pg_total_relation_size pg_relation_size version
	current_database current_schema current_user json_build_object jsonb_pretty`)

// sqlNever are words of text that reaches outside the tables, in any of the dialects.
var sqlNever = strings.Fields(`into copy program attach detach load call do execute prepare listen notify outfile dumpfile
	import handler install lock unlock reset kill shutdown grant revoke load_file for set pragma vacuum`)

var sqlToken = regexp.MustCompile(`'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_$.]*|[0-9]+(?:\.[0-9]+)?|\s+|.`)

// sqlReads reports whether every statement of a text only reads tables. Text that cannot be told apart in all dialects
// — backslashes, comments, quoted names before parentheses, dollar quotes — is not.
func sqlReads(text string) bool {
	if strings.ContainsAny(text, "\\$\x60\x00") || strings.Contains(text, "--") || strings.Contains(text, "/*") || strings.Contains(text, "#") {
		return false
	}
	before, first := "", true
	for _, token := range sqlToken.FindAllString(text, -1) {
		word := strings.ToLower(token)
		switch {
		case strings.TrimSpace(token) == "":
			continue
		case first && !slices.Contains([]string{"select", "explain", "show", "describe", "desc", "values", "("}, word):
			return false
		case slices.Contains(sqlNever, word), token == "'":
			return false
		case token == "(" && startsName(before) && !slices.Contains(sqlFunctions, before), token == "(" && (before == `"` || before == "]"):
			return false
		case before == "explain" && slices.Contains([]string{"analyze", "analyse", "("}, word): // runs what it explains
			return false
		case slices.Contains([]string{"insert", "update", "delete", "drop", "create", "alter", "truncate", "merge"}, word):
			return false
		}
		before, first = word, token == ";"
	}
	return !first || before == ";"
}

func startsName(token string) bool {
	return token != "" && (token[0] == '_' || token[0] >= 'a' && token[0] <= 'z')
}

// sqlWrites reports whether a text is one statement that only changes the tables of its database.
var sqlWrites = regexp.MustCompile(`(?i)^\s*(insert\s+into|update|create\s+table(\s+if\s+not\s+exists)?|create\s+(unique\s+)?index(\s+if\s+not\s+exists)?)\s+([a-z_][a-z0-9_]*)((\s+on\s+[a-z_]\w*)?\s*\([a-z0-9_, ]*\))?\s*((values|set)\s*[a-z0-9_ ,=()'@.:+*-]*)?;?\s*$`)

// checkSQLite reads the words behind the database: SQL, and commands that begin with a dot. Without any, they are read
// from the input.
func checkSQLite(a *arguments) {
	if a.has("-version") || a.has("-help") {
		return
	}
	texts := []string{}
	for _, g := range a.given {
		if g.spelling == "-cmd" {
			texts = append(texts, g.value)
		}
	}
	database := ""
	if len(a.operands) > 0 {
		database = a.operands[0]
		texts = append(texts, a.operands[1:]...)
	}
	if len(a.operands) < 2 {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sqlite", Via: "input"})
	}
	if strings.HasPrefix(database, "file:") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: database})
	}
	kind := shell.Reads
	for _, text := range texts {
		switch {
		case strings.HasPrefix(strings.TrimSpace(text), ".") && sqliteDot(text), sqlReads(text):
		case sqlWrites.MatchString(text) && !sqlCalls(text):
			kind = shell.Writes
		default:
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sqlite", Text: text})
		}
	}
	if database != "" && database != ":memory:" {
		a.does(shell.Effect{Kind: kind, Path: database})
	}
}

var sqlCall = regexp.MustCompile(`(?i)([a-z_]\w*)\s*\(`)

// sqlCalls reports whether values of an insert or update call functions that are not known.
func sqlCalls(text string) bool {
	_, values, found := strings.Cut(strings.ToLower(text), "values")
	if !found {
		_, values, _ = strings.Cut(strings.ToLower(text), " set ")
	}
	for _, call := range sqlCall.FindAllStringSubmatch(values, -1) {
		if !slices.Contains(sqlFunctions, call[1]) {
			return true
		}
	}
	return strings.Contains(values, "select")
}

// sqliteDots are commands of sqlite3 that show the database or set how it is shown.
var sqliteDots = strings.Fields(`.tables .schema .headers .header .mode .databases .indexes .indices .stats .timer .width .nullvalue
	.separator .fullschema .dbinfo .show .echo .bail .changes .eqp .explain .lint .version .help .quit .exit .print .dump`)

// sqliteDot reports whether a command only shows. It may not go on in another line.
func sqliteDot(text string) bool {
	words := strings.Fields(text)
	return slices.Contains(sqliteDots, words[0]) && !strings.ContainsAny(text, "\n;|")
}

// psqlMeta are psql's commands that list and show.
var psqlMeta = regexp.MustCompile(`^\\(d[A-Za-z]*[+S]*|l\+?|conninfo|dt|timing|x|z|encoding|q|h|\?)(\s+[A-Za-z0-9_.*"]+)?\s*$`)

func checkPsql(a *arguments) {
	if a.has("-V") || a.has("--version") || a.has("--help") || a.has("-?") {
		return
	}
	database, _ := a.value("-d", "--dbname")
	if len(a.operands) > 0 {
		database = a.operands[0]
	}
	host, _ := a.value("-h", "--host")
	a.database(database, host)
	if output, given := a.value("-o", "--output"); given && strings.HasPrefix(strings.TrimSpace(output), "|") {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: output, Via: "-o"})
	} else if given {
		a.does(shell.Effect{Kind: shell.Writes, Path: output, Via: "-o"})
	}
	if len(a.operands) > 2 {
		a.does(shell.Effect{Kind: shell.Unknown, Via: a.operands[2]})
	}
	a.sqlTexts("psql", a.has("-l") || a.has("--list"), func(text string) bool { return psqlMeta.MatchString(text) }, "-c", "--command")
}

func checkMySQL(a *arguments) {
	if a.has("-V") || a.has("--version") || a.has("--help") || a.has("-?") {
		return
	}
	host, _ := a.value("-h", "--host")
	a.database("", host)
	a.sqlTexts("mysql", false, nil, "-e", "--execute")
}

// sqlTexts looks at the texts that options give. Without any the input is run.
func (a *arguments) sqlTexts(lang string, enough bool, shows func(string) bool, spellings ...string) {
	for _, g := range a.given {
		if !slices.Contains(spellings, g.spelling) {
			continue
		}
		enough = true
		if shows != nil && shows(g.value) {
			continue
		}
		if !sqlReads(g.value) || lang == "mysql" && strings.Contains(g.value, "\n") { // a new line may begin a command of mysql

			a.does(shell.Effect{Kind: shell.Evaluates, Lang: lang, Text: g.value, Via: g.spelling})
		}
	}
	if !enough {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: lang, Via: "input"})
	}
}

// database says which host a database is on: by its address, or by an option. "service=x" and other settings in place
// of a name are not understood.
func (a *arguments) database(name, host string) {
	_, rest, isURL := strings.Cut(name, "://")
	switch {
	case isURL && !strings.Contains(rest, "?"):
		a.address(rest, name)
	case isURL || strings.Contains(name, "="):
		a.does(shell.Effect{Kind: shell.Unknown, Via: name})
	case host != "" && !strings.HasPrefix(host, "/"):
		a.does(shell.Effect{Kind: shell.Network, Host: host})
	default:
		a.does(shell.Effect{Kind: shell.Network, Host: "localhost"})
	}
}
