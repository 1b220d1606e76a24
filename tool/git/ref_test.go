package git

import "testing"

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"main": true, "topic/parser": true, "v1.2.3": true, "fix#12": true, "a+b": true, "x=1": true,
		"": false, "-f": false, "--upload-pack=x": false, "/a": false, "a/": false, "a//b": false, "a..b": false, "a.lock": false, "a.lock/b": false, ".a": false, "a/.b": false,
		"a.": false, "HEAD": false, "a b": false, "a:b": false, "+a": false, "a~1": false, "a^": false, "a@{1}": false, "a*": false, "a?": false, "a[": false, "a\\b": false, "a\x00": false, "a/-b": false,
	} {
		if _, err := checkName("branch", name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	for revision, want := range map[string]bool{
		"HEAD": true, "HEAD~2": true, "HEAD^": true, "main^2": true, "v1.2.3": true, "0123abc": true, "topic/parser~10": true, "feature2": true, "2": true,
		"": false, "-p": false, "~2": false, "^main": false, "main..topic": false, "HEAD:file": false, "HEAD@{1}": false, ":/text": false, "--output=x": false,
	} {
		if _, err := checkRevision("from", revision); (err == nil) != want {
			t.Errorf("%q: %v", revision, err)
		}
	}
}
