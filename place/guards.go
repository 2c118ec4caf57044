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
