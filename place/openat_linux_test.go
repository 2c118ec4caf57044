package place

import "testing"

// Without openat2 (old kernels, container filters) everything above must hold as well.
func TestWithoutOpenat2(t *testing.T) {
	noOpenat2.Store(true)
	defer noOpenat2.Store(false)
	t.Run("read", TestReadFile)
	t.Run("swaps", TestSwapsAfterResolve)
	t.Run("write", TestWriteFile)
	t.Run("remove and rename", TestRemoveAndRename)
	t.Run("resolve", TestResolve)
	t.Run("magic links", TestMagicLinksAreNotFollowed)
	t.Run("race", TestRaceAgainstSwaps)
}
