package toolward

import "context"

// Refuse records a refusal that a face had to make itself, such as one for a forged resume token, and returns it.
// The call has not been decided; a face can refuse by itself, never allow.
func (g *Gateway) Refuse(ctx context.Context, call Call, refusal *Refusal) *Refusal {
	return (&admission{gateway: g, call: call}).refuse(ctx, refusal)
}
