// Package soak asks, answers, disconnects, restarts and kills for as long as it is told to, and then looks whether an
// approval was lost, doubled or stuck. It has only tests; see TestSoak.
package soak
