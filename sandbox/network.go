package sandbox

import "strings"

// The codes of a network or a profile that is refused.
const (
	CodeNetworkHost       Code = "network_host"
	CodeNetworkContainer  Code = "network_container"
	CodeNetworkNamespace  Code = "network_ns"
	CodeProfileUnconfined Code = "profile_unconfined"
)

// ParseNetwork reads the name of a network. Nothing is NetworkNone: an engine's own default is a bridge to everywhere.
func ParseNetwork(name string, allowJoin bool) (NetworkMode, error) {
	name = trim(name)
	switch folded := strings.ToLower(name); {
	case folded == "":
		return NetworkNone, nil
	case folded == "host":
		return "", Errorf(CodeNetworkHost, "network %q: a sandbox does not share the network of the host; write none or egress", name)
	case strings.HasPrefix(folded, "container:") && !allowJoin:
		return "", &Error{
			Code: CodeNetworkContainer, Text: "network " + name + " joins another container's",
			Fix: "write none or egress, or set dangerouslyAllowContainerNamespaceJoin",
		}
	case strings.HasPrefix(folded, "ns:"):
		return "", Errorf(CodeNetworkNamespace, "network %q: a sandbox joins no namespace of the host; write none or egress", name)
	case folded == string(NetworkNone), folded == string(NetworkEgress), folded == string(NetworkBridge):
		return NetworkMode(folded), nil
	}
	return NetworkMode(name), nil
}

// CheckProfile refuses to run without a seccomp or AppArmor profile. "" is the default one.
func CheckProfile(key, value string) error {
	if strings.EqualFold(trim(value), "unconfined") {
		return Errorf(CodeProfileUnconfined, "%s %q takes the protection away: name a profile, or leave the key out", key, value)
	}
	return nil
}
