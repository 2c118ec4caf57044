package main

type policyCommand struct {
	Test    policyTestCommand    `cmd:"" help:"Check a policy against a file of cases."`
	Replay  policyReplayCommand  `cmd:"" help:"Judge recorded calls again, by another policy, and show what differs."`
	Suggest policySuggestCommand `cmd:"" help:"Suggest rules for what people allowed again and again. Applies nothing."`
}
