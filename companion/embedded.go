//go:build !embed_programs

package companion

import "embed"

// embedded is empty but in release builds.
var embedded embed.FS
