package notify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ/display"
)

// The shape of an incoming webhook of Slack, which others take as well. What agents and
// servers chose stands in plain_text, which Slack reads no links, mentions or formatting
// in; & < > are escaped everywhere, without which nothing is a link or a mention in any
// reader of this shape.
type slackMessage struct {
	Text   string       `json:"text"` // what a notification shows
	Blocks []slackBlock `json:"blocks"`
	Unfurl bool         `json:"unfurl_links"`
	Media  bool         `json:"unfurl_media"`
}

type slackBlock struct {
	Type   string      `json:"type"`
	Text   *slackText  `json:"text,omitempty"`
	Fields []slackText `json:"fields,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Slack makes links of what looks like one, unless told not to; plain text takes no word on it.
	Verbatim *bool `json:"verbatim,omitempty"`
}

// widest is how much of a name is shown; Slack takes 2000 characters of a field.
const widest = 150

var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// shown is what somebody else wrote, on one line, visible and bounded.
func shown(s string) string { return display.Preview(s, widest) }

func mrkdwn(s string) *slackText {
	verbatim := true
	return &slackText{Type: "mrkdwn", Text: s, Verbatim: &verbatim}
}

func plainText(label, s string) slackText {
	return slackText{Type: "plain_text", Text: label + "\n" + slackEscape.Replace(shown(s))}
}

// slack is the message for people in a channel.
func (m Message) slack() ([]byte, error) {
	out := slackMessage{Text: "writ: " + slackEscape.Replace(m.said())}
	title := slackBlock{Type: "section", Text: &slackText{Type: "plain_text", Text: "writ: " + strings.ReplaceAll(strings.TrimPrefix(m.Event, "tool_invocation_"), "_", " ")}}
	facts := slackBlock{Type: "section"}
	for _, f := range [][2]string{{"Agent", m.Agent}, {"Tool", m.Tool}, {"Call", m.Invocation}, {"Until", m.Expires}, {"By", m.Person}} {
		if f[1] != "" {
			facts.Fields = append(facts.Fields, plainText(f[0], f[1]))
		}
	}
	where := mrkdwn("`" + slackEscape.Replace(shown(m.Answer)) + "`")
	if m.Link != "" {
		where.Text = fmt.Sprintf("<%s|Look at it> or %s", slackEscape.Replace(m.Link), where.Text)
	}
	out.Blocks = []slackBlock{title}
	if len(facts.Fields) > 0 {
		out.Blocks = append(out.Blocks, facts)
	}
	if m.Answer != "" {
		out.Blocks = append(out.Blocks, slackBlock{Type: "section", Text: where})
	}
	return json.Marshal(out)
}

// said is the message in one sentence.
func (m Message) said() string {
	switch m.Event {
	case asks:
		return fmt.Sprintf("agent %s asks to call %s (%s)", shown(m.Agent), shown(m.Tool), shown(m.Answer))
	case test:
		return "this is a test; nothing has happened"
	}
	return fmt.Sprintf("%s: agent %s, %s (%s)", m.Event, shown(m.Agent), shown(m.Tool), shown(m.Answer))
}
