// Package allowlist keeps exec-approvals.json: which commands of which agent run without a question. Other tools know
// the file and write it too, so that every read starts from the disk and every change holds a lock, is made from a known
// state, and replaces the file as a whole.
package allowlist
