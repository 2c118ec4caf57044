// Command toolward-hook is what a guarded agent runs before each of its tool calls. It asks the Toolward daemon and
// refuses when there is none. "toolward hook" is the same in the big binary, slower to start.
package main

import (
	"os"

	"github.com/toolward/toolward/bridge/hookclient"
)

func main() { os.Exit(hookclient.Main(os.Args[1:])) }
