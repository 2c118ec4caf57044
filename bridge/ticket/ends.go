package ticket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// ends are the ends of the pipes that toolward-run made: what the command writes goes into them.
type ends struct {
	in, out, err *os.File // nil: there is none

	outputs sync.WaitGroup
	mu      sync.Mutex // of the tail
}

// receiveEnds takes as many pipes as the terms say, and nothing else: a descriptor of another kind could make a write wait
// for ever, or reach what toolward-run has no business with.
func receiveEnds(conn *net.UnixConn, terms *Terms) (*ends, error) {
	want := 1
	if terms.Stdin {
		want++
	}
	if !terms.Merged {
		want++
	}
	_ = conn.SetReadDeadline(time.Now().Add(answerTime))
	defer conn.SetReadDeadline(time.Time{})
	var data [1]byte
	oob := make([]byte, syscall.CmsgSpace(3*4)) // the kernel drops what does not fit, so nobody fills our table of files
	_, n, _, _, err := conn.ReadMsgUnix(data[:], oob)
	if err != nil {
		return nil, errors.New("no streams came. The command did not run")
	}
	var files []*os.File
	messages, _ := syscall.ParseSocketControlMessage(oob[:n]) // none: no files
	for i := range messages {
		fds, _ := syscall.ParseUnixRights(&messages[i]) // no rights: no files
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			_ = syscall.SetNonblock(fd, true) // one that cannot is no pipe
			files = append(files, os.NewFile(uintptr(fd), "stream of toolward-run"))
		}
	}
	bad := len(files) != want
	for _, f := range files {
		bad = bad || !isPipe(f)
	}
	if bad {
		for _, f := range files {
			_ = f.Close() // nothing was written
		}
		return nil, errors.New("the streams are not those that were announced. The command did not run")
	}
	e := &ends{}
	if terms.Stdin {
		e.in, files = files[0], files[1:]
	}
	e.out = files[0]
	if !terms.Merged {
		e.err = files[1]
	}
	return e, nil
}

// carry begins to move what the command reads and writes.
func (e *ends) carry(command Command, last *tail) {
	enlarge(e.out)
	for _, from := range []struct {
		file   *os.File
		stream io.Reader
	}{{e.out, command.Stdout()}, {e.err, command.Stderr()}} {
		into := from.file
		if into == nil {
			into = e.out // nothing comes there but what the program inside says itself
		}
		e.outputs.Go(func() {
			_, err := io.Copy(&noting{e, into, last}, from.stream)
			if errors.Is(err, syscall.EPIPE) {
				// Nobody reads it: the command learns of it as it would without us.
				_ = command.Signal(syscall.SIGPIPE) // it may have ended
			}
			_, _ = io.Copy(io.Discard, from.stream) // it ends with the command
		})
	}
	in := command.Stdin()
	if in == nil || e.in == nil {
		return
	}
	go func() {
		_, _ = io.Copy(in, e.in) // it ends with our side, or the command
		_ = in.Close()           // there is nothing to lose
	}()
}

// finish waits until everything was handed over. given: the command was given up, and nobody may read its output.
func (e *ends) finish(givenUp bool) {
	if givenUp {
		e.close()
	}
	e.outputs.Wait()
	e.close()
}

func (e *ends) close() {
	for _, f := range []*os.File{e.in, e.out, e.err} {
		if f != nil {
			_ = f.Close() // it may be closed
		}
	}
}

// noting writes to a file and keeps the end of what was written.
type noting struct {
	ends *ends
	file *os.File
	last *tail
}

func (n *noting) Write(p []byte) (int, error) {
	n.ends.mu.Lock()
	n.last.add(p)
	n.ends.mu.Unlock()
	return n.file.Write(p)
}
