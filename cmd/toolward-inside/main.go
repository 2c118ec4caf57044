// Command toolward-inside is the program in a sandbox: it runs commands and does file operations for the gateway, which
// talks to it over standard input and output. Engines start it; people never need to. "toolward inside" is the same in
// the big binary.
//
// The native engine starts it as the helper that makes the sandbox, which then executes it again inside.
package main

import (
	"os"

	"github.com/toolward/toolward/cmd/toolward-inside/entry"
)

func main() { os.Exit(entry.Main(nil, os.Args[1:])) }
