import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';
import { eventually, startTestNats, testLogger, type TestNats } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectBroker, events, type OutgoingEvent, type Publication, type Publisher } from '../src/index.ts';

const logger = testLogger('publisher-test');
const { customerChanged, crmChanged } = events;

describe('a publisher', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let publisher: Publisher;
  let manager: JetStreamManager;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    nats = stack.use(await startTestNats());
    const connect = (user: 'customer' | 'test') =>
      stack.use(connectBroker({ url: nats.url(user), name: user, logger })).jetStream(AbortSignal.timeout(5_000));
    ({ publisher } = await connect('customer'));
    ({ manager } = await connect('test'));
  });
  afterEach(() => stack.disposeAsync());

  function event(changes: Partial<OutgoingEvent> = {}): OutgoingEvent {
    const { subject, type } = customerChanged;
    const attributes = {
      id: randomUUID(),
      service: 'customer',
      type,
      time: new Date(0),
      requestId: 'request-1',
      repeated: false,
    };
    return { subject, payload: Buffer.from('data'), ...attributes, ...changes };
  }
  const many = (count: number) => Array.from({ length: count }, () => event());
  const sequencesOf = (publications: Publication[]) =>
    publications.map((each) => ('sequence' in each ? each.sequence : undefined));
  const failureOf = (publication: Publication | undefined) =>
    publication && 'failure' in publication && publication.failure;
  const areRejected = (publications: Publication[]) => publications.map((each) => 'failure' in each && each.isRejected);

  it('returns the place of each event in the stream, in their order', async () => {
    const [one, other] = await Promise.all([publisher.publish(many(100)), publisher.publish(many(100))]);
    expect(sequencesOf([...one, ...other])).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  });

  it('has nothing to wait for without events', async () => {
    expect(await publisher.publish([])).toEqual([]);
  });

  it('publishes the attributes as headers', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const traced = event({ traceparent, repeated: true });
    await publisher.publish([traced]);
    const { header, data } = (await manager.streams.getMessage('scheduling', { seq: 1 }))!;
    expect(Object.fromEntries(header.keys().map((key) => [key, header.get(key)]))).toEqual({
      'Nats-Msg-Id': traced.id,
      'ce-specversion': '1.0',
      'ce-id': traced.id,
      'ce-source': 'scheduling/customer',
      'ce-type': customerChanged.type,
      'ce-time': '1970-01-01T00:00:00.000Z',
      'content-type': 'application/protobuf',
      'x-request-id': 'request-1',
      traceparent,
      'x-repeated': 'true',
    });
    expect(Buffer.from(data).toString()).toBe('data');
  });

  it('leaves an event that is published again where it is', async () => {
    const [first, second] = many(2) as [OutgoingEvent, OutgoingEvent];
    await publisher.publish([first, second]);
    expect(sequencesOf(await publisher.publish([first, event(), second]))).toEqual([1, 3, 2]);
  });

  it.each([
    ['has a line break in its request id', { requestId: 'a\r\nNats-Rollup: all' }, errors.InvalidArgumentError],
    ['is larger than NATS accepts', { payload: Buffer.alloc(2_000_000) }, errors.InvalidArgumentError],
    ['is larger than the stream accepts', { payload: Buffer.alloc(20_000) }, JetStreamApiError],
    ['belongs to another service', { subject: crmChanged.subject }, errors.PermissionViolationError],
  ])('publishes the others of a part when one of them %s', async (_, changes, failure) => {
    await manager.streams.update('scheduling', { max_msg_size: 10_000 });
    const publications = await publisher.publish([event(), event(changes), ...many(99)]);
    expect(failureOf(publications[1])).toBeInstanceOf(failure);
    expect(areRejected(publications).slice(0, 3)).toEqual([false, true, false]);
    expect(sequencesOf(publications.toSpliced(1, 1))).toEqual(Array.from({ length: 100 }, (__, index) => index + 1));
  });

  it('reports at once that there is no stream', async () => {
    await manager.streams.delete('scheduling');
    const publications = await publisher.publish(many(2));
    expect(publications.map(failureOf)).toMatchObject([
      { message: 'NATS has no stream for the event' },
      { message: 'NATS has no stream for the event' },
    ]);
    expect(areRejected(publications)).toEqual([false, false]);
  });

  it('gives up after a while without NATS, and publishes again as soon as it is back', async () => {
    await nats.stop();
    const publications = await publisher.publish(many(2));
    expect(publications.map(failureOf)).toEqual([expect.any(errors.TimeoutError), expect.any(errors.TimeoutError)]);
    expect(areRejected(publications)).toEqual([false, false]);
    await nats.start();
    await eventually(async () => expect(sequencesOf(await publisher.publish(many(1)))).toEqual([expect.any(Number)]));
  });
});
