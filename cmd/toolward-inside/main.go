// Command toolward-inside is the program in a sandbox: it runs commands and does file operations for the gateway, which
// talks to it over standard input and output. Engines start it; people never need to. "toolward inside" is the same in
// the big binary.
package main

import (
	"os"

	"github.com/toolward/toolward/sandbox/inside/serve"
)

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "serve":
			os.Exit(serve.Main())
		}
	}
	os.Stderr.WriteString("toolward-inside: engines of Toolward start this program in a sandbox\n") //nolint:errcheck // nobody else to tell
	os.Exit(64)
}
