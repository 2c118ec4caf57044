// Package protected finds the files in a sandbox that programs of the machine obey: hooks of repositories, settings of editors.
// A [Survey] finds what is there before the sandbox is made, so that it is mounted read-only, and afterwards what commands have
// made. It tells whether git on the machine would run one of them.
package protected
