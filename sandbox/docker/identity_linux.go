package docker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
)

// Labels of everything that this driver makes. Images can have labels as well, which their
// containers inherit: what proves that a container is ours is the last one, which binds its
// name with a key that only this deployment has.
const (
	labelManaged    = "writ.managed"
	labelDeployment = "writ.deployment"
	labelOwner      = "writ.owner"
	labelSession    = "writ.session"
	labelTask       = "writ.task"
	labelPart       = "writ.part" // sidecar, of one that is no box
	labelProof      = "writ.proof"
)

// identity is the name and the labels of a new container.
func (p *plan) identity() (name string, labels map[string]string) {
	d, c := p.driver, p.writ.Call()
	name = d.opts.Deployment + "-" + strings.ToLower(rand.Text()[:12])
	labels = maps.Clone(p.labels)
	maps.Copy(labels, map[string]string{
		labelManaged: "true", labelDeployment: d.opts.Deployment, labelProof: d.proof(name),
		labelOwner: c.Agent, labelSession: c.Session, labelTask: c.Task,
	})
	return name, labels
}

// Own has the driver tell its containers from others' by a key, which is the same after a
// restart. It is said before the first box.
func (d *Driver) Own(key []byte) { d.key = key }

// proof binds a name to this deployment.
func (d *Driver) proof(name string) string {
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil))
}
