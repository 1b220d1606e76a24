package api

import (
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func listPeople(x *exchange) (any, error) {
	all, err := x.engine.People(x.r.Context())
	if err != nil {
		return nil, err
	}
	var views []client.Person
	for _, p := range all {
		views = append(views, client.Person{Name: p.Name, Role: p.Role, Created: p.Created})
	}
	return pageBy(x, "people", views, func(p client.Person) string { return p.Name })
}

func addPerson(x *exchange) (any, error) {
	in := body[client.NewPersonRequest](x)
	by := engine.Credentials(in.By)
	if in.Person == nil {
		return client.Status{Status: "added"}, x.engine.AddFirstPerson(x.r.Context(), by)
	}
	return client.Status{Status: "added"}, x.engine.AddPerson(x.r.Context(), engine.NewPerson(*in.Person), by)
}

func setRole(x *exchange) (any, error) {
	in := body[client.RoleRequest](x)
	return client.Status{Status: "changed"}, x.engine.SetRole(x.r.Context(), x.r.PathValue("name"), in.Role, engine.Credentials(in.By))
}

func setPassphrase(x *exchange) (any, error) {
	in := body[client.PassphraseRequest](x)
	return client.Status{Status: "changed"}, x.engine.SetPassphrase(x.r.Context(), x.r.PathValue("name"), in.Passphrase, engine.Credentials(in.By))
}
