package place

// Layout names the directories that give paths their meaning. All are absolute, clean, real paths (no
// symbolic links): see [Layout.Canonical].
type Layout struct {
	Workspace  string   // the agent's workspace; empty when the caller has none
	Home       string   // the person's home directory
	StateDir   string   // Toolward's home, ~/.toolward
	ConfigFile string   // Toolward's configuration file
	Own        []string // Toolward's programs and anything else of its own: files, or directories with all below
	ReadRoots  []string // directories outside the workspace that a confined agent may read
	WriteRoots []string // directories outside the workspace that a confined agent may also write
	FoldCase   bool     // names differing only in case are the same file here: see [FoldsCase]
}

// Classifier gives paths their place. It is immutable and safe for concurrent use.
type Classifier struct {
	layout     Layout
	workspace  string // folded like the paths it is compared with; "" when there is none
	stateDir   string
	configFile string
	inbound    string
	own        []string
	ownSpace   bool // the workspace lies strictly inside the state directory
	rules      rules
	view       View // nil: this machine
}

// rules is the table, indexed.
type rules struct {
	trees      map[string]Zone // absolute path → place of it and all below
	homes      map[string]Zone // path in an account's home → place of it and all below
	deepest    int             // longest key of trees, in bytes
	anywhere   map[string]Zone // one element
	pairs      map[string]Zone // two elements "first/second"
	heads      map[string]bool // first elements of pairs
	bases      map[string]Zone
	extensions map[string]Zone
	workspace  map[string]Zone
	beginnings map[string]Zone
	guarded    map[string]bool   // every element that another spelling could imitate
	short      map[string]string // "git" → ".git": what 8.3 short names begin with
}

// Layout returns what the classifier was made from.
func (c *Classifier) Layout() Layout { return c.layout }

// View is a file system as a sandbox sees it: parts of this machine's at other paths.
type View interface {
	// Find says where on this machine a path inside is. above is true for a directory that only leads to such parts.
	Find(inside string) (host string, above, ok bool)
}
