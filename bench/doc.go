// Package bench measures Toolward's decisions beside those of general policy engines that hold equal rules. It is a
// module of its own, so that no program of Toolward depends on them.
package bench
