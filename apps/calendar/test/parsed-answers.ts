import {
  type BookingServiceService,
  type ParticipationServiceService,
  ParticipationState,
  type Timeslot,
  type TimeslotServiceService,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import type { RpcClient } from '@scheduling/rpc';

type Participations = RpcClient<typeof ParticipationServiceService>;
type Bookings = RpcClient<typeof BookingServiceService>;
type Timeslots = RpcClient<typeof TimeslotServiceService>;

/** A participation that an answer contains as JSON. What is null there is absent here. */
export interface ParsedParticipation {
  reference: string;
  appointmentReference: string;
  customerReference?: string;
  email?: string;
  mobile?: string;
  name: string;
  note?: string;
  state: ParticipationState;
  messages: string[];
  expiresAt?: Date;
  attendanceConfirmedAt?: string;
}

/** A timeslot that an answer contains as JSON. */
export interface ParsedTimeslot extends Timeslot {
  reference: string;
  start: Date;
  end: Date;
  state: TimeslotState;
  raster: number;
  defaultCapacity: number;
}

/** Clients whose answers also contain what their JSON describes. */
export type ParsingParticipations = Parsing<
  Participations,
  Record<'getParticipation' | 'createParticipation' | 'updateParticipation', { participation: ParsedParticipation }>
>;
export type ParsingBookings = Parsing<
  Bookings,
  Record<'bookSlot' | 'changeBooking', { participation: ParsedParticipation }>
>;
export type ParsingTimeslots = Parsing<
  Timeslots,
  Record<'createTimeslots' | 'listTimeslots', { timeslots: ParsedTimeslot[] }> &
    Record<'updateTimeslot', { timeslot: ParsedTimeslot }>
>;

type Parsing<Client, Contents extends Partial<Record<keyof Client, object>>> = Omit<Client, keyof Contents> & {
  [Method in keyof Contents & keyof Client]: Client[Method] extends (
    ...parameters: infer Parameters
  ) => Promise<infer Answer>
    ? (...parameters: Parameters) => Promise<Omit<Answer, keyof Contents[Method]> & Contents[Method]>
    : never;
};

export function parsingParticipations(client: Participations): ParsingParticipations {
  const parsed = <Answer extends { json: Buffer }>(answer: Answer) => ({
    ...answer,
    participation: parseParticipation(answer.json),
  });
  return {
    ...client,
    getParticipation: async (...call) => parsed(await client.getParticipation(...call)),
    createParticipation: async (...call) => parsed(await client.createParticipation(...call)),
    updateParticipation: async (...call) => parsed(await client.updateParticipation(...call)),
  };
}

export function parsingBookings(client: Bookings): ParsingBookings {
  const parsed = <Answer extends { participationJson: Buffer }>(answer: Answer) => ({
    ...answer,
    participation: parseParticipation(answer.participationJson),
  });
  return {
    ...client,
    bookSlot: async (...call) => parsed(await client.bookSlot(...call)),
    changeBooking: async (...call) => parsed(await client.changeBooking(...call)),
  };
}

export function parsingTimeslots(client: Timeslots): ParsingTimeslots {
  const parsed = <Answer extends { timeslots: Timeslot[] }>(answer: Answer) => ({
    ...answer,
    timeslots: answer.timeslots.map(parseTimeslot),
  });
  return {
    ...client,
    createTimeslots: async (...call) => parsed(await client.createTimeslots(...call)),
    listTimeslots: async (...call) => parsed(await client.listTimeslots(...call)),
    updateTimeslot: async (...call) => {
      const answer = await client.updateTimeslot(...call);
      return { ...answer, timeslot: parseTimeslot(answer.timeslot!) };
    },
  };
}

function parseParticipation(json: Buffer): ParsedParticipation {
  const { state, messages, expiresAt, ...fields } = JSON.parse(json.toString()) as Record<string, unknown>;
  return {
    ...(withoutNulls(fields) as unknown as ParsedParticipation),
    state: ParticipationState[state as keyof typeof ParticipationState],
    messages: (messages as string[] | null) ?? [],
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt as string) }),
  };
}

function parseTimeslot(timeslot: Timeslot): ParsedTimeslot {
  const { state, start, end, ...fields } = JSON.parse(timeslot.json.toString()) as Record<string, unknown>;
  return {
    ...(withoutNulls(fields) as unknown as ParsedTimeslot),
    start: new Date(start as string),
    end: new Date(end as string),
    state: TimeslotState[state as keyof typeof TimeslotState],
    ...timeslot,
  };
}

function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value ?? undefined]));
}

/** An appointment as an object of the REST interface (2.5), as far as tests read it. */
export interface AppointmentJson {
  reference: string;
  acceptBookings: boolean;
  address: unknown;
  archived: boolean;
  capacity: number;
  contactReference: string | null;
  description: string | null;
  start: string;
  end: string;
  notes: string | null;
  participations: ParticipationJson[];
  price: { value: number; currency: string } | null;
  productReference: string;
  resourceReference: string;
  seriesId: string | null;
  state: 'ACTIVE' | 'CANCELLED';
}

interface ParticipationJson {
  reference: string;
  appointmentReference: string;
  customerReference: string | null;
  email: string | null;
  mobile: string | null;
  name: string;
  note: string | null;
  state: string;
  messages: string[] | null;
  expiresAt?: string;
}
