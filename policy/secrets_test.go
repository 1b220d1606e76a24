package policy

import "testing"

// A tool names where it signs in by ssh, and is lent nothing else.
func TestSecrets(t *testing.T) {
	for text, ok := range map[string]bool{
		"ssh": true, "ssh:a.example": true, "ssh:A.example:2222": true, "ssh:192.0.2.1": true,
		"": false, "ssh:": false, "SSH": false, "token": false, "ssh:*": false, "ssh:*.example": false, "ssh:a b": false, "ssh:root@a.example": false, "ssh:a.example:0": false,
	} {
		err := CheckSecret(text)
		if (err == nil) != ok || (Policy{Secrets: []string{text}}.Validate() == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, tt := range []struct {
		secrets []string
		at      string
		want    bool
	}{
		{[]string{"ssh"}, "a.example:22", true},
		{[]string{"ssh:A.example"}, "a.example:22", true},
		{[]string{"ssh:b.example", "ssh:a.example:2222"}, "a.example:2222", true},
		{[]string{"ssh:a.example"}, "a.example:2222", false},
		{[]string{"ssh:a.example"}, "b.example:22", false},
		{nil, "a.example:22", false},
	} {
		if got := (Policy{Secrets: tt.secrets}).SignsIn(tt.at); got != tt.want {
			t.Errorf("%v at %s: %v", tt.secrets, tt.at, got)
		}
	}
}
