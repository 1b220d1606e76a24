package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func template(uri string) Template {
	fits, _ := matcher(uri)
	return Template{URI: uri, fits: fits}
}

func TestFits(t *testing.T) {
	for uri, want := range map[string]bool{
		"test://template/123/data":  true,
		"test://template//data":     true,
		"test://template/1/2/data":  false, // one segment is one segment
		"test://template/123/other": false,
		"other://template/123/data": false,
	} {
		if got := template("test://template/{id}/data").Fits(uri); got != want {
			t.Errorf("%s fits: %v", uri, got)
		}
	}
	if template("test://{").Fits("test://{") {
		t.Error("a template that does not read fits something")
	}
}

// A template that is too much work to match, or that the library panics over, is left out
// when it is read; those beside it stay.
func TestTemplatesAreBounded(t *testing.T) {
	var o Offer
	var raw []json.RawMessage
	for _, uri := range []string{"a://{id}", "b://{" + strings.Repeat("a,", 1100) + "a}", strings.Repeat("{a}", mostVariables+1), "c://{", "d://{" + strings.Repeat("a,", mostVariables-1) + "a}"} {
		raw = append(raw, json.RawMessage(fmt.Sprintf(`{"uriTemplate":%q,"name":"t"}`, uri)))
	}
	o.resources(raw, "resource template", "uriTemplate", &o.Templates)
	if len(o.Templates) != 2 || !o.Templates[0].Fits("a://1") || !o.Templates[1].Fits("d://1,2,3") || len(o.Refused) != 3 {
		t.Errorf("%d are taken, and refused are %v", len(o.Templates), o.Refused)
	}
}
