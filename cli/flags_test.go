package cli

import (
	"testing"
	"time"
)

func TestTimesAreWrittenAsInTheConfiguration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "24h": 24 * time.Hour, "1d": 24 * time.Hour, "7d": 168 * time.Hour, "168h": 168 * time.Hour,
		"": 0, "0": 0, "5": 0, "-1h": 0, "999ms": 0, "8d": 0, "1w": 0, "1.5d": 0, "d": 0, "7D": 0,
	} {
		l := lasting{most: 7 * 24 * time.Hour}
		if err := l.Set(text); (err == nil) != (want > 0) || l.Duration != want {
			t.Errorf("%q is %s, %v", text, l.Duration, err)
		}
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Second: "10s", 20 * time.Minute: "20m", 24 * time.Hour: "24h", 48 * time.Hour: "2d", 90 * time.Minute: "1h30m"} {
		if got := shortly(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
