package main

import (
	"maps"
	"slices"
)

// Order puts the files in an order, users above what they use, in which few uses run backwards. Finding the fewest is as hard
// as problems get; this is the greedy order of Eades, Lin and Smyth (1993), bettered by moving single files while that helps.
func Order(uses Uses) []string {
	order := greedy(uses)
	for better := true; better; {
		better = false
		for _, name := range slices.Sorted(slices.Values(order)) {
			if moved, gain := resettle(uses, order, name); gain > 0 {
				order, better = moved, true
			}
		}
	}
	return order
}

// greedy takes files that nothing uses to the front, files that use nothing to the back, and else the one that uses most
// for each that uses it.
func greedy(uses Uses) []string {
	left := map[string]bool{}
	for name := range uses {
		left[name] = true
	}
	var front, back []string
	for len(left) > 0 {
		best, bestScore, sink := "", 0, ""
		for _, name := range slices.Sorted(maps.Keys(left)) {
			out, in := degrees(uses, left, name)
			if out == 0 {
				sink = name
				break
			}
			if score := out - in; best == "" || score > bestScore {
				best, bestScore = name, score
			}
			if in == 0 {
				best = name
				break
			}
		}
		if sink != "" {
			back = append(back, sink)
			delete(left, sink)
			continue
		}
		front = append(front, best)
		delete(left, best)
	}
	slices.Reverse(back)
	return append(front, back...)
}

func degrees(uses Uses, left map[string]bool, name string) (out, in int) {
	for other := range left {
		if uses[name][other] != nil {
			out++
		}
		if uses[other][name] != nil {
			in++
		}
	}
	return out, in
}

// resettle moves one file to where the fewest of its uses run backwards.
func resettle(uses Uses, order []string, name string) ([]string, int) {
	at := slices.Index(order, name)
	rest := slices.Delete(slices.Clone(order), at, at+1)
	// First, all that others take from it runs backwards; each step down turns the uses between it and one other around.
	cost := 0
	for _, other := range rest {
		if uses[other][name] != nil {
			cost++
		}
	}
	best, bestCost, here := 0, cost, cost
	for i, other := range rest {
		if uses[other][name] != nil {
			cost--
		}
		if uses[name][other] != nil {
			cost++
		}
		if i+1 == at {
			here = cost
		}
		if cost < bestCost {
			best, bestCost = i+1, cost
		}
	}
	if bestCost >= here {
		return order, 0
	}
	return slices.Insert(rest, best, name), here - bestCost
}
