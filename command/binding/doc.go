// Package binding is what an approval of a command holds on to: the programs, their arguments, the files that decide what
// runs, the directory and the environment. [Binder] looks at them when people are asked and again just before the start;
// [Binding.Check] tells both apart, field by field, so that what was approved is what runs.
package binding
