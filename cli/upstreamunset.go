package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
)

// lists are the keys with several values.
func lists(u *config.Upstream) map[string]*[]string {
	return map[string]*[]string{"read": &u.Read, "write": &u.Write, "hosts": &u.Hosts, "enabled": &u.Enabled, "disabled": &u.Disabled, "cacheable": &u.Cacheable}
}

func unsettable() []string {
	return append(slices.Sorted(maps.Keys(lists(&config.Upstream{}))), "auth", "call_timeout", "connect_timeout", "dir", "env", "headers", "prefix", "read_action", "relay", "secret_env")
}

// without takes keys, or values of them, away from a server.
func without(u *config.Upstream, unset []string) error {
	for _, text := range unset {
		key, value, one := strings.Cut(text, "=")
		if !one {
			if err := clearKey(u, key); err != nil {
				return err
			}
			continue
		}
		if !dropValue(u, key, value) {
			return writ.Fail(writ.NotFound, fmt.Sprintf("--unset %s: it has no such value; '%s upstream show' says what it has", text, Self()), nil)
		}
	}
	return nil
}

func clearKey(u *config.Upstream, key string) error {
	if list, ok := lists(u)[key]; ok {
		*list = nil
		return nil
	}
	switch key {
	case "auth":
		u.Auth = config.Auth{}
	case "call_timeout":
		u.CallTimeout = 0
	case "connect_timeout":
		u.ConnectTimeout = 0
	case "dir":
		u.Dir = ""
	case "env":
		u.Env = nil
	case "headers":
		u.Headers = nil
	case "prefix":
		u.Prefix = ""
	case "read_action":
		u.ReadAction = ""
	case "relay":
		u.Relay = nil
	case "secret_env":
		u.SecretEnv = nil
	default:
		return Usagef("--unset %q: there are %s", key, strings.Join(unsettable(), ", "))
	}
	return nil
}

func dropValue(u *config.Upstream, key, value string) bool {
	if list, ok := lists(u)[key]; ok {
		n := len(*list)
		*list = slices.DeleteFunc(slices.Clone(*list), func(v string) bool {
			return v == value || (key == "read" || key == "write") && v == config.AtHome(full(value)) || key == "hosts" && v == value+":443"
		})
		return len(*list) < n
	}
	switch key {
	case "relay":
		n := len(u.Relay)
		u.Relay = slices.DeleteFunc(slices.Clone(u.Relay), func(r config.Relay) bool { return string(r) == value })
		return len(u.Relay) < n
	case "env":
		_, there := u.Env[value]
		delete(u.Env, value)
		return there
	case "headers":
		_, there := u.Headers[value]
		delete(u.Headers, value)
		return there
	case "secret_env":
		_, there := u.SecretEnv[value]
		delete(u.SecretEnv, value)
		return there
	}
	return false
}
