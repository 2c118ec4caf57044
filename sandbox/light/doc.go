// Package light confines commands that run on the machine itself and that no person saw in this exact form: the machine's
// own files, programs and network, without what a command has no business with. Toward those who judged it, a command may
// be more than it seemed: code of the project runs in it, or something in it was understood wrongly. So Toolward's own
// state, keys and other credentials, what other programs run or trust, other processes and the doors to agents that hold
// keys are absent or cannot be written to.
//
//	l := light.New(light.Options{Program: find})
//	defer l.Close()
//	err := l.Confine(&plan, scene) // every program of the job is started in a box from here on
//	running, err := job.Start(plan, streams)
//
// One job has one box for every kind of needs (see [About]): mount, process and IPC namespaces of its own, in a user
// namespace in which the user is the same user; root's have none. Where there are no user namespaces Landlock does what it
// can. [Light.Check] says which it is. The process that makes a box is toward its programs the first process, and all end
// with it. See package box.
package light
