package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// maxAnswer bounds an envelope, so that one call does not fill a model's context many
// times over.
const maxAnswer = 1 << 20

// outputSchema is of what is not an error. That it is there keeps a result JSON for
// whoever reads it, whatever a person changed in the call.
var outputSchema = json.RawMessage(`{"type":"object","properties":{"status":{"const":"ok"},"data":{},` +
	`"pagination":{"type":"object","properties":{"total":{"type":"integer"},"offset":{"type":"integer"},"limit":{"type":"integer"}},` +
	`"required":["total","offset","limit"],"additionalProperties":false}},"required":["status","data"],"additionalProperties":false}`)

type pagination struct {
	Total  int `json:"total"`
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// ok wraps data.
func (o operation) ok(data any, a Args) (writ.Result, error) {
	envelope := map[string]any{"status": "ok", "data": data}
	if l, isList := data.(List); o.list != isList {
		return writ.Result{}, errors.New("what a list gives is a List, and nothing else does")
	} else if isList {
		envelope["data"], envelope["pagination"] = l.Items, pagination{l.Total, a.Offset, a.Limit}
	}
	content, err := wire.Marshal(envelope)
	if err == nil && len(content) > maxAnswer || writ.KindOf(err) == writ.TooLarge {
		err = tooLong(o.list)
	} else if err != nil {
		err = fmt.Errorf("write the answer: %w", errors.New(err.Error())) // an Invalid of ours is none of the caller's
	}
	return writ.Result{Content: content}, err
}

func tooLong(list bool) error {
	if list {
		return invalid("the answer would have more than %d bytes; ask for fewer with limit", maxAnswer)
	}
	return writ.Fail(writ.Conflict, fmt.Sprintf("the answer would have more than %d bytes, which is too much for one result", maxAnswer), nil)
}

// guardrail is what an admin operation lacked.
type guardrail struct{ code, why string }

func (g guardrail) Error() string { return g.code + ": " + g.why }

// unsupported is why something cannot be done here at all.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// errNotWired is of an operation that nothing does yet.
var errNotWired = errors.New("nothing does this yet")

// fault is an error as it is answered, and as it is written down.
type fault struct {
	Status    string  `json:"status"`
	Type      string  `json:"error_type"`
	Message   string  `json:"message"`
	Code      *string `json:"domain_code"`
	event     string
	guardrail string
}

func newFault(errorType, code, message, event string) fault {
	return fault{Status: "error", Type: errorType, Message: Scrub(message), Code: &code, event: event}
}

// faultOf sorts an error by what the caller can do about it. Of an error that was not
// written for callers nothing is said.
func faultOf(err error) fault {
	var g guardrail
	if errors.As(err, &g) {
		f := newFault("GuardrailViolationError", "guardrail_violated", g.Error(), GuardrailViolated)
		f.guardrail = g.code
		return f
	}
	if errors.Is(err, errNotWired) {
		return newFault("NotSupportedError", "not_supported", "this operation is not there yet in this version", NotImplemented)
	}
	var u unsupported
	if errors.As(err, &u) {
		return newFault("NotSupportedError", "not_supported", u.Error(), CapabilityGap)
	}
	kind, msg := writ.Public(err)
	switch kind {
	case writ.Invalid, writ.TooLarge:
		return newFault("ArgumentValidationError", "invalid_argument", msg, ArgumentInvalid)
	case writ.NotFound:
		return newFault("NotFoundError", "not_found", msg, InvokeFailed)
	case writ.Conflict, writ.Changed, writ.Expired, writ.Stopped:
		return newFault("ConflictError", "conflict", msg, InvokeFailed)
	case writ.Denied, writ.Unauthenticated, writ.Rejected:
		return newFault("ForbiddenError", "forbidden", msg, InvokeFailed)
	case writ.SandboxUnavailable:
		return newFault("NotSupportedError", "not_supported", msg, CapabilityGap)
	}
	return fault{Status: "error", Type: "InternalError", Message: "internal error; the operator's log has the cause", event: InvokeFailed}
}

func (f fault) result() writ.Result {
	content, err := wire.Marshal(f)
	if err != nil { // a message that is not text
		f.Message = "there is more to say than can be written"
		content, _ = wire.Marshal(f) // constants
	}
	return writ.Result{Content: content, IsError: true}
}

// secrets are what a message may repeat of what somebody wrote in the wrong place.
var secrets = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)writ_[a-z0-9]{16,}`), // a token; names have an underscore before that
		regexp.MustCompile(`(?i)(bearer|basic)\s+\S+`),
		regexp.MustCompile(`(?i)(pass(phrase|word)|secret|token|api[_-]?key)"?\s*[=:]\s*("[^"]*"|\S+)`),
		regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?`),
		regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), // a signed token of an issuer
	}
})

// Scrub takes out of a message what looks like a secret.
func Scrub(message string) string {
	for _, re := range secrets() {
		message = re.ReplaceAllString(message, "[removed]")
	}
	return message
}
