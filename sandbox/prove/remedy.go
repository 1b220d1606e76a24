package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// notClaimed begins the evidence of what a driver never said it would hold.
const notClaimed = "not claimed: "

// Declared reports whether the driver says that it holds this, whether or not it does
// here.
func Declared(f sandbox.Finding) bool {
	return f.Enforced || !strings.HasPrefix(f.Evidence, notClaimed)
}

// demandable reports whether any confinement needs a feature.
func demandable(f sandbox.Feature) bool {
	for _, c := range []writ.Confinement{{}, {Network: writ.Network{Mode: writ.NetworkHosts}}} {
		if slices.Contains(sandbox.Demands(c), f) {
			return true
		}
	}
	return false
}

// Remedies is what to do about what a driver lacks on this machine; nil where it lacks
// nothing that it declares. failed: it cannot start boxes at all.
func Remedies(have sandbox.Features, failed bool) []string {
	var missing []string
	for _, f := range have {
		if Declared(f) && !f.Enforced && demandable(f.Feature) {
			missing = append(missing, string(f.Feature))
		}
	}
	if !failed && missing == nil {
		return nil
	}
	out := ofMachine()
	if missing != nil {
		out = append(out, fmt.Sprintf("calls that need %s are refused on this driver; sandboxing.default_backend: auto takes the first that has it", strings.Join(missing, ", ")))
	}
	return out
}
