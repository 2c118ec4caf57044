package visible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
)

// register takes the tools that may exist.
func (b *binder) register(tools []*toolward.Tool) error {
	for i, t := range tools {
		if t == nil {
			return fmt.Errorf("register tool %d: it is nil", i)
		}
		err := b.admit(t)
		switch {
		case err == nil && t.Internal:
		case err == nil:
			b.sorted = append(b.sorted, t)
			if t.Plugin != "" {
				b.book.words.plugins[NormalizeName(t.Plugin)] = true
			}
		case t.Plugin == "":
			return fmt.Errorf("register tool %q: %w", t.Name, err)
		default:
			b.Warn(report.Warning{Tool: t.Name, Code: report.CheckToolRefused, Text: fmt.Sprintf("of %q is not registered: %v", t.Plugin, err)})
		}
	}
	slices.SortFunc(b.sorted, func(x, y *toolward.Tool) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

func (b *binder) admit(t *toolward.Tool) error {
	if err := CheckName(t.Name, t.Plugin); err != nil {
		return err
	}
	if t.Internal != isInternal(t.Name) || t.Internal && t.Run != nil {
		return fmt.Errorf("%q: the internal tools are known by name, and Toolward's parts run them", t.Name)
	}
	if other := b.book.tools[t.Name]; other != nil {
		return fmt.Errorf("the name is taken by a tool of %q", other.Plugin)
	}
	if admits := b.config.Around.Admits; admits != nil {
		if err := admits(t); err != nil {
			return err
		}
	}
	if t.Internal {
		b.book.internal[t.Name] = t
	} else {
		b.book.tools[t.Name] = t
	}
	return nil
}
