package visible

import (
	"strings"
)

// providerFamily are providers that stand in for another one where they have no entry of their own.
func providerFamily(provider string) string {
	switch provider {
	case "openai-codex":
		return "openai"
	case "google-vertex":
		return "google"
	}
	return ""
}

// fullModel is "provider/model"; a model that says its provider itself stays as it is.
func fullModel(provider, model string) string {
	if strings.HasPrefix(model, provider+"/") {
		return model
	}
	return provider + "/" + model
}

// providerCandidates are the keys of byProvider that fit a model, the most exact first. The first that exists counts
// alone. Without a provider there is none.
func providerCandidates(provider, model string) []string {
	provider, model = Fold(provider), Fold(model)
	if provider == "" {
		return nil
	}
	candidates := make([]string, 0, 4)
	if model != "" {
		candidates = append(candidates, fullModel(provider, model))
		if strings.Contains(model, "/") {
			candidates = append(candidates, model)
		}
	}
	candidates = append(candidates, provider)
	if family := providerFamily(provider); family != "" {
		candidates = append(candidates, family)
	}
	return candidates
}

// byProvider finds the entry that fits a model among entries by folded key.
func byProvider[V any](entries map[string]V, provider, model string) (entry V, ok bool) {
	if len(entries) == 0 {
		return entry, false
	}
	for _, key := range providerCandidates(provider, model) {
		if entry, ok = entries[key]; ok {
			return entry, true
		}
	}
	return entry, false
}

// patchRule says which models get apply_patch.
type patchRule struct {
	set         bool // the configuration says something about it
	enabled     bool
	allowModels []string
}

// with lays the settings of a narrower scope over those of a wider one.
func (p patchRule) with(a ApplyPatch) patchRule {
	if a.Enabled != nil {
		p.set, p.enabled = true, *a.Enabled
	}
	if a.AllowModels != nil {
		p.allowModels = nil
		for _, m := range a.AllowModels {
			p.allowModels = append(p.allowModels, Fold(m))
		}
	}
	return p
}

// available reports whether a model gets apply_patch. A list narrows for OpenAI, whose models know the tool, and
// extends, by full names only, for everybody else.
func (p patchRule) available(provider, model string, readOnly bool) bool {
	if !p.enabled || readOnly {
		return false
	}
	provider, model = Fold(provider), Fold(model)
	openai := provider == "openai" || provider == "openai-codex"
	if len(p.allowModels) == 0 {
		return openai
	}
	if model == "" {
		return false
	}
	full := fullModel(provider, model)
	for _, m := range p.allowModels {
		switch {
		case provider != "" && m == full, openai && m == model:
			return true
		}
	}
	return false
}
