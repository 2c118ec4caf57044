// Package visible decides which tools a caller sees: by the lists of the gateway, of its agent, model, chat group and
// sender, by its sandbox, by what its parent may use, and by the endpoint it comes through.
//
// [Compile] turns the lists and the registered tools into an immutable [Book]. Each layer (layer.go) can only take tools
// away, so that adding one never allows more and the order of layers only decides which of them an explanation names.
package visible
