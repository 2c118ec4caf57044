// Package console serves the pages on which people answer, look and manage.
//
// Every page below /c/{key}/ belongs to a signed-in person. A page is rendered whole before anything of it is sent, and
// what an agent has written is shown by package display alone.
package console
