package place

import "github.com/toolward/toolward"

// kindWords are the words of records for what stands at a path.
var kindWords = [...]toolward.Kind{
	KindUnknown: toolward.KindUnknown, KindMissing: toolward.KindMissing, KindRegular: toolward.KindFile,
	KindDirectory: toolward.KindDirectory, KindSymlink: toolward.KindSymlink, KindDevice: toolward.KindDevice,
	KindFIFO: toolward.KindFIFO, KindSocket: toolward.KindSocket, KindOther: toolward.KindSpecial,
}

// Word is the kind in records and findings.
func (k Kind) Word() toolward.Kind {
	if int(k) < len(kindWords) {
		return kindWords[k]
	}
	return toolward.KindUnknown
}

// Word is the zone in records and findings.
func (z Zone) Word() toolward.Zone { return toolward.Zone(z.String()) }

// Target is the file or directory of a call that a path was resolved to.
func (r Resolved) Target(op toolward.Op) toolward.Target {
	return toolward.Target{
		Path: r.Asked, Real: r.Real, Op: op, Zone: r.Zone.Word(), Kind: r.Kind.Word(), Links: r.Links, Left: r.LedOut,
	}
}
