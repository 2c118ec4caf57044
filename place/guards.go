package place

import "sync"

// guarded are the rows of the table that are Protected at any depth: one name, or a directory's name and one below it.
var guarded = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, row := range table {
		if row.place == Protected && row.at == anywhere {
			for _, name := range row.names {
				names[name] = true
			}
		}
	}
	return names
})

// Guards reports whether an entry of a directory is Protected wherever the directory lies. parent is the directory's own
// name. It is for those who walk a tree; for one path there is [Classifier.Classify].
func Guards(parent, name string) bool {
	names := guarded()
	return names[name] || names[parent+"/"+name]
}

// obeyed are the rows of names that tools obey in whatever directory they are started, whole names and beginnings.
var obeyed = sync.OnceValues(func() (names, beginnings map[string]bool) {
	names, beginnings = map[string]bool{}, map[string]bool{}
	for _, row := range table {
		for _, name := range row.names {
			switch {
			case row.place != Instructions && row.place != Protected:
			case row.at == inWorkspace:
				names[name] = true
			case row.at == beginsInWorkspace:
				beginnings[name] = true
			}
		}
	}
	return names, beginnings
})

// Obeyed reports whether tools and agents that are started in a directory obey a file of this name in it, without being told:
// Makefile, package.json, Dockerfile.dev. Like [Guards] it is for those who walk a directory.
func Obeyed(name string) bool {
	names, beginnings := obeyed()
	if names[name] || beginnings[name] {
		return true
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '.' && beginnings[name[:i]] {
			return true
		}
	}
	return false
}
