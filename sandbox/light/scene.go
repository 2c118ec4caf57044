package light

import "github.com/toolward/toolward/place"

// Scene is a job that is confined: where it is, and what its parts are about.
type Scene struct {
	Layout place.Layout // what is whose; real paths
	Dir    string       // where the job starts, a real path
	Calls  [][]Call     // of each part of the plan: the programs that it starts
	Named  []string     // real paths of files that the judged command names, and that would be hidden: it was allowed to use them
}
