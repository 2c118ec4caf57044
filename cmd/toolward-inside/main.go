// Command toolward-inside is the program in a sandbox: it runs commands and does file operations for the gateway, which
// talks to it over standard input and output. Engines start it; people never need to. "toolward inside" is the same in
// the big binary.
//
// The native engine starts it as the helper that makes the sandbox, which then executes it again inside.
package main

import (
	"os"

	"github.com/toolward/toolward/sandbox/inside/serve"
	"github.com/toolward/toolward/sandbox/native/setup"
)

func main() {
	args := os.Args[1:]
	if len(args) == 2 && args[0] == setup.ForwardArgument {
		if err := setup.Forward(); err != nil {
			os.Exit(1)
		}
		args = args[1:]
	}
	if len(args) == 1 {
		switch args[0] {
		case setup.Argument:
			os.Exit(setup.Main([]string{"serve"}))
		case "serve":
			os.Exit(serve.Main())
		}
	}
	os.Stderr.WriteString("toolward-inside: engines of Toolward start this program in a sandbox\n") //nolint:errcheck // nobody else to tell
	os.Exit(64)
}
