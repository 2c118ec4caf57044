package protected

// File is a file with a protected name, as it was when the sandbox was made.
type File struct {
	Path   string `json:"path"` // inside
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Files is everything that is protected, as it is.
func (s *Survey) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []File{}
	for _, t := range s.tops {
		t.node.collect(t.mount.Target, func(p string, g *guarded) {
			all = append(all, File{Path: p, Device: g.state.device, Inode: g.state.inode})
		})
	}
	return all
}

// Since takes what was there when the sandbox was made for what was there at the start. Everything else is found by the next
// look.
func (s *Survey) Since(made []File) {
	known := map[File]bool{}
	for _, f := range made {
		known[f] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tops {
		t.node.collect(t.mount.Target, func(p string, g *guarded) {
			g.first = known[File{Path: p, Device: g.state.device, Inode: g.state.inode}]
		})
	}
}
