// Package entry is the program toolward-inside, which is also the subcommand "inside" of the big program.
package entry

import (
	"os"

	"github.com/toolward/toolward/sandbox/inside/join"
	"github.com/toolward/toolward/sandbox/inside/serve"
	"github.com/toolward/toolward/sandbox/light/box"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// Main runs the program and returns its exit code. subcommand is what stands before args when this program is started
// again: nothing, or "inside".
func Main(subcommand, args []string) int {
	if len(args) > 2 && args[0] == join.Argument {
		if err := join.Connect(args[1]); err != nil {
			return failed(err)
		}
		args = args[2:]
	}
	if len(args) >= 2 {
		if to, ok := setup.ForwardsOf(args[0]); ok {
			if err := setup.Forward(to); err != nil {
				return failed(err)
			}
			args = args[1:]
		}
	}
	if len(args) == 1 && args[0] == setup.Argument {
		return setup.Main(subcommand)
	}
	if len(args) == 1 && args[0] == box.Argument {
		return box.Main()
	}
	return serve.Main(args)
}

func failed(err error) int {
	_, _ = os.Stderr.WriteString("toolward: " + err.Error() + "\n") // nobody else to tell
	return 1
}
