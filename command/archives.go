package command

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// An archive names the files that it becomes: "tar xf t.tar" writes .git/config, by which the next "git status" runs a command, or
// .claude/settings.json. So the names in it are read, and judged like operands.

// Bounds of an archive that is looked into.
const (
	maxArchive      int64 = 16 << 20 // bytes of the file
	maxUnpacked     int64 = 96 << 20 // bytes of what it is unpacked
	maxArchiveNames       = 20000
)

var (
	errStrangeArchive = errors.New("the archive cannot be looked into")
	errArchiveLink    = errors.New("the archive makes a link that leads out of it")
)

// archived objects to what unpacks a file that may not be written without a question, or that nobody can look into.
func (v *evaluation) archived(seg *Segment) {
	if seg.By != ByPreset || !unpacks(seg) {
		return
	}
	if why := v.unpackedNames(seg); why != "" {
		seg.found(ArgumentWrite, why)
		seg.By = NotSatisfied
	}
}

// unpacks reports whether a segment makes files that an archive names.
func unpacks(seg *Segment) bool {
	has := func(letters string, words ...string) bool {
		for i, a := range seg.Args {
			cluster := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") || i == 0
			if slices.Contains(words, a) || cluster && letters != "" && strings.ContainsAny(strings.TrimPrefix(a, "-"), letters) && len(a) < 12 {
				return true
			}
		}
		return false
	}
	if !hasEffect(seg.effects, shell.Writes) {
		return false
	}
	switch plainName(seg.Program.Word) {
	case "tar", "gtar", "bsdtar":
		return has("x", "--extract", "--get")
	case "unzip":
		return true
	case "7z", "7za", "7zr", "7zz", "ar", "gar":
		return len(seg.Args) > 0 && strings.ContainsAny(seg.Args[0], "xe")
	case "cpio":
		return has("i", "--extract")
	}
	return false
}

// bringsCode reports whether a segment, or what it runs, may unpack or fetch code that is not the project's own: "tar xf x.tgz && make
// -C x" runs what came with it. What lay there before the command has been there for people to see.
func bringsCode(seg *Segment) bool {
	if unpacks(seg) || plainName(seg.Program.Word) == "git" && subcommand(seg.Args) == "clone" || slices.ContainsFunc(seg.Inner, func(s Segment) bool { return bringsCode(&s) }) {
		return true
	}
	return slices.ContainsFunc(seg.Effects, func(j Judged) bool { return j.Runs != nil && bringsCode(j.Runs) })
}

// unpackedNames says why the names in an archive ask; "" if none does.
func (v *evaluation) unpackedNames(seg *Segment) string {
	var archives, into []string
	for i := range seg.effects {
		switch e := &seg.effects[i]; {
		case e.Kind == shell.Reads && e.Path != "-" && e.Path != ".":
			archives = append(archives, path.Join(e.Dir, e.Path))
		case e.Kind == shell.Writes:
			into = append(into, path.Join(e.Dir, e.Path))
		}
	}
	disk, ok := v.e.resolver.files.(contents)
	if len(archives) == 0 || !ok || len(seg.OtherDir) > 0 || v.filled {
		return "it is not known what is unpacked by then"
	}
	for _, name := range archives {
		r, err := v.locate(seg.Dir, name)
		if err == nil && r.Kind == place.KindMissing {
			r, err = v.locate(seg.Dir, name+".zip") // unzip looks for that
		}
		switch {
		case err != nil:
			return "it is not known what is unpacked"
		case r.Kind == place.KindMissing:
			continue // there is nothing to unpack
		}
		raw, err := disk.ReadFile(r.Real, maxArchive)
		if err != nil {
			return errStrangeArchive.Error()
		}
		names, err := archiveNames(raw)
		if err != nil {
			return err.Error()
		}
		if name := v.guardedName(seg, names, into); name != "" {
			return "it unpacks " + name
		}
	}
	return ""
}

// guardedName is the first of the names that may not be written without a question in one of the directories.
func (v *evaluation) guardedName(seg *Segment, names, into []string) string {
	p := v.presetPermit()
	stripped := slices.ContainsFunc(seg.Args, func(a string) bool { return strings.HasPrefix(a, "--strip") || strings.HasPrefix(a, "-j") })
	parents := map[string]place.Resolved{}
	for _, name := range names {
		for rest := strings.TrimLeft(name, "/"); rest != ""; {
			for _, dir := range into {
				parent, known := parents[path.Join(dir, path.Dir(rest))]
				if !known {
					var err error
					if parent, err = v.locate(seg.Dir, path.Join(dir, path.Dir(rest))); err != nil {
						return name
					}
					parents[path.Join(dir, path.Dir(rest))] = parent
				}
				real := path.Join(parent.Real, path.Base(rest))
				zone, err := v.zone(real)
				if err != nil || !v.mayWrite(place.Resolved{Real: real, Zone: zone, Kind: place.KindRegular}, p) {
					return name
				}
			}
			if !stripped {
				break
			}
			_, rest, _ = strings.Cut(rest, "/")
		}
	}
	return ""
}

// archiveNames lists what an archive becomes.
func archiveNames(raw []byte) (names []string, err error) {
	if bytes.HasPrefix(raw, []byte("PK")) {
		return zipNames(raw)
	}
	var text io.Reader = bytes.NewReader(raw)
	switch {
	case bytes.HasPrefix(raw, []byte{0x1f, 0x8b}):
		if text, err = gzip.NewReader(text); err != nil {
			return nil, errStrangeArchive
		}
	case bytes.HasPrefix(raw, []byte("BZh")):
		text = bzip2.NewReader(text)
	}
	members := tar.NewReader(io.LimitReader(text, maxUnpacked))
	for {
		member, err := members.Next()
		switch {
		case err == io.EOF && len(names) > 0:
			return names, nil
		case err != nil || len(names) >= maxArchiveNames || !inside(member.Name):
			return nil, errStrangeArchive
		}
		link := member.Typeflag == tar.TypeSymlink || member.Typeflag == tar.TypeLink
		if link && (path.IsAbs(member.Linkname) || strings.HasPrefix(path.Join(path.Dir(member.Name), member.Linkname), "..")) {
			return nil, errArchiveLink
		}
		names = append(names, member.Name)
	}
}

func zipNames(raw []byte) (names []string, err error) {
	members, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(members.File) > maxArchiveNames {
		return nil, errStrangeArchive
	}
	for _, member := range members.File {
		switch {
		case !inside(member.Name) || strings.Contains(member.Name, `\`):
			return nil, errStrangeArchive
		case member.Mode()&fs.ModeSymlink != 0:
			return nil, errArchiveLink
		}
		names = append(names, member.Name)
	}
	return names, nil
}

// inside reports whether a name in an archive stays below where it is unpacked.
func inside(name string) bool {
	return name != "" && !slices.Contains(strings.Split(name, "/"), "..") && strings.IndexByte(name, 0) < 0
}
