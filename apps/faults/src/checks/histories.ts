import type { WebhookEvent as FeedEvent } from '@scheduling/embedded';
import type { Provider, Tenant } from '../load/model.ts';
import { isDone, isPossible, possibleUpdates } from './effects.ts';
import type { Evidence, Feed, InjectedFault, ShownParticipation, Violation } from './evidence.ts';
import { mayComeLate, wasOvertaken } from './late-attempts.ts';

/** Interface 3.1. What ends as CANCELED may also have been in an appointment that was cancelled. */
const transitions = new Set([
  'RESERVED BOOKED',
  'REQUESTED BOOKED',
  'BOOKED DELETED',
  'RESERVED CANCELED',
  'REQUESTED CANCELED',
  'BOOKED CANCELED',
  'DELETED CANCELED',
]);

/**
 * I8: every participation has gone through transitions that are permitted, and no others. I12: the feed has every event
 * once, in the order of versions, and whoever followed it has missed none, and neither has a webhook. I2: persons have
 * done what they were told.
 */
export function checkHistories({ feeds, lists, injected }: Evidence): Violation[] {
  return [...feeds].flatMap(([tenant, feed]) => [
    ...checkFollowed(tenant, feed),
    ...checkDelivered(tenant, feed),
    ...[...Map.groupBy(feed.read, ({ data }) => data.id)].flatMap(([id, events]) =>
      checkHistory(tenant, id, events, updatesOf(tenant, events)),
    ),
    ...checkPersons(tenant, feed, injected),
    ...tenant.providers.flatMap((provider) => checkComplete(provider, feed, [...lists.get(provider)!.participations])),
  ]);
}

function checkFollowed({ crmId }: Tenant, { followed, read }: Feed): Violation[] {
  const ids = read.map(({ id }) => id);
  const violations: Violation[] = [];
  if (new Set(ids).size < ids.length)
    violations.push({ invariant: 'I12', text: `the feed of ${crmId} contains an event twice` });
  const difference = ids.findIndex((id, index) => followed[index]?.id !== id);
  if (difference >= 0) {
    violations.push({
      invariant: 'I12',
      text: `a client read ${followed.length} events while following the feed of ${crmId}, which now has ${ids.length}; the first difference is at ${difference}`,
    });
  }
  return violations;
}

/** The webhook was there before the first event. */
function checkDelivered({ crmId }: Tenant, { delivered, followed }: Feed): Violation[] {
  const difference = followed.findIndex(({ id }, index) => delivered[index] !== id);
  if (difference < 0) return [];
  return [
    {
      invariant: 'I12',
      text: `the webhook of ${crmId} got ${delivered.length} of ${followed.length} events; the first difference is at ${difference}`,
    },
  ];
}

/**
 * How often the appointment of a participation was updated, and how often the person said that they will be there:
 * neither changes its state. The feed does not name appointments that are deleted, nor persons who are erased.
 */
function updatesOf({ providers }: Tenant, events: FeedEvent[]): number {
  const { providerReference, data } = events[0]!;
  if (data.appointmentReference === null || data.reference === null) return Number.POSITIVE_INFINITY;
  const provider = providers.find(({ reference }) => reference === providerReference);
  const appointment = provider?.appointments.find(({ reference }) => reference === data.appointmentReference);
  const participation = provider?.participations.find(({ reference }) => reference === data.reference);
  const attendances = participation?.changes.filter(({ to, operation }) => to === 'attending' && isPossible(operation));
  return (appointment === undefined ? 0 : possibleUpdates(appointment).length) + (attendances?.length ?? 0);
}

/** A move that a person was told of is there once, and nothing that was refused. */
function checkPersons({ providers }: Tenant, { read }: Feed, injected: readonly InjectedFault[]): Violation[] {
  const byReference = Map.groupBy(
    read.filter(({ actor, type }) => actor === 'person' && type !== 'participation.removed'),
    ({ data }) => data.reference,
  );
  const participations = providers.flatMap((provider) => provider.participations);
  return participations.flatMap(({ reference, customer, changes }) => {
    const own = changes.filter(({ byPerson }) => byPerson);
    if (
      customer.erased !== undefined ||
      own.some(({ operation }) => mayComeLate(operation, injected) || wasOvertaken(operation, changes))
    )
      return [];
    const events = byReference.get(reference) ?? [];
    const moves = events.filter(({ type }) => type === 'participation.moved').length;
    const movesTold = own.filter(({ to, operation }) => to === 'moved' && isDone(operation)).length;
    const most = own.filter(({ operation }) => isPossible(operation)).length;
    if (moves === movesTold && events.length <= most) return [];
    const told = own.map(({ to, operation }) => `${to} ${operation.outcome}`).join(', ');
    const text = `the person of ${reference} was told ${told}, but did ${events.map(({ type }) => type).join(', ')}`;
    return [{ invariant: 'I2', text }];
  });
}

function checkHistory({ crmId }: Tenant, id: string, events: FeedEvent[], updates: number): Violation[] {
  const described = `${events[0]!.type.split('.')[0]} ${id} of ${crmId}: ${events.map(({ type, data }) => `${data.version} ${type} ${data.previousState ?? ''} ${data.state ?? ''}`).join(', ')}`;
  const violations: Violation[] = [];
  // Mails and webhooks have no versions.
  if (events.some(({ data }, index) => data.version !== null && data.version !== index + 1))
    violations.push({ invariant: 'I12', text: `out of order or incomplete: ${described}` });
  if (events[0]!.type.startsWith('participation.') && !isLegal(events, updates))
    violations.push({ invariant: 'I8', text: `not permitted: ${described}` });
  return violations;
}

function isLegal(events: FeedEvent[], updates: number): boolean {
  const unchanged = events.filter(
    ({ type, data }) => type === 'participation.changed' && data.state === data.previousState,
  );
  if (unchanged.length > updates) return false;
  return events.every(({ type, data: { state, previousState } }, index) => {
    const before = events[index - 1]?.data.state ?? null;
    if (type === 'participation.created') return index === 0 && previousState === null;
    if (previousState !== before) return false;
    if (type === 'participation.changed')
      return state === previousState || transitions.has(`${previousState} ${state}`);
    if (type === 'participation.moved') return state === previousState && (state === 'BOOKED' || state === 'REQUESTED');
    return type === 'participation.removed' && index === events.length - 1;
  });
}

/**
 * The last event of each participation that is there says the state that it has. The feed names nobody who was erased.
 */
function checkComplete({ tenant }: Provider, { read }: Feed, participations: ShownParticipation[]): Violation[] {
  const states = new Map<string, string | null>();
  for (const { type, data } of read)
    if (type.startsWith('participation.') && data.reference !== null) states.set(data.reference, data.state);
  // The list was read before the feed, which does not name a reservation that is over.
  const hasEnded = ({ reference, expiresAt }: ShownParticipation): boolean =>
    expiresAt !== undefined && Date.parse(expiresAt) <= Date.now() && (states.get(reference) ?? null) === null;
  return participations
    .filter(({ reference, state }) => !reference.startsWith('anonymous-') && states.get(reference) !== state)
    .filter((participation) => !hasEnded(participation))
    .map(({ reference, state }): Violation => ({
      invariant: 'I12',
      text: `${reference} of ${tenant.crmId} is ${state}, but the feed says ${states.get(reference) ?? 'nothing'}`,
    }));
}
