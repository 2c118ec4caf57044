package docker

import (
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// eventsPause is how long the engine waits before it asks for events again, when it was told no more.
const eventsPause = 2 * time.Second

// watchEvents watches what happens to our containers behind our back, once for the engine.
func (e *Engine) watchEvents() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watching || e.closed {
		return
	}
	e.watching = true
	e.live.Go(func() {
		for e.ctx.Err() == nil {
			e.followEvents()
			select {
			case <-e.ctx.Done():
			case <-time.After(eventsPause):
			}
		}
	})
}

// followEvents follows the events of our containers until they end. What is missed meanwhile is no harm: a sandbox's end
// shows on its channel, and its memory in its control group.
func (e *Engine) followEvents() {
	c, err := e.connect()
	if err != nil {
		return
	}
	filters := make(client.Filters).Add("type", "container").Add("label", labelInstance+"="+e.options.Instance).Add("event", "oom", "die", "destroy")
	stream := c.Events(e.ctx, client.EventsListOptions{Filters: filters})
	for {
		select {
		case message := <-stream.Messages:
			e.happened(message)
		case <-stream.Err:
			return
		}
	}
}

func (e *Engine) happened(message events.Message) {
	b := e.byContainer(message.Actor.ID)
	if b == nil {
		return
	}
	switch message.Action {
	case events.ActionOOM:
		b.ooms.Add(1)
		e.log.Info("memory ran out in a sandbox", "name", b.name)
	case events.ActionDie, events.ActionDestroy:
		if b.Runs() {
			e.log.Warn("the container of a sandbox has ended", "name", b.name, "event", string(message.Action), "exit", message.Actor.Attributes["exitCode"])
			b.letGo()
		}
	}
}

func (e *Engine) byContainer(id string) *box {
	for _, b := range e.boxes.All() {
		if b.id == id {
			return b
		}
	}
	return nil
}
