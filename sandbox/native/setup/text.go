package setup

// The helper does without strings, strconv and fmt where a few lines do: its size is memory of every sandbox.

func index(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// relative makes an absolute path one below a root.
func relative(path string) string {
	for path != "" && path[0] == '/' {
		path = path[1:]
	}
	for path != "" && path[len(path)-1] == '/' {
		path = path[:len(path)-1]
	}
	if path == "" {
		return "."
	}
	return path
}

func split(path string) (parent, name string) {
	path = relative(path)
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return ".", path
}

func octal(n uint32) string   { return digits(uint64(n), 8) }
func decimal(n uint64) string { return digits(n, 10) }

func digits(n, base uint64) string {
	var buf [24]byte
	i := len(buf)
	for {
		i--
		buf[i] = byte('0' + n%base)
		n /= base
		if n == 0 {
			return string(buf[i:])
		}
	}
}
