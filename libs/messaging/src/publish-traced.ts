import type { OutgoingEvent, Publication, Publisher } from '@scheduling/events';
import { type ActiveSpan, currentTraceparent, startSpan } from '@scheduling/runtime';

/** Publishes events. Each has a span in the trace in which it occurred, and its consumers continue from that. */
export async function publishTraced(publisher: Publisher, events: OutgoingEvent[]): Promise<Publication[]> {
  const spans = events.map(startPublishSpan);
  const publications = await publisher.publish(events.map((event, index) => continuedFrom(spans[index], event)));
  for (const [index, publication] of publications.entries()) endPublishSpan(spans[index], publication);
  return publications;
}

/** Undefined if the event did not occur in a trace. */
function startPublishSpan({ id, subject, traceparent }: OutgoingEvent): ActiveSpan | undefined {
  if (!traceparent) return undefined;
  const attributes = () => ({
    'messaging.system': 'nats',
    'messaging.operation.type': 'send',
    'messaging.operation.name': 'publish',
    'messaging.destination.name': subject,
    'messaging.message.id': id,
  });
  return startSpan(`publish ${subject}`, { kind: 'PRODUCER', attributes, parent: traceparent });
}

/** If this process has no tracing, the trace continues from where the event occurred. */
function continuedFrom(span: ActiveSpan | undefined, event: OutgoingEvent): OutgoingEvent {
  const traceparent = span?.run(currentTraceparent);
  return traceparent === undefined ? event : { ...event, traceparent };
}

function endPublishSpan(span: ActiveSpan | undefined, publication: Publication): void {
  if ('failure' in publication) span?.fail(publication.failure);
  span?.end();
}
