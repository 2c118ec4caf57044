package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const piece = 4 << 20

// hog takes memory until it is stopped: private, shared, or as the dirty pages of a file.
func hog(kind string) {
	switch kind {
	case "anonymous", "shared":
		flags := unix.MAP_ANON | unix.MAP_PRIVATE
		if kind == "shared" {
			flags = unix.MAP_ANON | unix.MAP_SHARED
		}
		for total := 0; total < 64<<30; total += piece {
			memory, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, flags)
			if err != nil {
				tell("mmap", err)
				os.Exit(1)
			}
			for i := 0; i < len(memory); i += 4096 {
				memory[i] = 1
			}
		}
	default:
		fill(kind)
	}
	fmt.Println("nobody stopped it")
}

// fill writes a file until it is stopped, and says why.
func fill(path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tell("open", err)
		os.Exit(1)
	}
	data := make([]byte, piece)
	for i := range data {
		data[i] = byte(i)
	}
	for total := 0; total < 64<<30; total += piece {
		if _, err := file.Write(data); err != nil {
			tell("write", err)
			os.Exit(1)
		}
	}
	fmt.Println("nobody stopped it")
}

// bomb starts processes, which wait, until it may not any more, and says how many it got.
func bomb(limit string) {
	most, err := strconv.Atoi(limit)
	if err != nil {
		os.Exit(64)
	}
	var started []*exec.Cmd
	for len(started) < most {
		cmd := exec.Command("/bin/sleep", "300")
		if err := cmd.Start(); err != nil {
			tell("start", err)
			break
		}
		started = append(started, cmd)
	}
	fmt.Printf("started\t%d\n", len(started))
	time.Sleep(100 * time.Millisecond)
	for _, cmd := range started {
		_ = cmd.Process.Kill() // it ends
		_ = cmd.Wait()         // it was killed
	}
}

// inodes makes empty files until it is stopped: they take memory, too, and no size counts them.
func inodes(dir string) {
	for i := range 4 << 20 {
		fd, err := unix.Open(dir+"/"+strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			tell("create", err)
			os.Exit(1)
		}
		_ = unix.Close(fd) // nothing was written
	}
	fmt.Println("nobody stopped it")
}
