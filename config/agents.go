package config

import "fmt"

// DefaultAgent is the agent that is meant where nobody names one: the one that says so, else main, else the first.
func (f *File) DefaultAgent() string {
	id := "main"
	for i := range f.Agents.List {
		switch a := &f.Agents.List[i]; {
		case a.Default:
			return a.ID
		case i == 0, a.ID == "main":
			id = a.ID
		}
	}
	return id
}

// checkDefaultAgent refuses two of them: whoever calls without a name would be one of them by chance.
func checkDefaultAgent(f *File, wrong func(key, format string, args ...any)) {
	first := ""
	for i := range f.Agents.List {
		switch a := &f.Agents.List[i]; {
		case !a.Default:
		case first != "":
			wrong(fmt.Sprintf("agents.list[%d].default", i), "%s is the default agent already: set it for one", first)
		default:
			first = a.ID
		}
	}
}
