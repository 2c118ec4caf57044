package display

import "strings"

// Options say how a text is shown.
type Options struct {
	Lines bool // keep line breaks and tabs; else they are escaped
	Limit int  // characters shown at most, head and tail; 0: all
}

// Piece is a part of a shown text.
type Piece struct {
	Text    string // as it is printed; escapes with their brackets
	Escaped bool   // stands for something that is not shown as it is
	Note    string // what an escape stands for, in words
}

// Shown is a text made ready for people.
type Shown struct {
	Pieces []Piece
	Cut    int // characters left out in the middle
}

// String joins the pieces.
func (s Shown) String() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// The longest runs that are shown as they are. A longer one would push what follows off the screen.
const (
	maxSpaces     = 80
	maxBlankLines = 3
	maxMarks      = 3 // combining marks on one letter
)
