package ticket

// Knows reports whether a text is a ticket.
func (o *Office) Knows(text string) bool {
	_, err := o.find(text, 0)
	return err != errUnknown
}
