package cli

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
)

// draw shows what there is. A request counts as read when its last page stands on the
// screen, and all before it stood there.
func (w *watch) draw() {
	width, height := w.screen.size()
	if w.small = width < leastWidth || height < leastHeight; w.small {
		rows := []string{"too small"}
		if w.status != "" {
			rows = append(rows, "q quits")
		}
		w.screen.show(rows)
		return
	}
	var body []string
	foot := listFoot
	switch room := height - 3; {
	case w.help:
		body, foot = clipAll(helpRows, width-1, room), "any key goes back"
	case w.open != nil:
		w.open.fit(room, width-1, w.read[w.open.request.ID] == w.open.request.Digest)
		body, foot = w.open.rows(), w.open.foot()
	default:
		body = w.table(room, width-1)
	}
	for len(body) < height-3 {
		body = append(body, "")
	}
	rows := append([]string{w.screen.paint("1", clip(w.head(), width-1))}, body...)
	rows = append(rows, w.screen.paint("33", clip(w.status, width-1)), w.screen.paint("2", clip(foot, width-1)))
	if stands := w.screen.show(rows); stands && w.open != nil && !w.help && w.open.page == w.open.pages.Count() {
		w.read[w.open.request.ID] = w.open.request.Digest
	}
}

const listFoot = "Enter show  a approve  r reject  e edit  g grant  c cancel  ? help  q quit"

var helpRows = []string{
	"up down j k   select a request; on a page: one on, one back",
	"Enter space   show the request whole; on a page: the next one",
	"q backspace   on a page: back to the list",
	"",
	"a   approve it, once, as it was shown",
	"r   reject it; asks for a reason, which the agent is told",
	"e   approve it with other arguments, in $EDITOR; what that would do is shown first",
	"g   approve it, and later calls with the same arguments; asks how many and how long",
	"c   cancel it: it is not asked about any more; takes no passphrase",
	"",
	"A request is answered only after it was read to its last page here; each answer",
	"takes a passphrase. * marks what was read.",
	"q Ctrl-C   quit",
}

func (w *watch) head() string {
	said := fmt.Sprintf("%d requests wait", len(w.waiting))
	switch {
	case w.lost != "":
		said = w.lost
	case len(w.waiting) == 0:
		said = "nothing waits"
	case len(w.waiting) == 1:
		said = "1 request waits"
	}
	return "writ approval watch: " + said
}

// table is the list as rows, the selected one in sight.
func (w *watch) table(room, width int) []string {
	rows := []string{w.screen.paint("2", clip(fmt.Sprintf("    %-12s %-12s %-16s %-18s %-9s %s", "ASKED", "EXPIRES", "AGENT", "TOOL", "RISK", "ARGUMENTS"), width))}
	from := max(0, min(w.index()-(room-1)/2, len(w.waiting)-(room-1)))
	for _, r := range w.waiting[from:min(len(w.waiting), from+room-1)] {
		row := clip(w.row(r), width)
		switch {
		case r.ID == w.selected:
			row = w.screen.paint("7", row)
		case r.Dangerous:
			row = w.screen.paint("31", row)
		}
		rows = append(rows, row)
	}
	return rows
}

func (w *watch) row(r client.Approval) string {
	at, read, risk := " ", " ", r.Risk
	if r.ID == w.selected {
		at = ">"
	}
	if w.read[r.ID] == r.Digest {
		read = "*"
	}
	if r.Dangerous {
		risk = "dangerous"
	}
	// The daemon has made the preview safe, and only the preview.
	return fmt.Sprintf("%s %s %-12s %-12s %-16s %-18s %-9s %s", at, read, Ago(r.Requested), shortUntil(r.Expires), clip(OneLine(r.Agent), 16), clip(OneLine(r.Tool), 18), risk, r.Preview)
}

// shortUntil is until in a column; nothing where a request waits for ever.
func shortUntil(at string) string {
	if strings.HasPrefix(at, "9999") {
		return ""
	}
	return until(at)
}

func clipAll(rows []string, width, most int) []string {
	var out []string
	for _, r := range rows[:min(len(rows), most)] {
		out = append(out, clip(r, width))
	}
	return out
}

// reading is a request that is shown whole, page by page.
type reading struct {
	request client.Approval
	text    string
	pages   display.Pages
	page    int // from 1; it goes one on at a time, so that none is left out

	room, width int // that the pages are for
}

func newReading(r client.Approval) (*reading, error) {
	var text strings.Builder
	err := writeRequest(&text, r, "")
	return &reading{request: r, text: strings.TrimSuffix(text.String(), "\n"), page: 1}, err
}

// fit makes pages of the size of the screen. Where that changes in the middle it
// begins again: what is on which page is another matter now.
func (r *reading) fit(room, width int, read bool) {
	if r.room == room && r.width == width {
		return
	}
	r.room, r.width = room, width
	r.pages = display.Paginate(r.text, room, width)
	if r.page = min(r.page, r.pages.Count()); !read {
		r.page = 1
	}
}

func (r *reading) rows() []string {
	return strings.Split(strings.TrimSuffix(r.pages.Page(r.page), "\n"), "\n")
}

func (r *reading) foot() string {
	if r.page < r.pages.Count() {
		return r.pages.Title(r.page) + "; space goes on, q back"
	}
	return r.pages.Title(r.page) + "; a approve  r reject  e edit  g grant  c cancel  q back"
}

func (r *reading) turn(by int) { r.page = min(max(1, r.page+by), max(1, r.pages.Count())) }
