package display

import "strconv"

// Bytes shows a size as a person says it, in units of a thousand: "512 B", "6.1 GB". It rounds down.
func Bytes(n int64) string {
	units := []string{" B", " kB", " MB", " GB", " TB", " PB", " EB"}
	unit, size := 0, int64(1)
	for n/size >= 1000 && unit+1 < len(units) {
		unit, size = unit+1, size*1000
	}
	text := strconv.FormatInt(n/size, 10)
	if tenth := n % size / max(size/10, 1); n/size < 10 && unit > 0 && tenth > 0 {
		text += "." + strconv.FormatInt(tenth, 10)
	}
	return text + units[unit]
}
