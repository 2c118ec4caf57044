// Package telemetry measures what the gateway does: counters and histograms for Prometheus, and OpenTelemetry spans
// for every step of a call.
//
// It only looks on: nothing in it can change a decision, and nothing that it exports holds arguments, results,
// session keys or texts of people. What callers choose — names of agents and tools — is bounded before it becomes a
// label, so that nobody can fill the memory of the gateway or of the collector by inventing names.
package telemetry
