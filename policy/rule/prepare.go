package rule

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// preparedHosts is a call of hostIn whose list was read when the condition was compiled.
type preparedHosts struct {
	interpreter.InterpretableCall
	text  interpreter.InterpretableV2
	hosts hostList
}

// prepareHosts replaces calls of hostIn by prepared ones.
func prepareHosts(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	if !ok || call.Function() != fnHostIn || len(call.Args()) != 2 {
		return node, nil
	}
	list, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return node, nil
	}
	lister, ok := list.Value().(traits.Lister)
	if !ok {
		return node, nil
	}
	var entries []string
	for it := lister.Iterator(); it.HasNext() == types.True; {
		entry, _ := it.Next().(types.String)
		entries = append(entries, string(entry))
	}
	hosts, err := newHostList(entries)
	if err != nil {
		return nil, err
	}
	return &preparedHosts{InterpretableCall: call, text: call.Args()[0], hosts: hosts}, nil
}

func (p *preparedHosts) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := p.text.Exec(frame)
	text, ok := value.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(value)
	}
	a, err := addressFor(frame, string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(p.hosts.covers(a))
}

// addressFor reads an address by the memory of the call that is looked at.
func addressFor(frame *interpreter.ExecutionFrame, text string) (address, error) {
	if value, ok := frame.ResolveName(callName); ok {
		if call, ok := value.(*Call); ok {
			return call.address(text)
		}
	}
	return addressOf(text)
}

func (p *preparedHosts) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, p.Exec)
}
