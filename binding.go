package toolward

import (
	"crypto/sha256"
	"strconv"
)

// Two digests hold a call fast on its way from a question to the run. They differ because different things may change
// meanwhile, at different distances.

// approvalBinding digests what people answer about: the call, where it runs, its resolved targets and what the tool adds,
// such as the environment of a command. The re-check looks at all of that again after the wait, which may take days, and
// compares: it stops a target that is swapped for another, moves into another zone, or becomes a device meanwhile. It
// leaves the revision of the policy out, because the re-check judges by the newest policy anyway.
func approvalBinding(r *Request) string {
	b := append(make([]byte, 0, 256), r.Digest...)
	b = appendParts(b, r.Call.WorkDir, string(r.Call.Host), string(r.Facts.Host))
	for _, t := range r.Facts.Targets {
		b = appendParts(b, string(t.Op), t.Real, string(t.Kind), string(t.Zone))
	}
	b = append(b, ';')
	return hexDigest(appendParts(b, r.Facts.Bound...))
}

// passBinding digests what a pass is good for. Nobody looks at the targets again between admission and run, so their kinds and
// zones are not in it; it stops whatever would change the admitted request itself in those seconds. The revision of the
// policy is in it: nobody judged the call by a policy that came later, so no pass outlives a change of it. digest is that of
// the call, computed anew from its parameters when the pass is redeemed.
func passBinding(r *Request, digest, revision string) [sha256.Size]byte {
	b := append(make([]byte, 0, 256), digest...)
	b = appendParts(b, r.Call.WorkDir, string(r.Call.Host), string(r.Facts.Host), revision, string(r.Call.Surface))
	for _, t := range r.Facts.Targets {
		b = appendParts(b, string(t.Op), t.Real)
	}
	b = append(b, ';')
	return sha256.Sum256(appendParts(b, r.Facts.Bound...))
}

// appendParts appends texts so that no two lists give the same bytes. Names of files are bytes and need not be text:
// written as JSON, two of them could look alike.
func appendParts(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(append(b, ':'), part...)
	}
	return b
}
