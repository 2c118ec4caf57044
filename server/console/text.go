package console

import "github.com/toolward/toolward/display"

// span is a part of a shown text; what an agent could use to deceive is marked as escaped.
type span = display.Piece

// spans shows text that may have several lines: commands, file contents, argument values.
func spans(s string) []span { return display.Show(s, display.Options{Lines: true}).Pieces }

// oneLine shows text that belongs on one line: names, paths, titles. A line break in a path is made visible.
func oneLine(s string) []span { return display.Show(s, display.Options{}).Pieces }
