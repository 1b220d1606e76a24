package main

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// A program of its own in each language: it gets https://HOST/ with the lab's authority,
// and prints what came or what went wrong, as the language says it.
const (
	goClient = `package main

import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os")

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	r, err := client.Get("https://" + os.Args[2] + "/")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, r.Body)
}
`
	javaClient = `import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;

public class Client {
	public static void main(String[] args) throws Exception {
		KeyStore keys = KeyStore.getInstance(KeyStore.getDefaultType());
		keys.load(null, null);
		keys.setCertificateEntry("lab", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(args[0])));
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(keys);
		SSLContext tls = SSLContext.getInstance("TLS");
		tls.init(null, trust.getTrustManagers(), null);
		HttpsURLConnection c = (HttpsURLConnection) new URL("https://" + args[1] + "/").openConnection();
		c.setSSLSocketFactory(tls.getSocketFactory());
		try { c.getInputStream().transferTo(System.out); } catch (IOException e) { System.out.println(e); System.exit(1); }
	}
}
`
	urllibClient = `
import ssl, sys, urllib.request
try: print(urllib.request.urlopen("https://" + sys.argv[2] + "/", context=ssl.create_default_context(cafile=sys.argv[1]), timeout=10).read().decode(), end="")
except Exception as e: sys.exit(str(e))`
	socketClient = `
import socket, ssl, sys
s = socket.create_connection((sys.argv[2], 443), timeout=10)
t = ssl.create_default_context(cafile=sys.argv[1]).wrap_socket(s, server_hostname=sys.argv[2])
t.sendall(b"GET / HTTP/1.0\r\nHost: " + sys.argv[2].encode() + b"\r\n\r\n")
got = b""
while True:
    b = t.recv(4096)
    if not b: break
    got += b
print(got.split(b"\r\n\r\n")[1].decode(), end="")`
	nodeClient = `fetch("https://" + process.argv[1] + "/").then(r => r.text()).then(t => process.stdout.write(t), e => { console.log(String(e.cause)); process.exit(1) })`
	perlClient = `use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 80, Timeout => 10) or die "$@\n";
print $s "GET / HTTP/1.0\r\nHost: $ARGV[0]\r\n\r\n"; my @all = <$s>; print $all[-1];`
)

// Programs that people use, as they are installed: each reaches the host that was named,
// and of another says in its own words that it is not there, while writ says why.
func TestProgramsReachHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	need.Programs(t, "curl", "git", "python3", "node", "openssl", "perl", "getent")
	w := newWorld(t, standard, "")
	ca := lab.NewAuthority(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}})
	repository := servedRepository(t)
	for _, at := range []string{lab.Public, lab.Other} {
		lab.Web(t, at+":443", ca)
		lab.Web(t, at+":80", nil)
		lab.Serve(t, at+":8443", ca, repository)
	}
	files := filepath.Join(w.home, "clients")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(files, "Client.java"), javaClient)
	w.write(filepath.Join(files, "client.go"), goClient)
	build := exec.Command("go", "build", "-o", filepath.Join(files, "client"), filepath.Join(files, "client.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const served, unknown = `^GET {HOST} at 93\.184\.216\.34:443\n$`, `^writ run: dns bad\.test: host_not_allowed \(--allow-host bad\.test would allow port 443 of it; bad\.test:PORT another\)\r\n`
	for _, c := range []struct {
		name    string
		command []string // {HOST} and {CA} are filled in
		need    string   // besides what every row needs
		reached string   // what it prints of good.test
		refused string   // and what of bad.test, on either stream
	}{
		{"curl", []string{"curl", "-sS", "--cacert", "{CA}", "https://{HOST}/"}, "", served, `curl: \(6\) Could not resolve host: bad\.test`},
		{"curl, older HTTP", []string{"curl", "-sS", "--http1.1", "--cacert", "{CA}", "https://{HOST}/"}, "", served, `curl: \(6\) Could not resolve host: bad\.test`},
		{"git clone", []string{"sh", "-c", "cd $(mktemp -d) && git -c http.sslCAInfo={CA} clone -q https://{HOST}:8443/there.git got && cat got/file"}, "", `^from the repository\n$`, `fatal: unable to access 'https://bad\.test:8443/there\.git/': Could not resolve host: bad\.test`},
		{"python sockets", []string{"python3", "-c", socketClient, "{CA}", "{HOST}"}, "", served, `socket\.gaierror: \[Errno -2\] Name or service not known`},
		{"python urllib", []string{"python3", "-c", urllibClient, "{CA}", "{HOST}"}, "", served, `<urlopen error \[Errno -2\] Name or service not known>`},
		{"node fetch", []string{"env", "NODE_EXTRA_CA_CERTS={CA}", "node", "-e", nodeClient, "{HOST}"}, "", served, `Error: getaddrinfo ENOTFOUND bad\.test`},
		{"go net/http", []string{files + "/client", "{CA}", "{HOST}"}, "", served, `Get "https://bad\.test/": dial tcp: lookup bad\.test on .*: no such host`},
		{"java", []string{"java", files + "/Client.java", "{CA}", "{HOST}"}, "java", served, `java\.net\.UnknownHostException: bad\.test`},
		{"openssl s_client", []string{"sh", "-c", `printf 'GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n' | openssl s_client -quiet -verify_return_error -CAfile {CA} -servername {HOST} -connect {HOST}:443 2>&1`}, "", `\r\n\r\nGET {HOST} at 93\.184\.216\.34:443\n$`, `Name or service not known`},
		{"perl", []string{"perl", "-e", perlClient, "{HOST}"}, "", `^GET {HOST} at 93\.184\.216\.34:80\n$`, `Bad hostname .bad\.test.`},
		{"getent", []string{"getent", "ahostsv4", "{HOST}"}, "", `^93\.184\.216\.34 +STREAM {HOST}\n`, ``},
		{"bash", []string{"bash", "-c", `exec 3<>/dev/tcp/{HOST}/80 && printf 'GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n' >&3 && tail -n 1 <&3`}, "", `^GET {HOST} at 93\.184\.216\.34:80\n$`, `bash: line 1: bad\.test: Name or service not known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.need != "" {
				need.Programs(t, c.need)
			}
			to := func(host string) outcome {
				args := []string{"--no-caches", "--read", ca.File, "--read", files,
					"--allow-host", "good.test", "--allow-host", "good.test:80", "--allow-host", "good.test:8443", "--"}
				fill := strings.NewReplacer("{HOST}", host, "{CA}", ca.File)
				for _, a := range c.command {
					args = append(args, fill.Replace(a))
				}
				return w.confines("", args...)
			}
			good := to("good.test")
			if want := strings.ReplaceAll(c.reached, "{HOST}", `good\.test`); good.code != 0 || !regexp.MustCompile(want).MatchString(good.out) || strings.Contains(good.err, "writ run:") {
				t.Errorf("to good.test: %+v\nwant %s", good, want)
			}
			bad := to("bad.test")
			if bad.code == 0 || strings.Contains(bad.out, "GET ") || !regexp.MustCompile(c.refused).MatchString(bad.out+bad.err) || !regexp.MustCompile(`(?m)`+unknown).MatchString(bad.err) {
				t.Errorf("to bad.test: %+v\nwant %s", bad, c.refused)
			}
		})
	}
}

// servedRepository is a repository by the protocol of git, as git itself serves it.
func servedRepository(t *testing.T) http.Handler {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", dir + "/here"}, {"-C", dir + "/here", "add", "file"},
		{"-C", dir + "/here", "-c", "user.name=x", "-c", "user.email=x@y.test", "commit", "-qm", "one"}, {"clone", "-q", "--bare", dir + "/here", dir + "/there.git"},
	} {
		if args[len(args)-1] == "file" {
			if err := os.WriteFile(dir+"/here/file", []byte("from the repository\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	where, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(where)), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
}
