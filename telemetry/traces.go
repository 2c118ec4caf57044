package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolward/toolward"
)

// openTraces starts the export of spans. A collector that is not there costs nothing but the spans: the queue is
// bounded and calls never wait for it.
func (t *Telemetry) openTraces(ctx context.Context, o Options) error {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(tracesURL(o.Traces.Endpoint)), otlptracehttp.WithHeaders(o.Traces.Headers))
	if err != nil {
		return fmt.Errorf("export traces to %s: %w", o.Traces.Endpoint, err)
	}
	ratio := 1.0
	if o.Traces.SampleRatio != nil {
		ratio = *o.Traces.SampleRatio
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "toolward"), attribute.String("service.version", o.Version),
		)),
	)
	t.tracer = provider.Tracer("github.com/toolward/toolward")
	t.stop = provider.Shutdown
	return nil
}

// span begins the span of a step.
func (t *Telemetry) span(ctx context.Context, name string, call *toolward.Call) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, "toolward."+name)
	if name == "call" || name == "run" {
		span.SetAttributes(
			attribute.String("toolward.agent", t.agents.of(call.Caller.Agent)),
			attribute.String("toolward.surface", string(call.Surface)),
			attribute.String("toolward.tool", t.tool(call.Tool)),
		)
	}
	return ctx, func(err error) {
		endSpan(span, err)
	}
}

// endSpan says how the step ended. A refusal is an answer, not a fault of the program: only its code is told, since
// its words may repeat what the caller wrote.
func endSpan(span trace.Span, err error) {
	defer span.End()
	var refusal *toolward.Refusal
	var pending *toolward.Pending
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		span.SetAttributes(attribute.String("toolward.code", string(refusal.Code)))
		if refusal.Code == toolward.CodeInternal || refusal.Code == toolward.CodeAuditUnavailable {
			span.SetStatus(codes.Error, string(refusal.Code))
		}
	case errors.As(err, &pending):
		span.SetAttributes(attribute.String("toolward.code", "pending"))
	default:
		span.SetStatus(codes.Error, "failed")
	}
}

// tracesURL adds the standard path to an address without one.
func tracesURL(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("v1", "traces").String()
	}
	return endpoint
}
