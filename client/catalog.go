package client

import "context"

// Catalog is the tools that a gateway has.
type Catalog struct {
	Agent  string      `json:"agentId"`
	Groups []ToolGroup `json:"groups"`
}

// ToolGroup is a section of the catalog, or the tools of a plug-in.
type ToolGroup struct {
	ID     string        `json:"id"`
	Label  string        `json:"label"`
	Source string        `json:"source"` // core or plugin
	Plugin string        `json:"pluginId"`
	Tools  []CatalogTool `json:"tools"`
}

// CatalogTool is one tool of the catalog.
type CatalogTool struct {
	Name        string   `json:"id"`
	Label       string   `json:"label"`
	Description string   `json:"description"` // its first line
	Source      string   `json:"source"`
	Plugin      string   `json:"pluginId"`
	Optional    bool     `json:"optional"`
	Profiles    []string `json:"defaultProfiles"`
}

// Catalog lists the tools that an agent of the gateway may see; "" is the default agent. It needs ScopeRead.
func (c *Client) Catalog(ctx context.Context, agent string) (*Catalog, error) {
	var list Catalog
	params := map[string]any{}
	setIf(params, "agentId", agent, agent != "")
	if err := c.look(ctx, "tools.catalog", params, &list); err != nil {
		return nil, err
	}
	return &list, nil
}
