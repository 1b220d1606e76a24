package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
)

const (
	maxQuota  = 1_000_000
	maxWindow = 366 * 24 * time.Hour
)

// ParseQuotas reads max_invocations: "5/task", "100/24h", or several with commas
// between. The scopes are session, task, and a length of time up to a year.
func ParseQuotas(text string) ([]writ.Quota, error) {
	var out []writ.Quota
	for part := range strings.SplitSeq(text, ",") {
		q, err := parseQuota(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}

// ParseRate reads rate, which is a quota over time: "10/1m".
func ParseRate(text string) (writ.Quota, error) {
	q, err := parseQuota(strings.TrimSpace(text))
	if err != nil || q.Per != writ.PerWindow {
		err = fmt.Errorf("%q is not a rate; write a number over a time, such as 10/1m", text)
	}
	return q, err
}

func parseQuota(text string) (writ.Quota, error) {
	number, per, ok := strings.Cut(text, "/")
	if !ok {
		return writ.Quota{}, fmt.Errorf("%q is not a limit; write 5/session, 5/task or 5/24h", text)
	}
	n, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(n) != number || n < 1 || n > maxQuota {
		return writ.Quota{}, fmt.Errorf("%q: the number is a whole one from 1 to %d", text, maxQuota)
	}
	switch per {
	case "session":
		return writ.Quota{Max: n, Per: writ.PerSession}, nil
	case "task":
		return writ.Quota{Max: n, Per: writ.PerTask}, nil
	}
	window, err := parseWindow(per)
	if err != nil {
		return writ.Quota{}, fmt.Errorf("%q: %q is none of session, task and a time such as 90s, 15m, 24h or 7d, at most a year", text, per)
	}
	return writ.Quota{Max: n, Per: writ.PerWindow, Window: window}, nil
}

var errWindow = errors.New("not a time")

// parseWindow takes one number and one unit, so that a time has one spelling.
func parseWindow(s string) (time.Duration, error) {
	if s == "" {
		return 0, errWindow
	}
	unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]]
	n, err := strconv.Atoi(s[:len(s)-1])
	if !ok || err != nil || strconv.Itoa(n) != s[:len(s)-1] || n < 1 || n > int(maxWindow/unit) {
		return 0, errWindow
	}
	return time.Duration(n) * unit, nil
}

// QuotaText is a quota as it is written.
func QuotaText(q writ.Quota) string {
	if q.Per != writ.PerWindow {
		return strconv.Itoa(q.Max) + "/" + q.Per.String()
	}
	for _, u := range []struct {
		name string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if q.Window%u.is == 0 {
			return fmt.Sprintf("%d/%d%s", q.Max, q.Window/u.is, u.name)
		}
	}
	return fmt.Sprintf("%d/%ds", q.Max, q.Window/time.Second)
}
