package upstream

import "testing"

func TestFits(t *testing.T) {
	for uri, want := range map[string]bool{
		"test://template/123/data":  true,
		"test://template//data":     true,
		"test://template/1/2/data":  false, // one segment is one segment
		"test://template/123/other": false,
		"other://template/123/data": false,
	} {
		if got := Fits("test://template/{id}/data", uri); got != want {
			t.Errorf("%s fits: %v", uri, got)
		}
	}
	if Fits("test://{", "test://{") {
		t.Error("a template that does not read fits something")
	}
}
