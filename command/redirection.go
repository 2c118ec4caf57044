package command

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// maxRedirs bounds the redirections that are judged of one command.
const maxRedirs = 20

// redirections judges the files of redirections as those of the file tools: no entry for a program covers them.
func (v *evaluation) redirections(seg *Segment, redirs []shell.Redirect) {
	if len(redirs) > maxRedirs {
		seg.found(Redirected, "it has more redirections than anybody reads")
		seg.By = NotSatisfied
		redirs = redirs[:maxRedirs]
	}
	p := v.presetPermit()
	for _, r := range redirs {
		judged, failed := Redirect{Redirect: r, Verdict: toolward.Allow}, error(nil)
		if !r.Harmless() {
			judged.Verdict = toolward.Ask
			var ok bool
			if judged.File, ok, failed = v.redirection(seg, r, p); ok {
				judged.Verdict = toolward.Allow
			}
		}
		if judged.Verdict != toolward.Allow {
			detail := r.String()
			if failed != nil {
				detail += ": " + failed.Error()
			}
			seg.found(Redirected, detail)
			seg.By = NotSatisfied
		}
		seg.Redirs = append(seg.Redirs, judged)
	}
}

// redirection resolves the file, and says whether it may be read or written. The error is why it cannot be either.
func (v *evaluation) redirection(seg *Segment, r shell.Redirect, p permit) (file place.Resolved, ok bool, err error) {
	if v.r.Places == nil || len(seg.OtherDir) > 0 && relativeFile(r.Target) {
		return place.Resolved{}, false, nil
	}
	file, err = v.locate(seg.Dir, r.Target)
	switch {
	case err != nil:
		return place.Resolved{}, false, err
	case r.Writes():
		return file, p.write && v.mayWrite(file, p), nil
	case file.Zone == place.Workspace || file.Zone == place.Instructions:
		return file, true, nil
	}
	// A safe bin may run because it reads nothing but what is piped into it.
	return file, seg.By != BySafeBins && v.mayRead(seg, file, p), nil
}

func relativeFile(p string) bool { return p != "" && p[0] != '/' }
