package place

// The names of the table for those who put something over whole directories: mounts know no patterns.

// AtHome are the names below a home directory that are of a zone, with everything below them.
func AtHome(z Zone) []string { return anchoredAt(z, atHome) }

// AtRoot are the absolute paths that are of a zone, with everything below them.
func AtRoot(z Zone) []string { return anchoredAt(z, atRoot) }

// Anywhere are the names that are of a zone in every directory: one name, or two with a slash.
func Anywhere(z Zone) []string { return anchoredAt(z, anywhere) }

func anchoredAt(z Zone, at anchor) (names []string) {
	for _, row := range table {
		if row.place == z && row.at == at {
			names = append(names, row.names...)
		}
	}
	return names
}
