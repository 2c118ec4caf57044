package display

import (
	"strconv"
	"time"
)

// Duration shows a length of time as a person says it: "250 ms", "9 s", "2 min 5 s", "3 h 10 min", "2 days 3 h". It
// rounds down, so that a time that is left is never promised longer than it is; below nothing it is "0 s".
func Duration(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	if d < time.Second && d >= time.Millisecond {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	const day = 24 * time.Hour
	units := []struct {
		size time.Duration
		name string
	}{{day, " days"}, {time.Hour, " h"}, {time.Minute, " min"}, {time.Second, " s"}}
	for i, u := range units {
		if d < u.size && u.size > time.Second {
			continue
		}
		n := int64(d / u.size)
		text := strconv.FormatInt(n, 10) + u.name
		if u.size == day && n == 1 {
			text = "1 day"
		}
		if i+1 < len(units) {
			next := units[i+1]
			if rest := int64(d % u.size / next.size); rest > 0 {
				text += " " + strconv.FormatInt(rest, 10) + next.name
			}
		}
		return text
	}
	return "0 s"
}
