import type { WebhookEvent } from '@scheduling/embedded';

type Data = WebhookEvent['data'];

/** What a mirror needs of an event of the feed (interface 6.1). */
export type MirroredEvent = Pick<WebhookEvent, 'id' | 'type'> & {
  data: Pick<
    Data,
    | 'id'
    | 'state'
    | 'previousState'
    | 'version'
    | 'appointmentId'
    | 'previousAppointmentId'
    | 'capacity'
    | 'ignoreCapacity'
  >;
};

/**
 * What somebody who knows nothing but the events of a CRM knows about its calendar. Things are known by the ids of the
 * events.
 */
export interface Mirror {
  appointments: Map<string, MirroredAppointment>;
  /** The last one of everything that has had an event, also of what no longer exists. */
  versions: Map<string, number>;
}

export interface MirroredAppointment {
  state: string;
  capacity: number;
  participations: Map<string, MirroredParticipation>;
}

interface MirroredParticipation {
  state: string;
  ignoreCapacity: boolean;
}

export function createMirror(): Mirror {
  return { appointments: new Map(), versions: new Map() };
}

/**
 * Applies the next event. Returns what in it contradicts the events before it: nothing, if the feed keeps its promises.
 */
export function applyEvent(mirror: Mirror, event: MirroredEvent): string[] {
  const contradictions = [...applyVersion(mirror, event), ...applyContent(mirror, event)];
  return contradictions.map((text) => `${event.type} (${event.id}) of ${event.data.id}: ${text}`);
}

function applyVersion({ versions }: Mirror, { data: { id, version } }: MirroredEvent): string[] {
  // Mails and webhooks have none.
  if (version === null) return [];
  const expected = (versions.get(id) ?? 0) + 1;
  versions.set(id, version);
  return version === expected ? [] : [`has the version ${version} instead of ${expected}`];
}

function applyContent(mirror: Mirror, event: MirroredEvent): string[] {
  if (event.type.startsWith('appointment.')) return applyToAppointment(mirror, event.data);
  if (event.type.startsWith('participation.')) return applyToParticipation(mirror, event);
  return [];
}

function applyToAppointment(
  { appointments }: Mirror,
  { id, state, previousState, capacity }: MirroredEvent['data'],
): string[] {
  const present = appointments.get(id);
  const contradictions = compareStates(present?.state, previousState);
  if (state === null) {
    appointments.delete(id);
    const left = present?.participations.size ?? 0;
    return left === 0 ? contradictions : [...contradictions, `${left} participations are still there`];
  }
  if (capacity === null) return [...contradictions, 'has no capacity'];
  appointments.set(id, { state, capacity, participations: present?.participations ?? new Map() });
  return contradictions;
}

function applyToParticipation({ appointments }: Mirror, { type, data }: MirroredEvent): string[] {
  const { id, state, previousState, appointmentId, previousAppointmentId } = data;
  const sourceId = type === 'participation.moved' ? previousAppointmentId : appointmentId;
  const [source, place] = [appointments.get(sourceId ?? ''), appointments.get(appointmentId ?? '')];
  if (source === undefined || place === undefined)
    return [`there is no appointment ${source === undefined ? sourceId : appointmentId}`];
  const present = source.participations.get(id);
  source.participations.delete(id);
  const contradictions = compareStates(present?.state, previousState);
  if (state === null) return contradictions;
  const ignoreCapacity = data.ignoreCapacity === true;
  place.participations.set(id, { state, ignoreCapacity });
  const isGivenSeat = takesSeat(state) && (place !== source || !takesSeat(present?.state));
  const taken = countTaken(place);
  if (!isGivenSeat || ignoreCapacity || taken <= place.capacity) return contradictions;
  return [
    ...contradictions,
    `takes a seat of ${appointmentId}, of which ${taken} are taken then, although its capacity is ${place.capacity}`,
  ];
}

function compareStates(present: string | undefined, previous: string | null): string[] {
  return (present ?? null) === previous ? [] : [`was ${previous}, but is ${present ?? 'not there'}`];
}

function countTaken({ participations }: MirroredAppointment): number {
  return [...participations.values()].filter(({ state }) => takesSeat(state)).length;
}

/** Interface 3.1. An expired reservation has ended with its event. */
function takesSeat(state: string | undefined): boolean {
  return state === 'BOOKED' || state === 'RESERVED';
}
