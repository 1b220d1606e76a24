package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ/client"
)

// shownFor shows definitions as a person is to accept them, and gives their digests.
func (a *App) shownFor(ctx context.Context, daemon *client.Client, u client.Upstream, chosen []client.UpstreamTool) (client.UpstreamAcceptRequest, []string, error) {
	req := client.UpstreamAcceptRequest{Digests: map[string]string{}}
	var names, same []string
	if !a.JSON {
		showServer(u)
	}
	for _, t := range chosen {
		d, err := daemon.DiffTool(ctx, t.Name)
		if err != nil {
			return req, nil, err
		}
		if d.Digest != t.Digest {
			return req, nil, fmt.Errorf("tool %s changed just now, and nothing was accepted; run this again", t.Name)
		}
		if !a.JSON && !showSuspended(u, t, d) {
			same = append(same, t.Name)
		}
		req.Digests[t.Name] = d.Digest
		names = append(names, t.Name)
	}
	if len(same) > 0 {
		fmt.Printf("as they were accepted, but for the server: %s\n\n", strings.Join(same, ", "))
	}
	return req, names, nil
}

// showServer says whose tools they are.
func showServer(u client.Upstream) {
	if len(u.Changes) == 0 {
		fmt.Printf("server %s\n\n", OneLine(serverReach(u)))
		return
	}
	fmt.Printf("server %s is not what it was when its tools were accepted\n", u.Name)
	for _, c := range u.Changes {
		showChange(c.Key, c.Was, c.Is)
	}
	fmt.Println()
}

func serverReach(u client.Upstream) string {
	if u.Kind == "http" {
		return fmt.Sprintf("%s: goes to %s, which writ does not confine", u.Name, u.URL)
	}
	return fmt.Sprintf("%s: runs %s; its box reads %s, writes %s, reaches %s", u.Name, strings.Join(u.Command, " "), reaches(u.Read, "the system's programs"), reaches(u.Write, "nothing"), reaches(u.Hosts, "no network"))
}

// showSuspended shows one definition as a person is to accept it; false where there is
// nothing to show but another server.
func showSuspended(u client.Upstream, t client.UpstreamTool, d client.ToolDiff) bool {
	fresh := d.Accepted == ""
	said := slices.DeleteFunc(slices.Clone(d.Changes), func(c client.Change) bool {
		return strings.HasPrefix(c.Key, "runner.spec.at") || fresh && !saysItself(c.Key)
	})
	if len(said) > 1 { // the digest says no more than they do
		said = slices.DeleteFunc(said, func(c client.Change) bool { return c.Key == "runner.spec.digest" })
	}
	if !fresh && len(said) == 0 {
		return false
	}
	fmt.Printf("== %s: class %s\n   %s\n", t.Name, described(t.Class, t.Dangerous), comesTo(u, t))
	if !fresh {
		fmt.Printf("   changed since %s accepted it %s\n", d.By, Ago(d.At))
	}
	for _, c := range said {
		showChange(c.Key, c.Was, c.Is)
	}
	if d.Stays != "" {
		fmt.Println(OneLine(d.Stays))
	}
	fmt.Println()
	return true
}

// saysItself reports whether a key of a definition is the server's to say. All others are
// the same for every tool of a server.
func saysItself(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	return slices.Contains([]string{"title", "description", "parameters", "output", "annotations"}, word)
}

func showChange(key, was, is string) {
	for _, side := range [][2]string{{"-", was}, {"+", is}} {
		if side[1] != "" {
			showValue(side[0], key, side[1])
		}
	}
}

// comesTo says what a class lets happen.
func comesTo(u client.Upstream, t client.UpstreamTool) string {
	switch {
	case t.Dangerous:
		return "it says that it destroys: every call asks a person"
	case t.Class == "write":
		return "it may change things elsewhere: every call asks a person"
	case len(t.Asks) == 0:
		return "it says that it only reads: calls run without asking, as " + t.Action
	}
	text := "it says that it only reads, and asks a person at every call: " + OneLine(strings.Join(t.Asks, "; "))
	if t.Action == "comms:external" {
		reads := map[string]string{"stdio": "code:read", "http": "web:read"}[u.Kind]
		text += fmt.Sprintf("; read_action: %s of the server has what only reads decided as %s", reads, reads)
	}
	return text
}
