package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

// malformed is a request that no door takes, and exactly what it says about it.
type malformed struct {
	door   door
	token  string
	method string
	target string
	header []string
	body   string

	status int
	kind   writ.Kind
	detail string
}

const (
	noToken    = "send the agent's token as Authorization: Bearer …; with the CLI, set WRIT_TOKEN"
	badToken   = "the token is unknown or revoked; 'writ agent token NAME' makes one"
	badType    = "send the body as Content-Type: application/json"
	badCursor  = "the cursor is not one that this list gave; leave it out to begin again"
	badPass    = "wrong name or passphrase"
	getBody    = "a GET has no body; leave it out"
	limitRange = "limit is a whole number from 1 to 1000"
	waitRange  = "wait is a whole number from 0 to 300"
	afterRange = "after is a whole number from 0 to 9007199254740992"
	pages      = "this path takes limit, cursor"
)

func rows() []malformed {
	const coder, op, no = "coder", "", ""
	const A, O = agentDoor, operatorDoor
	const bad, find, auth = writ.Invalid, writ.NotFound, writ.Unauthenticated
	plain := []string{"Content-Type: text/plain"}
	auths := func(v string) []string { return []string{"Authorization: " + v} }
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	calls := func(body, detail string) malformed {
		return malformed{A, coder, "POST", "/v1/calls", nil, body, 400, bad, detail}
	}
	query := func(target, detail string) malformed {
		return malformed{A, coder, "GET", target, nil, "", 400, bad, detail}
	}
	return []malformed{
		// Who.
		{A, no, "GET", "/v1/tools", nil, "", 401, auth, noToken},
		{A, no, "GET", "/v1/tools", auths("Bearer"), "", 401, auth, noToken},
		{A, no, "GET", "/v1/tools", auths("Bearer "), "", 401, auth, noToken},
		{A, no, "GET", "/v1/tools", auths("Basic Y29kZXI6eA=="), "", 401, auth, noToken},
		{A, no, "GET", "/v1/tools", auths("coder"), "", 401, auth, noToken},
		{A, "writ_nonsense", "GET", "/v1/tools", nil, "", 401, auth, badToken},
		{A, "coder ", "GET", "/v1/tools", nil, "", 401, auth, badToken},
		{O, "writ_nonsense", "GET", "/v1/tools", nil, "", 401, auth, badToken},
		{O, op, "POST", "/v1/calls", nil, `{"tool":"stat"}`, 401, auth, noToken},
		{O, op, "POST", "/v1/sessions", nil, `{}`, 401, auth, noToken},
		{O, op, "POST", "/v1/delegations", nil, `{"name":"x","lasts_seconds":1}`, 401, auth, noToken},
		// How the body is sent.
		{A, coder, "POST", "/v1/calls", plain, `{"tool":"stat"}`, 400, bad, badType},
		{A, coder, "POST", "/v1/calls", []string{"Content-Type: "}, `{"tool":"stat"}`, 400, bad, badType},
		{A, coder, "POST", "/v1/calls", []string{"Content-Type: application/jsonp"}, `{"tool":"stat"}`, 400, bad, badType},
		{A, coder, "POST", "/v1/calls", []string{"Content-Type: application/x-www-form-urlencoded"}, "tool=stat", 400, bad, badType},
		{A, coder, "POST", "/v1/calls", []string{"Content-Type: multipart/form-data; boundary=x"}, "--x--", 400, bad, badType},
		{A, coder, "POST", "/v1/calls", []string{"Content-Type: application/json; ;"}, "{}", 400, bad, badType},
		{A, coder, "POST", "/v1/calls", nil, "", 400, bad, badType},
		{A, coder, "POST", "/v1/sessions/x/end", plain, "x", 400, bad, badType},
		{A, coder, "GET", "/v1/tools", nil, "{}", 400, bad, getBody},
		{O, op, "GET", "/v1/approvals/call_x", nil, `{"approve":true}`, 400, bad, getBody},
		{O, op, "DELETE", "/v1/tokens/x", nil, `{"by":1}`, 400, bad, `JSON: unknown field "by" at byte 1 (pointer "/by"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/shutdown", nil, `{"now":true}`, 400, bad, `JSON: unknown field "now" at byte 1 (pointer "/now"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/shutdown", nil, `[]`, 400, bad, `JSON: the value is not an object at byte 0; send an object`},
		// Strict JSON.
		calls(`{`, `JSON: the input ends too early at byte 1; write a key in double quotes here`),
		calls(`null`, `JSON: the value is not an object at byte 0; send an object`),
		calls(`[]`, `JSON: the value is not an object at byte 0; send an object`),
		calls(`"stat"`, `JSON: the value is not an object at byte 0; send an object`),
		calls(`{"tool":"stat"} {"tool":"stat"}`, `JSON: data after the value at byte 16; send exactly one value`),
		calls(`{"tool":"stat",}`, `JSON: unexpected '}' at byte 15; write a key in double quotes here`),
		calls(`{'tool':'stat'}`, "JSON: unexpected '\\'' at byte 1; write a key in double quotes here"),
		calls(`{"tool":"stat"/**/}`, `JSON: unexpected '/' at byte 14; write a comma or a closing brace here`),
		calls("\ufeff"+`{"tool":"stat"}`, `JSON: byte order mark at byte 0; send UTF-8 without one`),
		calls(`{"tool":"stat","tool":"delete_file"}`, `JSON: duplicate key "tool" at byte 15 (pointer "/tool"); give each key once`),
		calls(`{"tool":"stat","args":{"path":".","path":"/etc"}}`, `JSON: duplicate key "path" at byte 34 (pointer "/args/path"); give each key once`),
		calls(`{"tool":"stat","args":{"path":".","p\u0061th":"/etc"}}`, `JSON: duplicate key "path" at byte 34 (pointer "/args/path"); give each key once`),
		calls(`{"Tool":"stat"}`, `JSON: unknown field "Tool" at byte 1 (pointer "/Tool"); remove it or spell it exactly as documented`),
		calls(`{"TOOL":"stat","tool":"stat"}`, `JSON: unknown field "TOOL" at byte 1 (pointer "/TOOL"); remove it or spell it exactly as documented`),
		calls(`{"tool":"stat","args":{"n":NaN}}`, `JSON: unexpected 'N' at byte 27; write a JSON value here`),
		calls(`{"tool":"stat","args":{"n":Infinity}}`, `JSON: unexpected 'I' at byte 27; write a JSON value here`),
		calls(`{"tool":"stat","args":{"n":01}}`, `JSON: number with a leading zero at byte 27; leave the zero out`),
		calls(`{"tool":"stat","args":{"n":1e999}}`, `JSON: number outside the range of a 64-bit float at byte 27; send it as a string`),
		calls(`{"tool":"stat","args":{"n":9007199254740993}}`, `JSON: number that a 64-bit float does not keep at byte 27; send it as a string`),
		calls(`{"tool":"stat","args":{"path":"\ud800"}}`, `JSON: lone surrogate at byte 31; write both halves of the pair, the high one first`),
		calls(`{"tool":"stat","args":{"path":"`+"\xff\xfe"+`"}}`, `JSON: invalid UTF-8 at byte 31; encode the text as UTF-8`),
		calls(`{"tool":"stat","args":{"path":"`+"\x00"+`"}}`, "JSON: control character in a string at byte 31; write it as \\u0000"),
		calls(`{"tool":"stat","args":`+deep+`}`, `JSON: more than 64 levels of nesting at byte 337; nest less deeply`),
		{A, coder, "POST", "/v1/calls", nil, `{"tool":"wait","args":[` + strings.Repeat("0,", 1<<18) + `0]}`, 413, writ.TooLarge, `JSON: more than 262144 values at byte 524305; send less`},
		// What the body says.
		calls(`{}`, `JSON: field "tool" is missing; send it`),
		calls(`{"tool":null}`, `JSON: field "tool" is missing; send it`),
		calls(`{"tool":7}`, `JSON: field "tool", before byte 9, cannot be this number; send a string`),
		calls(`{"tool":["stat"]}`, `JSON: field "tool", before byte 9, cannot be this array; send a string`),
		calls(`{"tool":"stat","agent":"other"}`, `JSON: unknown field "agent" at byte 15 (pointer "/agent"); remove it or spell it exactly as documented`),
		calls(`{"tool":"stat","agent_id":"other"}`, `JSON: unknown field "agent_id" at byte 15 (pointer "/agent_id"); remove it or spell it exactly as documented`),
		calls(`{"tool":"stat","approval":"call_x"}`, `JSON: unknown field "approval" at byte 15 (pointer "/approval"); remove it or spell it exactly as documented`),
		calls(`{"tool":"stat","args":"{}"}`, `arguments: the value is not an object at byte 0; send an object`),
		calls(`{"tool":"stat","args":null}`, `arguments: the value is not an object at byte 0; send an object`),
		calls(`{"tool":"stat","args":[]}`, `arguments: the value is not an object at byte 0; send an object`),
		calls(`{"tool":"stat","args":{"agent_id":"other","path":"."}}`, `stat: unknown argument "agent_id"; it takes path`),
		calls(`{"tool":"stat","args":{}}`, `stat: argument "path" is missing; it takes path`),
		calls(`{"tool":"stat","args":{"path":7}}`, `stat: argument "path": want a string, not a number`),
		calls(`{"tool":"wait","args":{"n":"x"}}`, `wait: argument "n": want an integer, not a string`),
		calls(`{"tool":"wait","args":{"n":1.5}}`, `wait: argument "n": want an integer, not a fraction`),
		calls(`{"tool":"stat","task":"a\nb"}`, `task: use at most 128 printable ASCII characters`),
		calls(`{"tool":"stat","task":"`+strings.Repeat("x", 129)+`"}`, `task: use at most 128 printable ASCII characters`),
		{A, coder, "POST", "/v1/calls", nil, `{"tool":""}`, 404, find, `there is no tool ""`},
		{A, coder, "POST", "/v1/calls", nil, `{"tool":"stats"}`, 404, find, `there is no tool "stats"; did you mean stat?`},
		{A, coder, "POST", "/v1/calls", nil, `{"tool":"stat","session":"ses_x"}`, 404, find, `there is no such open session of this token; open one with: writ session start`},
		{A, coder, "POST", "/v1/calls", nil, `{"tool":"stat","task":"task_x"}`, 404, find, `there is no such open task in this session; open one with: writ task start NAME`},
		// Queries.
		query("/v1/tools?x=1", `unknown query parameter "x"; `+pages),
		query("/v1/tools?Limit=1", `unknown query parameter "Limit"; `+pages),
		query("/v1/tools?limit=1&limit=2", `limit is given twice in the query; give it once`),
		query("/v1/tools?limit=0", limitRange),
		query("/v1/tools?limit=1001", limitRange),
		query("/v1/tools?limit=-1", limitRange),
		query("/v1/tools?limit=1e2", limitRange),
		query("/v1/tools?limit=%201", limitRange),
		query("/v1/tools?limit=01", limitRange),
		query("/v1/tools?limit=", limitRange),
		query("/v1/tools?limit=99999999999999999999", limitRange),
		query("/v1/tools?cursor=", badCursor),
		query("/v1/tools?cursor=%3D", badCursor),
		query("/v1/tools?cursor=WyJ0b29scyJd", badCursor),               // ["tools"]
		query("/v1/tools?cursor=WyJhZ2VudHMiLCJ4Il0", badCursor),        // ["agents","x"]
		query("/v1/tools?cursor=WyJ0b29scyIsIngiXQ==", badCursor),       // padded
		query("/v1/tools?cursor=IFsidG9vbHMiLCJ4Il0", badCursor),        // with a space
		query("/v1/sessions?cursor=WyJ0YXNrcyIsIngiLCJ5Il0", badCursor), // of tasks
		query("/v1/tools?cursor="+strings.Repeat("A", 5000), badCursor),
		query("/v1/tools/stat?limit=1", `unknown query parameter "limit"; this path takes none`),
		query("/v1/health?x", `unknown query parameter "x"; this path takes none`),
		query("/v1/tools?a;b", `the query does not read; escape it as a URL demands`),
		query("/v1/tools?limit=%zz", `the query does not read; escape it as a URL demands`),
		query("/v1/tools?access_token=x", `unknown query parameter "access_token"; `+pages),
		query("/v1/approvals?state=Pending", `state: "Pending" is none of pending, approved, used, rejected, expired, void`),
		query("/v1/approvals?state=", `state: "" is none of pending, approved, used, rejected, expired, void`),
		query("/v1/events?after=-1", afterRange),
		query("/v1/events?after=x", afterRange),
		{A, coder, "GET", "/v1/events", []string{"Last-Event-ID: x"}, "", 400, bad, "Last-Event-ID is the id of an event of this stream: a whole number"},
		{A, coder, "POST", "/v1/calls?wait=x", nil, `{"tool":"stat"}`, 400, bad, waitRange},
		{A, coder, "POST", "/v1/calls?wait=301", nil, `{"tool":"stat"}`, 400, bad, waitRange},
		{A, coder, "POST", "/v1/calls?wait=-1", nil, `{"tool":"stat"}`, 400, bad, waitRange},
		{A, coder, "POST", "/v1/calls?wait=1.5", nil, `{"tool":"stat"}`, 400, bad, waitRange},
		{A, coder, "POST", "/v1/calls?patience=1", nil, `{"tool":"stat"}`, 400, bad, `unknown query parameter "patience"; this path takes wait`},
		{O, op, "GET", "/v1/ledger?after=1&cursor=WyJsZWRnZXIiLCJiYWNrIiwiMyJd", nil, "", 400, bad, "after and cursor are both given; the cursor holds the place, leave after out"},
		{O, op, "GET", "/v1/ledger?cursor=WyJsZWRnZXIiLCJ1cCIsIjMiXQ", nil, "", 400, bad, badCursor},
		{O, op, "GET", "/v1/ledger?cursor=WyJsZWRnZXIiLCJiYWNrIiwieCJd", nil, "", 400, bad, badCursor},
		{O, op, "GET", "/v1/ledger/verify?head=abc", nil, "", 400, bad, "head: a digest has 64 hexadecimal digits, not 3"},
		// Batches, sessions, tasks, delegations.
		{A, coder, "POST", "/v1/batches", nil, `{}`, 400, bad, `JSON: field "calls" is missing; send it`},
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[]}`, 400, bad, "a batch has at least one call"},
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[` + strings.Repeat(`{"tool":"x"},`, 128) + `{"tool":"x"}]}`, 413, writ.TooLarge, "a batch has at most 128 calls, not 129; send several"},
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[{"tool":"x"}],"order":"random"}`, 400, bad, `order: "random" is none of in_order, concurrent`},
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[{"tool":"x"}],"max_concurrency":-1}`, 400, bad, "max_concurrency is at least 1; leave it out for no bound"},
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[{"tool":"x","session":"y"}]}`, 400, bad, `JSON: unknown field "session" at byte 22 (pointer "/calls/0/session"); remove it or spell it exactly as documented`},
		{A, coder, "POST", "/v1/sessions", nil, `{"name":"` + strings.Repeat("x", 129) + `"}`, 400, bad, "name: use at most 128 printable ASCII characters"},
		{A, coder, "POST", "/v1/sessions", nil, `{"id":"ses_mine"}`, 400, bad, `JSON: unknown field "id" at byte 1 (pointer "/id"); remove it or spell it exactly as documented`},
		{A, coder, "GET", "/v1/sessions/ses_x", nil, "", 404, find, `there is no session "ses_x"; 'writ session list' shows them`},
		{A, coder, "POST", "/v1/sessions/ses_x/end", nil, "", 404, find, `there is no open session "ses_x"; 'writ session list' shows them`},
		{A, coder, "POST", "/v1/tasks", nil, `{"name":""}`, 400, bad, "a task has a name that does not begin with task_; give one"},
		{A, coder, "POST", "/v1/tasks", nil, `{"name":"task_x"}`, 400, bad, "a task has a name that does not begin with task_; give one"},
		{A, coder, "GET", "/v1/tasks/task_x", nil, "", 404, find, `there is no task "task_x"; 'writ task list' shows them`},
		{A, coder, "POST", "/v1/tasks/task_x/end", nil, "", 404, find, `there is no open task "task_x"; 'writ task list' shows them`},
		{O, op, "POST", "/v1/tasks/task_x/rating", nil, `{"rating":11,"by":` + by + `}`, 400, bad, "a rating is a whole number from 0 to 10"},
		{O, op, "POST", "/v1/tasks/task_x/rating", nil, `{"by":` + by + `}`, 400, bad, `JSON: field "rating" is missing; send it`},
		{O, op, "POST", "/v1/tasks/task_x/rating", nil, `{"rating":1,"by":` + by + `}`, 404, find, `there is no task "task_x"; 'writ task list' shows them`},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a/b","lasts_seconds":5}`, 400, bad, "name: use letters, digits, _ . and -, at most 32, beginning with a letter or digit"},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":0}`, 400, bad, "lasts: a delegation lasts from 1s to 24h0m0s"},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":-5}`, 400, bad, "lasts: a delegation lasts from 1s to 24h0m0s"},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":9007199254740991}`, 400, bad, "lasts: a delegation lasts from 1s to 24h0m0s"},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":5,"request":{"level":"root"}}`, 400, bad, `request: level: "root" is none of custom, sandboxed, restricted, standard, elevated`},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":5,"request":{"levle":"standard"}}`, 400, bad, `JSON: unknown field "levle" at byte 41 (pointer "/request/levle"); remove it or spell it exactly as documented`},
		{A, coder, "POST", "/v1/delegations", nil, `{"name":"a","lasts_seconds":5,"request":{"directory":"../.."}}`, 400, bad, `the request does not hold: request: directory: "../.." is not a directory inside the workspace`},
		{A, coder, "POST", "/v1/delegations/coder/end", nil, "", 404, find, `there is no delegated agent "coder"; 'writ agent tree' shows them`},
		{A, coder, "GET", "/v1/agents/other", nil, "", 404, find, `there is no agent "other"; 'writ agent list' shows them`},
		{A, coder, "GET", "/v1/tools/STAT", nil, "", 404, find, `there is no tool "STAT"; did you mean stat?`},
		{A, coder, "GET", "/v1/approvals/call_x", nil, "", 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		// Invocations, approvals and grants.
		query("/v1/invocations?state=done", `state: "done" is none of pending, running, completed, failed, rejected, expired, cancelled, unknown, denied`),
		query("/v1/invocations?cursor=WyJhcHByb3ZhbHMiLCIzIl0", badCursor),    // of approvals
		query("/v1/invocations?cursor=WyJpbnZvY2F0aW9ucyIsIngiXQ", badCursor), // ["invocations","x"]
		query("/v1/invocations?cursor=WyJpbnZvY2F0aW9ucyIsIjAiXQ", badCursor), // ["invocations","0"]
		query("/v1/grants?cursor=WyJncmFudHMiLCJ4Il0", badCursor),             // ["grants","x"]
		query("/v1/grants?state=live", `unknown query parameter "state"; this path takes limit, cursor`),
		query("/v1/invocations/call_x?wait=301", waitRange),
		query("/v1/invocations/call_x?after=1", `unknown query parameter "after"; this path takes wait`),
		query("/v1/invocations/call_x/events?after=x", afterRange),
		query("/v1/invocation-events?after=-1", afterRange),
		{O, op, "GET", "/v1/approvals/call_x/argument?page=0", nil, "", 400, bad, `page is a whole number from 1 to 1048576`},
		{O, op, "GET", "/v1/approvals/call_x/argument?page=1048577", nil, "", 400, bad, `page is a whole number from 1 to 1048576`},
		{A, coder, "GET", "/v1/invocation-events", []string{"Last-Event-ID: 1.5"}, "", 400, bad, "Last-Event-ID is the id of an event of this stream: a whole number"},
		{A, coder, "GET", "/v1/invocations/call_x", nil, "", 404, find, `there is no invocation "call_x"; 'writ invocation list' shows them`},
		{A, coder, "GET", "/v1/invocations/call_x/events", nil, "", 404, find, `there is no invocation "call_x"; 'writ invocation list' shows them`},
		{A, coder, "GET", "/v1/invocations/'%20OR%20'1'='1", nil, "", 404, find, `there is no invocation "' OR '1'='1"; 'writ invocation list' shows them`},
		{A, coder, "POST", "/v1/invocations/call_x/cancel", nil, "", 404, find, `there is no invocation "call_x"; 'writ invocation list' shows them`},
		{A, coder, "POST", "/v1/invocations/call_x/cancel", nil, `{"reason":"x"}`, 400, bad, `JSON: unknown field "reason" at byte 1 (pointer "/reason"); remove it or spell it exactly as documented`},
		{A, coder, "POST", "/v1/invocations/call_x/cancel", plain, "x", 400, bad, badType},
		{O, op, "GET", "/v1/approvals/call_x/argument?pointer=", nil, "", 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		{A, coder, "POST", "/v1/grants/gr_x/revoke", nil, "", 404, find, `there is no such grant of this agent; GET /v1/grants lists its own`},
		{A, coder, "POST", "/v1/grants/gr_x/revoke", nil, `[]`, 400, bad, `JSON: the value is not an object at byte 0; send an object`},
		{O, op, "POST", "/v1/grants/gr_x/revoke", nil, "", 404, find, `there is no grant "gr_x" that is in force; 'writ approval grants' lists them`},
		{O, op, "POST", "/v1/grants/gr_x/revoke", nil, `{"by":1}`, 400, bad, `JSON: unknown field "by" at byte 1 (pointer "/by"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/approvals/call_x/preview", nil, `{}`, 400, bad, `JSON: field "args" is missing; send it`},
		{O, op, "POST", "/v1/approvals/call_x/preview", nil, `{"args":null}`, 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		{O, op, "POST", "/v1/approvals/call_x/preview", nil, `{"args":{},"digest":"x"}`, 400, bad, `JSON: unknown field "digest" at byte 11 (pointer "/digest"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/approvals/call_x/preview", nil, `{"args":{"a":1,"a":2}}`, 400, bad, `JSON: duplicate key "a" at byte 15 (pointer "/args/a"); give each key once`},
		{O, op, "POST", "/v1/approvals/call_x/preview", nil, `{"args":{}}`, 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		{O, op, "POST", "/v1/approvals/call_x/preview", plain, `{"args":{}}`, 400, bad, badType},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"edit":{"args":{}},"by":` + by + `}`, 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"edit":"x","by":` + by + `}`, 400, bad, `JSON: field "edit", before byte 39, cannot be this string; send an object`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"edit":{"args":{},"digest":"x","who":1},"by":` + by + `}`, 400, bad, `JSON: unknown field "who" at byte 60 (pointer "/edit/who"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"grant":{"uses":1.5,"seconds":60},"by":` + by + `}`, 400, bad, `JSON: field "grant.uses", before byte 48, cannot be this number; send a whole number of 64 bits`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"grant":{"uses":1,"seconds":60,"match":["x"]},"by":` + by + `}`, 400, bad, `JSON: field "grant.match", before byte 69, cannot be this array; send an object`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"grant":{"uses":1,"until":"never"},"by":` + by + `}`, 400, bad, `JSON: unknown field "until" at byte 47 (pointer "/grant/until"); remove it or spell it exactly as documented`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"by":` + by + `,"by":{}}`, 400, bad, `JSON: duplicate key "by" at byte 88 (pointer "/by"); give each key once`},
		{O, op, "POST", "/v1/invocations/call_x/resolution", nil, `{"by":` + by + `}`, 400, bad, `JSON: field "happened" is missing; send it`},
		{O, op, "POST", "/v1/invocations/call_x/resolution", nil, `{"happened":"maybe","by":` + by + `}`, 400, bad, `happened: "maybe" is none of yes, no, partly`},
		{O, op, "POST", "/v1/invocations/call_x/resolution", nil, `{"happened":true,"by":` + by + `}`, 400, bad, `JSON: field "happened", before byte 16, cannot be this bool; send a string`},
		{O, op, "POST", "/v1/invocations/call_x/resolution", nil, `{"happened":"yes"}`, 400, bad, `JSON: field "by" is missing; send it`},
		{O, op, "POST", "/v1/invocations/call_x/resolution", nil, `{"happened":"yes","by":` + by + `}`, 404, find, `there is no invocation "call_x"; 'writ invocation list' shows them`},
		// Keys and costs.
		calls(`{"tool":"stat","args":{"path":"."},"idempotency_key":7}`, `JSON: field "idempotency_key", before byte 54, cannot be this number; send a string`),
		calls(`{"tool":"stat","args":{"path":"."},"idempotency_key":"a\nb"}`, `the idempotency key: use at most 128 printable ASCII characters`),
		calls(`{"tool":"stat","args":{"path":"."},"idempotency_key":"`+strings.Repeat("k", 10<<10)+`"}`, `the idempotency key: use at most 128 printable ASCII characters`),
		calls(`{"tool":"stat","args":{"path":"."},"cost_estimate":"free"}`, `JSON: field "cost_estimate", before byte 57, cannot be this string; send a number`),
		{A, coder, "POST", "/v1/batches", nil, `{"calls":[{"tool":"stat","idempotency_key":"k"}]}`, 400, bad, `JSON: unknown field "idempotency_key" at byte 25 (pointer "/calls/0/idempotency_key"); remove it or spell it exactly as documented`},
		// Waivers and people.
		{O, op, "POST", "/v1/tools/wait/waiver", nil, `{"by":` + by + `}`, 400, bad, `JSON: field "reason" is missing; send it`},
		{O, op, "POST", "/v1/tools/send/waiver", nil, `{"egress_class":"none","reason":"x","digest":"x","by":` + by + `}`, 409, writ.Changed, `the definition of send is not the one that was shown; look again: writ tool show send`},
		{O, op, "POST", "/v1/tools/nothing/waiver", nil, `{"egress_class":"none","reason":"x","digest":"x","by":` + by + `}`, 404, find, `there is no tool "nothing"`},
		{O, op, "DELETE", "/v1/tools/send/waiver", nil, "", 404, find, `tool "send" has no waiver; 'writ tool waivers' lists them`},
		{O, op, "POST", "/v1/people", nil, `{"person":{"name":"bob"},"by":` + by + `}`, 400, bad, `there is no role ""; there are viewer, approver, operator, admin`},
		{O, op, "POST", "/v1/people", nil, `{"person":{"name":"bob","role":"king","passphrase":"long enough"},"by":` + by + `}`, 400, bad, `there is no role "king"; there are viewer, approver, operator, admin`},
		{O, op, "POST", "/v1/people", nil, `{"person":{"name":"b/b","role":"viewer","passphrase":"long enough"},"by":` + by + `}`, 400, bad, `a person's name has letters, digits, _ . and -, at most 64`},
		{O, op, "POST", "/v1/people", nil, `{"person":{"name":"bob","role":"viewer","passphrase":"short"},"by":` + by + `}`, 400, bad, `the passphrase is too short; use at least 8 characters`},
		{O, op, "POST", "/v1/people/bob/role", nil, `{"role":"viewer"}`, 400, bad, `JSON: field "by" is missing; send it`},
		{O, op, "POST", "/v1/people/bob/role", nil, `{"role":"viewer","by":` + by + `}`, 404, find, `there is no person "bob"; 'writ person list' shows who there is`},
		{O, op, "POST", "/v1/people/bob/passphrase", nil, `{"by":` + by + `}`, 400, bad, `JSON: field "passphrase" is missing; send it`},
		{O, op, "POST", "/v1/people/bob/passphrase", nil, `{"passphrase":"long enough","by":` + by + `}`, 404, find, `there is no person "bob"; 'writ person list' shows who there is`},
		// The operator's.
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","by":` + by + `}`, 400, bad, `JSON: field "approve" is missing; send it`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":"true","by":` + by + `}`, 400, bad, `JSON: field "approve", before byte 30, cannot be this string; send true or false`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":1,"by":` + by + `}`, 400, bad, `JSON: field "approve", before byte 25, cannot be this number; send true or false`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"by":"alice"}`, 400, bad, `JSON: field "by", before byte 41, cannot be this string; send an object`},
		{O, op, "POST", "/v1/approvals/call_x/decision", nil, `{"digest":"x","approve":true,"by":` + by + `}`, 404, find, `there is no request "call_x"; 'writ approval list' shows those that wait`},
		{O, op, "POST", "/v1/agents/nobody/tokens", nil, `{"by":` + by + `}`, 404, find, `there is no agent "nobody"; agents are in the configuration`},
		{O, op, "POST", "/v1/agents/coder/tokens", nil, `{}`, 400, bad, `JSON: field "by" is missing; send it`},
		{O, op, "DELETE", "/v1/tokens/tok_x", nil, "", 404, find, `there is no good token "tok_x"; 'writ agent show' lists them`},
		{O, op, "GET", "/v1/sandboxes/box_x", nil, ``, 404, find, `there is no sandbox "box_x"; 'writ sandbox list' shows those there are, and with --ended those there were`},
		{O, op, "POST", "/v1/sandboxes/box_x/kill", nil, ``, 404, find, `there is no sandbox "box_x"; 'writ sandbox list' shows those there are, and with --ended those there were`},
		{O, op, "POST", "/v1/stops", nil, `{"reason":"x"}`, 400, bad, `JSON: field "agent" is missing; send it`},
		{O, op, "POST", "/v1/stops", nil, `{"agent":"nobody"}`, 404, find, `there is no agent "nobody"; agents are in the configuration`},
		{O, op, "POST", "/v1/stops/coder/lift", nil, `{"by":` + by + `}`, 404, find, `there is no stop of "coder" by that name; stops are lifted as they were set, by agent or with --all`},
		{O, op, "POST", "/v1/people", nil, `{"by":{"name":"bob","passphrase":"another long one"}}`, 409, writ.Conflict, "the first person is there already; an admin adds others with 'writ person add NAME ROLE'"},
		{O, op, "POST", "/v1/explain", nil, `{"agent":"nobody","tool":"stat"}`, 404, find, `there is no agent "nobody"; agents are in the configuration`},
		{O, op, "GET", "/v1/ledger/calls/call_x", nil, "", 404, find, "the ledger has nothing about such a call; 'writ ledger tail' shows ids"},
		{O, op, "GET", "/v1/tools/stat/diff", nil, "", 404, find, "tool stat is part of the program; only definitions from files are accepted"},
		{O, op, "POST", "/v1/tools/count_words/accept", nil, `{"digest":"x","by":` + by + `}`, 409, writ.Changed, "the definition of count_words is not the one that was shown; 'writ config reload', then look again: writ tool diff count_words"},
		{O, op, "POST", "/v1/stops/coder/lift", nil, `{"by":{"passphrase":"nonsense nonsense"}}`, 401, auth, badPass},
	}
}

func TestMalformed(t *testing.T) {
	w := newWorld(t)
	all := rows()
	if len(all) < 190 {
		t.Errorf("%d rows", len(all))
	}
	for i, r := range all {
		w.t = t
		a := ask{r.door, r.token, r.method, r.target, r.header, r.body}
		got := w.ask(a)
		if got.status != r.status || got.problem.Kind != r.kind || got.problem.Detail != r.detail {
			t.Errorf("row %d: %s %s %.90q\n got %d %s %q\nwant %d %s %q", i, r.method, r.target, r.body, got.status, got.problem.Kind, got.problem.Detail, r.status, r.kind, r.detail)
		}
	}
	// Control: the same door takes what is well formed.
	for _, r := range []malformed{
		{agentDoor, "coder", "POST", "/v1/calls?wait=300", []string{"Content-Type: application/json; charset=utf-8"}, ` {"args" : {"path":"."}, "tool":"stat"} `, 0, "", ""},
		{agentDoor, "coder", "GET", "/v1/tools?limit=1000", []string{"Authorization: bearer " + w.token("coder")}, "", 0, "", ""},
	} {
		if got := w.ask(ask{r.door, r.token, r.method, r.target, r.header, r.body}); got.status != http.StatusOK {
			t.Error(fmt.Sprint("control: ", got.status, got.body))
		}
	}
}
