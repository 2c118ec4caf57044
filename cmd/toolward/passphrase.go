package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNoTerminal is returned where a secret would have to be typed, but nobody can type.
var errNoTerminal = errors.New("standard input is not a terminal")

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readSecret asks for a secret on the terminal without showing it.
func readSecret(in io.Reader, out io.Writer, prompt string) (string, error) {
	if !isTerminal(in) {
		return "", errNoTerminal
	}
	fmt.Fprint(out, prompt)
	secret, err := term.ReadPassword(int(in.(*os.File).Fd()))
	fmt.Fprintln(out)
	if err != nil {
		return "", fmt.Errorf("read passphrase: %w", err)
	}
	return string(secret), nil
}

// readNewSecret asks twice.
func readNewSecret(in io.Reader, out io.Writer) (string, error) {
	first, err := readSecret(in, out, "New passphrase: ")
	if err != nil {
		return "", err
	}
	second, err := readSecret(in, out, "Again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the two are not the same")
	}
	return first, nil
}

// readLine takes one line of standard input, for --passphrase-stdin.
func readLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", fmt.Errorf("read passphrase from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// confirm asks a yes-or-no question; anything but y or yes is no, and so is the lack of a terminal.
func confirm(in io.Reader, out io.Writer, question string) bool {
	if !isTerminal(in) {
		return false
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}
