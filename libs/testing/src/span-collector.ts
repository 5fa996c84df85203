import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** One span of OTLP's JSON, and the service that sent it. */
export interface CollectedSpan {
  service: string;
  traceId: string;
  spanId: string;
  /** Absent on the first span of a trace. */
  parentSpanId?: string;
  name: string;
  /** OTLP's number: 2 is SERVER, 3 CLIENT, 4 PRODUCER, 5 CONSUMER. */
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: CollectedAttribute[];
  events: { name: string; timeUnixNano: string; attributes: CollectedAttribute[] }[];
}

export interface CollectedAttribute {
  key: string;
  value: unknown;
}

export interface SpanCollector extends AsyncDisposable {
  endpoint: string;
  spans: CollectedSpan[];
}

interface TraceExport {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: Omit<CollectedSpan, 'service'>[] }[];
  }[];
}

/** Receives spans like an OpenTelemetry collector, by OTLP over HTTP, and stores them. */
export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: CollectedSpan[] = [];
  const server = createServer((request, response) => {
    const taken = json(request).then((body) => {
      if (request.url === '/v1/traces') spans.push(...spansOf(body as TraceExport));
      response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
    });
    // The sending process was killed in the middle of the request.
    taken.catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

function spansOf({ resourceSpans }: TraceExport): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ service, ...span })));
  });
}
