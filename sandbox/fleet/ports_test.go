package fleet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// A port that stays is told once; one that a test opens for a moment is not.
func TestPortsAreTold(t *testing.T) {
	w := newHome(t)
	synctest.Test(t, func(t *testing.T) {
		e := newFake(sandbox.EngineNative)
		m := manage(t, w, e, settings.Config{Mode: string(settings.ModeAll)})
		lease := m.lease(t, "s")
		open := func(numbers ...uint16) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.ports = nil
			for _, n := range numbers {
				e.ports = append(e.ports, sandbox.Port{Number: n, Local: true, PID: 7, Program: "node"})
			}
		}
		open(3000, 40001)
		time.Sleep(lookEvery)
		open(3000, 40002)
		time.Sleep(5 * lookEvery)
		open(3000)
		time.Sleep(5 * lookEvery)
		synctest.Wait()
		told := []string{}
		for _, event := range m.events.list {
			if event.Kind == EventListening {
				told = append(told, fmt.Sprint(event.Port, event.Program, event.ScopeKey))
			}
		}
		if fmt.Sprint(told) != "[3000nodeagent:coder 40002nodeagent:coder]" {
			t.Errorf("told %v", told)
		}
		infos, err := m.List(t.Context())
		if err != nil || len(infos) != 1 || fmt.Sprint(infos[0].Ports) != "[{3000 node 7 true}]" {
			t.Errorf("%+v, %v", infos, err)
		}
		if ports, more, err := m.Ports(t.Context(), infos[0].Name); fmt.Sprint(ports) != "[{3000 node 7 true}]" || more || err != nil {
			t.Errorf("%v, %v, %v", ports, more, err)
		}
		if err := m.Stop(t.Context(), infos[0].Name, "a test"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Running(infos[0].Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
			t.Errorf("a stopped one: %v", err)
		}
		if infos, _ = m.List(t.Context()); len(infos[0].Ports) > 0 {
			t.Errorf("a stopped one listens: %v", infos[0].Ports)
		}
		lease.Release()
		m.Close()
	})
}
