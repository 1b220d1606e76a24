package mcpserver

import (
	"strings"

	"github.com/writ-run/writ/wire"
)

// ours begins the names of members of _meta that are writ's alone.
const ours = "run.writ/"

// disown takes out what only writ says, such as that a call waits for a person, and
// reports whether there was any: a server behind us could say it too.
func (m members) disown() bool {
	before := len(m)
	for key := range m {
		if strings.HasPrefix(key, ours) {
			delete(m, key)
		}
	}
	return len(m) < before
}

// disown does the same for the _meta of a server's result, which says whose it is where
// the client's version wants to know.
func (x *exchange) disown(result members) {
	meta, ok := object(result["_meta"])
	if !ok {
		meta = members{}
	}
	meta.disown()
	delete(meta, metaServer)
	if x.modern {
		meta[metaServer], _ = wire.Plain(serverInfo()) // of strings
	}
	delete(result, "_meta")
	if len(meta) > 0 {
		result["_meta"], _ = wire.Plain(meta) // of what was JSON
	}
}
