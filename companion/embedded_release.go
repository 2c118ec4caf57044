//go:build embed_programs

package companion

import "embed"

// embedded holds the small programs; "make release" puts them there.
//
//go:embed programs
var embedded embed.FS
