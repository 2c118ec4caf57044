package console

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// The tree holds every line once, below the line that it says more about, and shows what hides.
func TestOutlineTree(t *testing.T) {
	o := &display.Outline{}
	for _, l := range []display.OutlineLine{
		{Kind: display.LineFinding, Mark: display.MarkAsk, Text: "danger"},
		{Kind: display.LineCommand, Mark: display.MarkAsk, Label: "| into", Text: "a\u200b<b>"},
		{Depth: 1, Kind: display.LineEffect, Mark: display.MarkRun, Text: "b"},
		{Depth: 3, Text: "c"},
		{Depth: 2, Text: "d"},
		{Depth: 1, Text: "e", Mark: display.MarkDeny},
		{Text: "f", Note: "g"},
	} {
		o.Add(l)
	}
	var b strings.Builder
	items := outlineOf((&approval.Record{Request: &approval.Details{Outline: o, Variables: []string{"B", "A C"}}}).View())
	if err := templates().ExecuteTemplate(&b, "outline", items); err != nil {
		t.Fatal(err)
	}
	want := `<ul><li class="danger ask"><b class="verdict">asks</b> <code>danger</code></li>` +
		`<li class="note"><span class="label">sets in its environment</span> <code>B &#39;A C&#39;</code></li>` +
		`<li class="command ask"><b class="verdict">asks</b> <span class="label">| into</span> <code>a<mark class="odd" title="invisible character">⟦U&#43;200B⟧</mark>&lt;b&gt;</code>` +
		`<ul><li class="effect run"><b class="verdict">ok</b> <code>b</code><ul><li class=""><code>c</code></li><li class=""><code>d</code></li></ul></li>` +
		`<li class=" deny"><b class="verdict">refused</b> <code>e</code></li></ul></li>` +
		`<li class=""><code>f</code> <span class="note">— g</span></li></ul>`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if items := outlineOf((&approval.Record{Request: &approval.Details{}}).View()); items != nil {
		t.Errorf("no outline became %+v", items)
	}
}
