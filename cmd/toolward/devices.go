package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolward/toolward/display"
)

type devicesCommand struct {
	List    devicesListCommand    `cmd:"" help:"List the devices that wait and that are paired."`
	Approve devicesApproveCommand `cmd:"" help:"Pair a device that waits, or vouch for one that is paired: it then has your rights as far as its scopes go."`
	Reject  devicesRejectCommand  `cmd:"" help:"Decline a device that waits."`
	Remove  devicesRemoveCommand  `cmd:"" help:"Forget a paired device; its connections end."`
}

type devicesListCommand struct{}

// Run lists devices.
func (devicesListCommand) Run(inv *invocation) error {
	list, err := inv.daemon().Devices(inv)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	return inv.table("ID\tCLIENT\tPLATFORM\tROLE\tSCOPES\tSTATE", func(row func(...any)) {
		for _, d := range list.Pending {
			row(d.Request, cmp.Or(d.Name, d.Client), d.Platform, d.Role, strings.Join(d.Scopes, " "), "waits ("+d.Reason+"), from "+d.Address)
		}
		for _, d := range list.Paired {
			state := "paired; nobody vouched for it"
			if d.Person != "" {
				state = "vouched for by " + d.Person + ": " + strings.Join(d.Vouched, " ")
			}
			row(d.Device, cmp.Or(d.Name, d.Client), d.Platform, strings.Join(d.Roles, " "), strings.Join(d.Scopes, " "), state)
		}
	})
}

type devicesApproveCommand struct {
	ID string `arg:"" help:"Id of the request, or of a paired device."`
}

// Run pairs a device.
func (c *devicesApproveCommand) Run(inv *invocation) error {
	d, err := inv.daemon().ApproveDevice(inv, c.ID)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(d)
	}
	scopes := strings.Join(d.Vouched, " ")
	if scopes == "" {
		scopes = "none"
	}
	fmt.Fprintf(inv.stdout, "Paired. Whoever holds the key of %s now has your rights for: %s\n", display.Line(cmp.Or(d.Name, d.Client)), display.Line(scopes))
	return nil
}

type devicesRejectCommand struct {
	ID string `arg:"" help:"Id of the request."`
}

// Run declines a device.
func (c *devicesRejectCommand) Run(inv *invocation) error {
	if err := inv.daemon().RejectDevice(inv, c.ID); err != nil {
		return err
	}
	return inv.done("rejected", "Declined.")
}

type devicesRemoveCommand struct {
	ID string `arg:"" help:"Id of the device."`
}

// Run forgets a device.
func (c *devicesRemoveCommand) Run(inv *invocation) error {
	if err := inv.daemon().RemoveDevice(inv, c.ID); err != nil {
		return err
	}
	return inv.done("removed", "Removed.")
}
