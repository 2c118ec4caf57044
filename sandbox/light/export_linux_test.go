package light

// Only makes a machine one that can do no more than a mode.
func (l *Light) Only(mode Mode) { l.check = func() Check { return Check{Mode: mode} } }

// LandlockVersion is what the kernel has.
var LandlockVersion = landlockVersion
