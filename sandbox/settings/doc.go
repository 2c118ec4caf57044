// Package settings turns the configuration of sandboxes into what a sandbox must be.
//
// [Compile] checks a [Configuration] and resolves it for every agent; a [Resolved] says of each setting where it comes from. Its
// [Layout] tells where everything of a sandbox is before anything is made, which is enough to judge the paths of a call; its
// Spec makes ready what a sandbox needs on the machine, pins what is mounted, and is complete. No engine is asked.
package settings
