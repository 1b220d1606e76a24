package cli

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/writ-run/writ/secret"
)

// split reads NAME and VALUE out of flags. The error names the flag alone: the value may
// be a secret.
func split(texts []string, by, flag, form string) (map[string]string, error) {
	out := map[string]string{}
	for _, t := range texts {
		k, v, ok := strings.Cut(t, by)
		k = strings.TrimSpace(k)
		if _, twice := out[k]; !ok || k == "" || twice {
			return nil, Usagef("%s is written %s, each name once", flag, form)
		}
		if out[k] = v; by == ":" {
			out[k] = strings.TrimSpace(v)
		}
		if out[k] == "" {
			return nil, Usagef("%s %s has no value; give one, or leave it out", flag, k)
		}
	}
	return out, nil
}

// variables reads --env. A name alone is the variable as it is here.
func variables(texts []string) (map[string]string, error) {
	whole := slices.Clone(texts)
	for i, t := range whole {
		if strings.Contains(t, "=") || !secret.ValidVariable(t) {
			continue
		}
		v, ok := os.LookupEnv(t)
		if !ok {
			return nil, Usagef("--env is written NAME=VALUE, each name once, or NAME alone for a variable that is set here, which one is not; --secret-env NAME=store:NAME is for one that 'writ secret set' keeps") // it may be a value
		}
		whole[i] = t + "=" + v
	}
	return split(whole, "=", "--env", "NAME=VALUE")
}

// refs reads flags whose values are kept elsewhere.
func refs(texts []string, by, flag, form string) (map[string]secret.Ref, error) {
	values, err := split(texts, by, flag, form)
	if err != nil {
		return nil, err
	}
	out := map[string]secret.Ref{}
	for name, text := range values {
		if out[name], err = secret.ParseRef(text); err != nil {
			return nil, Usagef("%s %s: %v", flag, name, err)
		}
	}
	return out, nil
}

// meant refuses values that somebody else was to fill in: what only a shell or a client
// knows, and references, which have flags of their own. Taken as they are they would be
// sent as they are.
func meant(env, headers map[string]string) error {
	for flag, values := range map[string]map[string]string{"--env": env, "--header": headers} {
		by := map[string]string{"--env": "=", "--header": ": "}[flag]
		for _, name := range slices.Sorted(maps.Keys(values)) {
			v := values[name]
			if _, rest, found := strings.Cut(v, "${"); found {
				variable, _, _ := strings.Cut(rest, "}")
				return Usagef("%s %s has ${%s}, which nothing fills in here; let the shell do it, in double quotes, or write the value", flag, name, variable)
			}
			scheme, ref, two := strings.Cut(v, " ")
			if !two {
				ref = v
			}
			if r, err := secret.ParseRef(ref); err != nil || r.Backend == "file" && flag == "--env" && !two { // an address of a file, as databases have it
				continue
			}
			if strings.EqualFold(scheme, "Bearer") && strings.EqualFold(name, "Authorization") {
				return Usagef("--header %s would send the words %q as they are; a token that is kept elsewhere is --bearer %s", name, ref, ref)
			}
			if !two {
				return Usagef("%s %s would have the words %q as its value; one that is kept elsewhere is --secret%s '%s%s%s'", flag, name, ref, flag[1:], name, by, ref)
			}
		}
	}
	return nil
}
