package native

import "github.com/toolward/toolward/sandbox"

func (b *box) watchDisk(*sandbox.Spec) {}
