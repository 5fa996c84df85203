import { JetStreamApiError } from '@nats-io/jetstream';
import { createInbox, errors, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { type EventAttributes, eventHeaders } from './publish-event.ts';

/** An event for the stream. */
export interface OutgoingEvent extends EventAttributes {
  subject: string;
  payload: Uint8Array;
}

/**
 * The sequence number of an event in the stream, or why it is not known to be there: NATS rejects it, or did not
 * answer.
 */
export type Publication = { sequence: number } | { failure: Error; isRejected: boolean };

export interface Publisher {
  /**
   * Publishes the events at once, and returns what became of each, in their order. Those without an answer have failed
   * after 2 s.
   */
  publish(events: OutgoingEvent[]): Promise<Publication[]>;
}

/** Events that wait for their answers. */
interface Part {
  /** When each of them has an answer. */
  complete: Promise<Publication[]>;
  /** Only the first answer counts. */
  settle(index: number, publication: Publication): void;
  /** Those that have no answer yet. */
  fail(failure: Error): void;
  /** Those of a subject that have no answer yet. */
  reject(subject: string, failure: Error): void;
}

/** How JetStream answers. */
interface Answer {
  seq: number;
  error?: ConstructorParameters<typeof JetStreamApiError>[0];
}

const answerMs = 2_000;

/**
 * Publishes without a request per event: each would have a promise, a timer and an error of its own, which takes longer
 * than everything else.
 *
 * @param inboxPrefix of the subjects on which the user may listen for answers
 */
export function createPublisher(connection: NatsConnection, inboxPrefix: string): Publisher {
  const waiting = new Set<Part>();
  void failDenied(connection, waiting);
  return {
    publish: async (events) => {
      const part = createPart(events);
      const inbox = createInbox(inboxPrefix);
      const answers = connection.subscribe(`${inbox}.*`, {
        callback: (error, message) => (error ? part.fail(error) : part.settle(indexOf(message), readAnswer(message))),
      });
      const timer = setTimeout(() => part.fail(new errors.TimeoutError()), answerMs);
      waiting.add(part);
      try {
        events.forEach((event, index) =>
          send(connection, event, `${inbox}.${index}`, (failure) => part.settle(index, readFailure(failure))),
        );
        return await part.complete;
      } finally {
        waiting.delete(part);
        clearTimeout(timer);
        answers.unsubscribe();
      }
    },
  };
}

/** NATS does not answer on the event's own inbox if the user may not publish on its subject. */
async function failDenied(connection: NatsConnection, waiting: Set<Part>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type !== 'error' || !(status.error instanceof errors.PermissionViolationError)) continue;
    for (const part of waiting) part.reject(status.error.subject, status.error);
  }
}

function createPart(events: OutgoingEvent[]): Part {
  const publications: Publication[] = [];
  const { promise: complete, resolve } = Promise.withResolvers<Publication[]>();
  let unanswered = events.length;
  if (unanswered === 0) resolve(publications);
  const settle = (index: number, publication: Publication): void => {
    if (publications[index] !== undefined) return;
    publications[index] = publication;
    unanswered -= 1;
    if (unanswered === 0) resolve(publications);
  };
  return {
    complete,
    settle,
    fail: (failure) => events.forEach((_, index) => settle(index, { failure, isRejected: false })),
    reject: (subject, failure) =>
      events.forEach((event, index) => {
        if (event.subject === subject) settle(index, { failure, isRejected: true });
      }),
  };
}

function send(
  connection: NatsConnection,
  event: OutgoingEvent,
  reply: string,
  onFailure: (failure: Error) => void,
): void {
  try {
    const headers = eventHeaders(event);
    headers.append('Nats-Msg-Id', event.id);
    connection.publish(event.subject, event.payload, { headers, reply });
  } catch (error) {
    onFailure(error as Error);
  }
}

/** The client rejects what is larger than the server accepts; otherwise, the connection is closed. */
function readFailure(failure: Error): Publication {
  return { failure, isRejected: failure instanceof errors.InvalidArgumentError };
}

function indexOf({ subject }: Msg): number {
  return Number(subject.slice(subject.lastIndexOf('.') + 1));
}

function readAnswer(message: Msg): Publication {
  // NATS itself answers if there is no stream.
  if (message.data.length === 0) return { failure: new Error('NATS has no stream for the event'), isRejected: false };
  const { seq: sequence, error } = message.json<Answer>();
  // From 500, JetStream itself has a problem, such as a full disk.
  return error ? { failure: new JetStreamApiError(error), isRejected: error.code < 500 } : { sequence };
}
