package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

type completeCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a completion script made from the command line's own description.
func (c *completeCommand) Run(inv *invocation, parser *kong.Kong) error {
	words := commandWords(parser.Model.Node, "")
	switch c.Shell {
	case "bash":
		fmt.Fprint(inv.stdout, "_toolward() {\n  local path=\"\" word\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"+
			"    case $word in -*) ;; *) path+=\" $word\" ;; esac\n  done\n  case \"$path\" in\n")
		for _, w := range words {
			fmt.Fprintf(inv.stdout, "    %q) COMPREPLY=($(compgen -W %q -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n", w.path, w.next)
		}
		fmt.Fprint(inv.stdout, "    *) COMPREPLY=() ;;\n  esac\n}\ncomplete -o default -F _toolward toolward\n")
	case "zsh":
		fmt.Fprint(inv.stdout, "#compdef toolward\n_toolward() {\n  local path=\"\" word\n  for word in ${words[2,CURRENT-1]}; do\n"+
			"    [[ $word == -* ]] || path+=\" $word\"\n  done\n  case $path in\n")
		for _, w := range words {
			fmt.Fprintf(inv.stdout, "    %q) compadd -- %s ;;\n", w.path, w.next)
		}
		fmt.Fprint(inv.stdout, "    *) _files ;;\n  esac\n}\ncompdef _toolward toolward\n")
	case "fish":
		for _, w := range words {
			fmt.Fprintf(inv.stdout, "complete -c toolward -f -n %q -a %q\n",
				fmt.Sprintf("test (string join ' ' '' (string match -v -- '-*' (commandline -opc)[2..])) = '%s'", w.path), w.next)
		}
	}
	return nil
}

// completion is what may follow a path of commands.
type completion struct{ path, next string }

func commandWords(node *kong.Node, path string) []completion {
	here := completion{path: path}
	var below []completion
	for _, child := range node.Children {
		if child.Hidden || child.Type != kong.CommandNode {
			continue
		}
		here.next += child.Name + " "
		below = append(below, commandWords(child, path+" "+child.Name)...)
	}
	for _, flag := range node.Flags {
		if !flag.Hidden {
			here.next += "--" + flag.Name + " "
		}
	}
	return append([]completion{here}, below...)
}
