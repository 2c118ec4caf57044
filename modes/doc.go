// Package modes holds the settings that commands are judged by, and the one verdict about a command.
//
// [Security] says which commands may run at all, [Ask] when people are asked, [Fallback] what silence means. [Merge] is
// where the configuration meets the file of the executing host, [Modes.At] what the level of a session does to them.
// [Judge] alone makes a verdict of the facts about a command: package command finds the facts, package policy adds the
// class of the tool, its findings and what an operator overrides.
package modes
