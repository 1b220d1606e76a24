package docker

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// between is an engine's socket by way of this test, which hears of each request before the
// engine does.
func between(t *testing.T, host string, hear func(*http.Request)) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	to.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}
	to.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hear(r)
		to.ServeHTTP(w, r)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "unix://" + at
}

// A call that is stopped while the engine makes its container leaves none: the engine goes on
// making it when nobody waits.
func TestStoppedWhileMade(t *testing.T) {
	o := options(t)
	engine, err := client.New(client.WithHost(o.Host))
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var stop context.CancelFunc
	made, after := 0, time.Duration(0)
	o.Host = between(t, o.Host, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/create") && stop != nil {
			made++
			time.AfterFunc(after, stop)
		}
	})
	d, ws := driver(t, o), workspace(t)
	for _, c := range []writ.Confinement{{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}, networked(ws)} {
		sandboxtest.With(t, c, ws, func(ctx context.Context, w writ.Writ) {
			if _, err := d.Probe(ctx); err != nil {
				t.Fatal(err)
			}
			for after = 5 * time.Millisecond; after < 50*time.Millisecond; after *= 2 {
				ctx, cancel := context.WithCancel(ctx)
				stop = cancel
				if b, err := d.Start(ctx, w, shell("true", ws)); err == nil {
					b.Wait(ctx)
				}
				stop = nil
				cancel()
			}
		})
	}
	if made < 8 {
		t.Fatalf("nothing was stopped: %d containers were asked for", made)
	}
	time.Sleep(time.Second) // for the engine to have made what it was asked for
	all, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range all.Items {
		if is.Labels[labelProof] == d.proof(strings.TrimPrefix(is.Names[0], "/")) {
			t.Errorf("left is %v, %s", is.Names, is.State)
			engine.ContainerRemove(t.Context(), is.ID, client.ContainerRemoveOptions{Force: true})
		}
	}
}
