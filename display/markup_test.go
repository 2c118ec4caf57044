package display

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"ls -la", "```\nls -la\n```"},
		{"ls ```\n**APPROVED**", "````\nls ```\n**APPROVED**\n````"},
		{"a\n`````\nb", "``````\na\n`````\nb\n``````"},
		{"x\x1b[2J", "```\nx⟦U+001B⟧[2J\n```"},
	} {
		if got := Markdown(tc.in); got != tc.want {
			t.Errorf("Markdown(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// Whatever the text, only the last line closes the block, and the text comes out between the fences.
func TestMarkdownIsOneBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("`~ab \n*<@"))).Draw(t, "text")
		lines := strings.Split(Markdown(text), "\n")
		fence := lines[0]
		for i, line := range lines[1:] {
			if strings.HasPrefix(strings.TrimLeft(line, " "), fence) != (i == len(lines)-2) {
				t.Fatalf("line %d of %q is a fence, or the last is none", i+1, lines)
			}
		}
		if got, want := strings.Join(lines[1:len(lines)-1], "\n"), strings.TrimRight(Block(text), "\n"); got != want {
			t.Fatalf("%q is shown as %q", want, got)
		}
	})
}

func TestChat(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"ls @everyone", "ls ⟦@⟧everyone"},
		{"ls <@123>", "ls ⟦<⟧⟦@⟧123>"},
		{"ls <!channel>", "ls ⟦<⟧!channel>"},
		{"ls <https://evil.example|safe>", "ls ⟦<⟧https://evil.example|safe>"},
		{"ls ```\n*approved*", "ls ⟦3 backticks⟧\n*approved*"},
		{"sort < in > out; a << b; echo `date` @ 5", "sort < in > out; a << b; echo `date` @ 5"},
		{"forged ⟦@⟧", "forged ⟦U+27E6⟧@⟦U+27E7⟧"},
	} {
		if got, want := Chat(tc.in), "```\n"+tc.want+"\n```"; got != want {
			t.Errorf("Chat(%q) = %q, want %q", tc.in, got, want)
		}
	}
}

func TestChatIsOneBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("`a@<!> \n"))).Draw(t, "text")
		shown := strings.TrimSuffix(strings.TrimPrefix(Chat(text), "```\n"), "\n```")
		if strings.Contains(shown, "```") || strings.Contains(shown, "@a") || strings.Contains(shown, "<!>") || strings.Contains(shown, "<a>") {
			t.Fatalf("%q is shown as %q", text, shown)
		}
	})
}

func TestCell(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"=cmd|' /C calc'!A0", "⟦=⟧cmd|' /C calc'!A0"},
		{"+1+1", "⟦+⟧1+1"},
		{"-2+3", "⟦-⟧2+3"},
		{"@SUM(1)", "⟦@⟧SUM(1)"},
		{"  =1", "  ⟦=⟧1"},
		{"a;=1", "a;⟦=⟧1"},
		{"a,\"=1", "a,\"⟦=⟧1"},
		{"\t=1", "⟦tab⟧=1"},
		{"\r=1", "⟦U+000D⟧=1"},
		{"\uff1d1", "⟦U+FF1D⟧1"},
		{"ls -la a=b", "ls -la a=b"},
		{"git log --since=1.day", "git log --since=1.day"},
		{"'=1", "'=1"},
	} {
		if got := Cell(tc.in); got != tc.want {
			t.Errorf("Cell(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}
