package profiles

import (
	"testing"

	"github.com/toolward/toolward/shell"
)

func TestDatabases(t *testing.T) {
	for _, c := range []struct {
		program, option, text string
		want                  shell.Kind // Evaluates, or "" for harmless
	}{
		{"psql", "-c", "select * from users where id = 5", ""},
		{"psql", "-c", "SELECT count(*), max(age) FROM t GROUP BY x;", ""},
		{"psql", "-c", "select a from t; select b from u;", ""},
		{"psql", "--command", "explain select 1", ""},
		{"psql", "-c", `\dt`, ""},
		{"psql", "-c", `\d+ users`, ""},
		{"psql", "-c", `\l`, ""},
		{"psql", "-c", "select 'it''s; drop table x'", ""},
		{"psql", "-c", "show server_version", ""},
		{"psql", "-c", `\! id`, shell.Evaluates},
		{"psql", "-c", `\copy t to program 'id'`, shell.Evaluates},
		{"psql", "-c", `\d|id`, shell.Evaluates},
		{"psql", "-c", `\i x`, shell.Evaluates},
		{"psql", "-c", "copy t to program 'id'", shell.Evaluates},
		{"psql", "-c", "select pg_read_file('/etc/passwd')", shell.Evaluates},
		{"psql", "-c", "select lo_export(1, '/x')", shell.Evaluates},
		{"psql", "-c", `select "pg_read_file"('/etc/passwd')`, shell.Evaluates},
		{"psql", "-c", "select pg_catalog.pg_read_file('/x')", shell.Evaluates},
		{"psql", "-c", "select pg_read_file /**/ ('/x')", shell.Evaluates},
		{"psql", "-c", "select 1 into t", shell.Evaluates},
		{"psql", "-c", "select 1; drop table t", shell.Evaluates},
		{"psql", "-c", "explain analyze delete from t", shell.Evaluates},
		{"psql", "-c", "explain (analyze) delete from t", shell.Evaluates},
		{"psql", "-c", "with x as (delete from t returning *) select * from x", shell.Evaluates},
		{"psql", "-c", "select $$x$$", shell.Evaluates},
		{"psql", "-c", "delete from t", shell.Evaluates},
		{"psql", "-c", `select 1 \g |id`, shell.Evaluates},
		{"psql", "-c", "", shell.Evaluates},
		{"mysql", "-e", "show tables", ""},
		{"mysql", "-e", "select * from t limit 5", ""},
		{"mysql", "-e", "system id", shell.Evaluates},
		{"mysql", "-e", `\! id`, shell.Evaluates},
		{"mysql", "-e", "source x", shell.Evaluates},
		{"mysql", "-e", "select 1 into outfile '/x'", shell.Evaluates},
		{"mysql", "-e", "select load_file('/etc/passwd')", shell.Evaluates},
		{"mysql", "-e", "select 1; system id", shell.Evaluates},
		{"mysql", "--execute", "select 'a' # b", shell.Evaluates},
		{"mysql", "-e", "select 1\nsystem id", shell.Evaluates},
	} {
		effects, _ := Effects(c.program, []string{c.option, c.text})
		got := shell.Kind("")
		for _, e := range effects {
			if e.Kind != shell.Network {
				got = e.Kind
			}
		}
		if got != c.want {
			t.Errorf("%s %s %q: %q, want %q", c.program, c.option, c.text, got, c.want)
		}
	}
	testPlaces(t, [][2]string{
		{"psql -l", "network localhost"},
		{"psql -h db.example -U me -d shop -l", "network db.example"},
		{"psql postgres://u:p@h.example:5432/x -l", "network h.example:5432 (postgres://u:p@h.example:5432/x)"},
		{"psql -f x.sql", "evaluates x.sql (-f); network localhost; evaluates (input)"},
		{"psql -l -o out -L log", "writes log (-L); network localhost; writes out (-o)"},
		{"psql -l -o |id", "network localhost; evaluates |id (-o)"},
		{"psql", "network localhost; evaluates (input)"},
		{"psql service=x -l", "unknown (service=x)"},
		{"mysql -h h.example -usam -psecret shop", "network h.example; evaluates (input)"},
		{"mysql --version", ""},
		{"sqlite3 --version", ""},
	})
	testAsks(t, shell.Unknown, "psql -v x=y -l", "mysql --pager=id", "mysql --init-command=x", "mysql --plugin-dir=x", "mysql --defaults-file=x", "redis-cli get x", "mongosh", "pg_dump x", "psql --frob", "sqlite3 -A x")
	testAsks(t, shell.Evaluates, "sqlite3 x.db", "sqlite3 -init f x.db .tables", "sqlite3", "mysql")
}

func TestSQLite(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"select * from t", "reads x.db"},
		{"SELECT name, count(*) FROM t GROUP BY 1;", "reads x.db"},
		{".tables", "reads x.db"},
		{".schema users", "reads x.db"},
		{"insert into t values (1, 'a')", "writes x.db"},
		{"insert into t (a, b) values (1, upper('a'))", "writes x.db"},
		{"create table t (a, b)", "writes x.db"},
		{"update t set a = 5", "writes x.db"},
		{".shell id", "evaluates .shell id; reads x.db"},
		{".system id", "evaluates .system id; reads x.db"},
		{".import /etc/passwd t", "evaluates .import /etc/passwd t; reads x.db"},
		{".output /x", "evaluates .output /x; reads x.db"},
		{".once |id", "evaluates .once |id; reads x.db"},
		{".tables\n.shell id", "evaluates .tables\n.shell id; reads x.db"},
		{".read x", "evaluates .read x; reads x.db"},
		{".load x", "evaluates .load x; reads x.db"},
		{".open /x", "evaluates .open /x; reads x.db"},
		{".sh id", "evaluates .sh id; reads x.db"},
		{"attach '/x' as y", "evaluates attach '/x' as y; reads x.db"},
		{"vacuum into '/x'", "evaluates vacuum into '/x'; reads x.db"},
		{"select writefile('/x', 'y')", "evaluates select writefile('/x', 'y'); reads x.db"},
		{"select load_extension('x')", "evaluates select load_extension('x'); reads x.db"},
		{"select [writefile]('/x', 'y')", "evaluates select [writefile]('/x', 'y'); reads x.db"},
		{"insert into t values (readfile('/etc/passwd'))", "evaluates insert into t values (readfile('/etc/passwd')); reads x.db"},
		{"insert into t values (1); select writefile('a','b')", "evaluates insert into t values (1); select writefile('a','b'); reads x.db"},
		{"update t set a = edit('x')", "evaluates update t set a = edit('x'); reads x.db"},
		{"delete from t", "evaluates delete from t; reads x.db"},
	} {
		if got := effectsOf(t, "sqlite3", "x.db", c.text); !sameEffects(joined(got), c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	testPlaces(t, [][2]string{
		{"sqlite3 -json -header /x.db .tables", "reads /x.db"},
		{"sqlite3 --readonly x.db -cmd .system .tables", "evaluates .system; reads x.db"},
		{"sqlite3 file:x.db?vfs=y .tables", "unknown (file:x.db?vfs=y); reads file:x.db?vfs=y"},
	})
}
