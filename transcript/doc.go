// Package transcript reads the tool calls in the transcripts that clients keep on this machine.
//
// A transcript was written by somebody else's program while a model talked, so nothing in it is trusted to be whole: what
// cannot be read is counted and named, and never ends the reading. Files are read as streams, links are not followed, and
// nothing is written, locked or run.
package transcript
