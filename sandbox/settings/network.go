package settings

import (
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// The codes of a network or a profile that is refused.
const (
	CodeNetworkHost       sandbox.Code = "network_host"
	CodeNetworkContainer  sandbox.Code = "network_container"
	CodeNetworkNamespace  sandbox.Code = "network_ns"
	CodeProfileUnconfined sandbox.Code = "profile_unconfined"
)

// ParseNetwork reads the name of a network. Nothing is NetworkNone: an engine's own default is a bridge to everywhere.
func ParseNetwork(name string, allowJoin bool) (sandbox.NetworkMode, error) {
	name = sandbox.Trim(name)
	switch folded := strings.ToLower(name); {
	case folded == "":
		return sandbox.NetworkNone, nil
	case folded == "host":
		return "", sandbox.Errorf(CodeNetworkHost, "network %q: a sandbox does not share the network of the host; write none or egress", name)
	case strings.HasPrefix(folded, "container:") && !allowJoin:
		return "", &sandbox.Error{
			Code: CodeNetworkContainer, Text: "network " + name + " joins another container's",
			Fix: "write none or egress, or set dangerouslyAllowContainerNamespaceJoin",
		}
	case strings.HasPrefix(folded, "ns:"):
		return "", sandbox.Errorf(CodeNetworkNamespace, "network %q: a sandbox joins no namespace of the host; write none or egress", name)
	case folded == string(sandbox.NetworkNone), folded == string(sandbox.NetworkEgress), folded == string(sandbox.NetworkBridge):
		return sandbox.NetworkMode(folded), nil
	}
	return sandbox.NetworkMode(name), nil
}

// CheckProfile refuses to run without a seccomp or AppArmor profile. "" is the default one.
func CheckProfile(key, value string) error {
	if strings.EqualFold(sandbox.Trim(value), "unconfined") {
		return sandbox.Errorf(CodeProfileUnconfined, "%s %q takes the protection away: name a profile, or leave the key out", key, value)
	}
	return nil
}
