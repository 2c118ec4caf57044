package schema

import "testing"

const benchSchema = `{"type":"object","properties":{"command":{"type":"string"},"workdir":{"type":"string"},"timeout":{"type":"integer","minimum":1,"maximum":3600},"background":{"type":"boolean"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"],"additionalProperties":false}`

var benchArgs = []byte(`{"command":"go test ./...","workdir":"/home/u/proj","timeout":120,"background":false}`)

func BenchmarkDecode(b *testing.B) {
	s, err := Compile([]byte(benchSchema), Options{Params: Params{Kinds: map[string]Kind{"command": Command, "workdir": Path}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decode(benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := Compile([]byte(benchSchema), Options{})
	if err != nil {
		b.Fatal(err)
	}
	v, err := s.Decode(benchArgs)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.root.Validate(v.Object); err != nil {
			b.Fatal(err)
		}
	}
}
