// Package schema decodes, checks and canonicalizes the arguments of tool calls.
//
// [Compile] turns a tool's JSON Schema into a [Schema]; [Schema.Decode] turns the bytes of one call into a [Value]:
// the decoded object and its canonical encoding. Everything that looks at a call afterwards, people included, looks
// at that one form, so that no two readers can understand the same bytes differently. Decode refuses whatever
// readers are known to disagree about: duplicate keys, keys that differ only in case, lone surrogates, invalid
// UTF-8, NUL in names of things, parameters that the schema does not declare.
//
// The canonical form has the key order and string escapes of RFC 8785. Integers stay exactly as written, because a
// 64-bit identifier must survive; other numbers are written in the shortest form that reads back the same.
//
// [Prepare] rewrites a tool's schema into the form that a model provider accepts. That form is only shown; arguments
// are validated against the original.
//
// No schema ever causes a file or the network to be read.
package schema
