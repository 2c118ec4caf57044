package config

import (
	"errors"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/report"
)

// CheckPolicy is a Check that compiles the policy part of a file with the given tools.
func CheckPolicy(tools []*toolward.Tool, around policy.Surroundings) Check {
	return func(f File) []error {
		c := f.Policy()
		c.Around = around
		_, _, err := policy.Compile(c, tools)
		var wrong report.Errors
		if !errors.As(err, &wrong) {
			return nonNil(err)
		}
		errs := make([]error, len(wrong))
		for i, w := range wrong {
			errs[i] = keyError{w.Path.String(), w.Problem}
		}
		return errs
	}
}

// CheckPlugins is a Check of the section "plugins". compiled are the ids of the plug-ins that are compiled in.
func CheckPlugins(compiled []string) Check {
	return func(f File) (errs []error) {
		for _, problem := range f.Plugins.Check(compiled) {
			errs = append(errs, problem)
		}
		return errs
	}
}

func nonNil(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// plainName reports whether a key can be written without quotes in a path.
func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
