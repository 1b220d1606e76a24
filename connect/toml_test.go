package connect

import (
	"fmt"
	"strings"
	"testing"
)

const table = "[mcp_servers.writ]\ncommand = \"/opt/writ\"\nargs = [\"mcp\", \"--agent\", \"coder\"]\n"

func TestTOMLAdd(t *testing.T) {
	crlf := strings.ReplaceAll("\n"+table, "\n", "\r\n")
	for _, c := range []struct{ name, before, after string }{
		{"comments and order", "# mine\nb = 1 # one\na = 2\n\n[x]\n# end\n", "# mine\nb = 1 # one\na = 2\n\n[x]\n# end\n\n" + table},
		{"empty", "", table},
		{"no last line end", "a = 1", "a = 1\n\n" + strings.TrimSuffix(table, "\n")},
		{"empty lines at the end", "a = 1\n\n\n", "a = 1\n\n\n\n" + table},
		{"one empty line", "\n", "\n\n" + table},
		{"crlf", "a = 1\r\n", "a = 1\r\n" + crlf},
		{"bom", "\xef\xbb\xbfa = 1\n", "\xef\xbb\xbfa = 1\n\n" + table},
		{"bom alone", "\xef\xbb\xbf", "\xef\xbb\xbf" + table},
		{"tabs", "\ta\t=\t1\t# x\n\t[ b ]\t\n", "\ta\t=\t1\t# x\n\t[ b ]\t\n\n" + table},
		{"tables in strings", "a = \"\"\"\n[mcp_servers.writ]\ncommand = \"x\"\n\\\"\\\"\\\" \"\"x \"\"\"\"\"\nb = '''\n[mcp_servers.writ]\n''''\n", "a = \"\"\"\n[mcp_servers.writ]\ncommand = \"x\"\n\\\"\\\"\\\" \"\"x \"\"\"\"\"\nb = '''\n[mcp_servers.writ]\n''''\n\n" + table},
		{"tables in a list", "a = [\n  # ]\n  \"[mcp_servers.writ]\",\n  [1, 2,],\n]\n", "a = [\n  # ]\n  \"[mcp_servers.writ]\",\n  [1, 2,],\n]\n\n" + table},
		{"other servers", "[mcp_servers]\na.command = \"x\"\n[mcp_servers.b]\nwrit = 1\n[x.mcp_servers.writ]\n[mcp_servers.\"writ.x\"]\n", "[mcp_servers]\na.command = \"x\"\n[mcp_servers.b]\nwrit = 1\n[x.mcp_servers.writ]\n[mcp_servers.\"writ.x\"]\n\n" + table},
		{"every kind of value", "a = 1979-05-27 07:32:00Z\nb = +1_000.5e-3\nc = inf\nd = {x = 1, y.z = [{}]}\ne = ''\nf = true\n[[g]]\n\"h\\\"\" = 0xFF\n", "a = 1979-05-27 07:32:00Z\nb = +1_000.5e-3\nc = inf\nd = {x = 1, y.z = [{}]}\ne = ''\nf = true\n[[g]]\n\"h\\\"\" = 0xFF\n\n" + table},
	} {
		t.Run(c.name, func(t *testing.T) { adds(t, TOML{}, c.before, c.after) })
	}
}

// An entry is found however it is written, changed in its place, and taken out.
func TestTOMLForms(t *testing.T) {
	const old, now = `"/old/writ"`, `"/opt/writ"`
	const olds, nows = `["mcp", "--agent", "x"]`, `["mcp", "--agent", "coder"]`
	for _, c := range []struct{ name, text, removed string }{
		{"table", "a = 1\n[mcp_servers.writ] # writ\ncommand = OLD # c\n# mine\nargs = ARGS\n\n# of z\n[z]\n", "a = 1\n\n# of z\n[z]\n"},
		{"quoted", "[\"mcp_servers\" . 'writ']\nargs=ARGS\ncommand=OLD\n[z]\n", "[z]\n"},
		{"escaped", "[\"mcp\\u005fservers\".\"wr\\U00000069t\"]\n\"comm\\u0061nd\" = OLD\nargs = ARGS\n", ""},
		{"with tables below", "[mcp_servers.writ.env]\nA = \"b\"\n\n[z]\ny = 1\n\n[mcp_servers.writ]\ncommand = OLD\nargs = ARGS\n\n[mcp_servers.writ.tools.x]\nq = 1\n\n[zz]\n", "\n[z]\ny = 1\n\n[zz]\n"},
		{"below and without a last line end", "[z]\n\n[mcp_servers.writ]\ncommand = OLD\nargs = ARGS\n\n[mcp_servers.writ.env]\nA = \"b\"", "[z]"},
		{"with lists of tables", "[[mcp_servers.writ.x]]\na = 1\n[mcp_servers.writ]\ncommand = OLD\nargs = ARGS\n[[mcp_servers.writ.y]]\n[[mcp_servers.writ.y]]\n[z]\n", "[z]\n"},
		{"inline", "[mcp_servers]\na = {command = \"x\"}\nwrit = { command = OLD, args = ARGS } # x\nb.command = \"y\"\n", "[mcp_servers]\na = {command = \"x\"}\nb.command = \"y\"\n"},
		{"inline at the root", "mcp_servers.writ = {args = ARGS, command = OLD}\nz = 1\n", "z = 1\n"},
		{"dotted", "[mcp_servers]\nwrit.command = OLD\n# stays\nwrit . args = ARGS\nb.command = \"y\"\n", "[mcp_servers]\n# stays\nb.command = \"y\"\n"},
		{"dotted at the root", "mcp_servers.writ.command = OLD\nmcp_servers.writ.args = ARGS\nz = 1\n", "z = 1\n"},
		{"crlf", "a = 1\r\n\r\n[mcp_servers.writ]\r\ncommand = OLD\r\nargs = ARGS\r\n\r\n[z]\r\n", "a = 1\r\n\r\n[z]\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := strings.NewReplacer("OLD", old, "ARGS", olds).Replace(c.text)
			after := strings.NewReplacer("OLD", now, "ARGS", nows).Replace(c.text)
			got, err := Connect(TOML{}, []byte(before), coder, false)
			if err != nil || got.Action != Replaced || string(got.After) != after {
				t.Errorf("%s %v\n%s\nwant\n%s", got.Action, err, got.After, after)
			}
			if got, err := Connect(TOML{}, []byte(after), coder, false); err != nil || got.Action != Unchanged {
				t.Errorf("again: %s %v", got.Action, err)
			}
			if got, err := Disconnect(TOML{}, []byte(before), [][]byte{nil}, false); err != nil || string(got.After) != c.removed {
				t.Errorf("removed: %v\n%q\nwant\n%q", err, got.After, c.removed)
			}
		})
	}
}

func TestTOMLForeign(t *testing.T) {
	before := "[mcp_servers.writ]\ncommand = \"npx\"\nargs = ['mcp']\n[mcp_servers.writ.env]\nK = \"v\"\n[z]\n"
	want := "line 1 has an entry \"writ\" that is not of this program"
	if _, err := Connect(TOML{}, []byte(before), coder, false); fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
	got, err := Connect(TOML{}, []byte(before), coder, true)
	if want := "[z]\n\n" + table; err != nil || got.Action != Replaced || string(got.After) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got.After, want)
	}
	if got, err := Connect(TOML{}, []byte("[[mcp_servers.writ.command]]\n"), coder, true); err != nil || string(got.After) != table {
		t.Errorf("a list of tables below: %v\n%s", err, got.After)
	}
	http := "[mcp_servers.writ]\nurl = \"http://127.0.0.1:7323/mcp\"\nbearer_token_env_var = \"WRIT_TOKEN\"\n"
	if got, err := Connect(TOML{}, []byte(table), remote, false); err != nil || string(got.After) != http {
		t.Errorf("to http: %v\n%s", err, got.After)
	}
	if got, err := Connect(TOML{}, []byte(http), coder, false); err != nil || string(got.After) != table {
		t.Errorf("from http: %v\n%s", err, got.After)
	}
	if got, err := Connect(TOML{}, []byte(http+"startup_timeout_sec = 3\n"), remote, false); err != nil || got.Action != Unchanged || fmt.Sprint(got.Was.Also) != "[startup_timeout_sec]" {
		t.Errorf("with another key: %v %+v", err, got.Was)
	}
}

func TestTOMLRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a = 1\nmcp_servers = {a = {command = \"x\"}}\n", "line 2 has all servers in one inline table, to which no table can be added; write each as [mcp_servers.NAME], then run this again"},
		{"mcp_servers = { writ = {command = \"npx\"}, b = {} }\n", "line 1 has the entry in an inline table with others, where it cannot be edited safely; write each server as [mcp_servers.NAME], then run this again"},
		{"mcp_servers = 3\n", "line 1 has mcp_servers, which is not a table; correct it, then run this again"},
		{"[[mcp_servers]]\n", "line 1 makes mcp_servers a list of tables; it has to be a table"},
		{"a=1\n[[mcp_servers.writ]]\n", "line 2 makes mcp_servers.writ a list of tables; it has to be a table"},
		{"[mcp_servers.writ]\n[z]\n[mcp_servers.'writ']\n", "line 3 has mcp_servers.writ a second time; remove one, then run this again"},
		{"[mcp_servers.writ]\ncommand = 1\n\"command\" = 2\n", "line 3 has mcp_servers.writ.command a second time; remove one, then run this again"},
		{"a = \"x\n", "line 1 is not TOML: a string does not end on its line; correct it, then run this again"},
		{"\na = \"\"\"x\n\n", "line 2 is not TOML: a string does not end; correct it, then run this again"},
		{"a = [1, 2\nb = 1\n", "line 2 is not TOML: there is no ]; correct it, then run this again"},
		{"a 1\n", "line 1 is not TOML: there is no =; correct it, then run this again"},
		{"a =\n", "line 1 is not TOML: a value is expected; correct it, then run this again"},
		{"a = 1 b = 2\n", "line 1 is not TOML: '=' is not expected there; correct it, then run this again"},
		{"[a\n", "line 1 is not TOML: there is no ]; correct it, then run this again"},
		{"[[a]\n", "line 1 is not TOML: a header ends with ]]; correct it, then run this again"},
		{"= 1\n", "line 1 is not TOML: a key is expected; correct it, then run this again"},
		{"a = 1\r", "line 1 is not TOML: a carriage return without a line end; correct it, then run this again"},
		{"# x\ry\n", "line 1 is not TOML: a carriage return without a line end; correct it, then run this again"},
		{"\"\\q\" = 1\n", "line 1 is not TOML: \\q is no escape; correct it, then run this again"},
		{"\"\"\"a\"\"\" = 1\n", "line 1 is not TOML: a key is written on one line; correct it, then run this again"},
		{"a = " + strings.Repeat("[", 200) + "\n", "line 1 is not TOML: it is nested deeper than 100; correct it, then run this again"},
		{"a = 1\nb = '\xff'\n", "line 2 is not UTF-8; correct it, then run this again"},
	} {
		if got, err := Connect(TOML{}, []byte(c.text), coder, true); fmt.Sprint(err) != c.want {
			t.Errorf("%q\n got %v %q\nwant %s", c.text, err, got.After, c.want)
		}
	}
}

func TestTOMLStrings(t *testing.T) {
	for _, s := range []string{"", "/opt/writ", `C:\a "b"\writ.exe`, "\x00\x1b\x7f\n\t", "é😀"} {
		if got, err := tomlString(quoteTOML(s)); err != nil || got != s {
			t.Errorf("%q: %q %v", s, got, err)
		}
	}
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{"", "\n", "a = 1", "a = 1\r\n\r\n", "[mcp_servers]\na={b=[1,\n2]}\n", "x='''\n'''\n#", "\xef\xbb\xbf", "mcp_servers.b.c=\"\"\"a\\\"\"\"\"\n", "[[a]]\n[a.b]\n\t", "  "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		added, err := Connect(TOML{}, before, coder, false)
		if err != nil || added.Action != Added {
			return
		}
		if !strings.HasPrefix(string(added.After), string(before)) {
			t.Fatalf("what was there changed\n%q\n%q", before, added.After)
		}
		checkBack(t, TOML{}, before, added.After, true)
	})
}
