import {
  Access,
  AskMobile,
  type BookingPage as BookingPageMessage,
  type BookingRules as BookingRulesMessage,
  type InvitedCustomer as InvitedCustomerMessage,
  type Calendar,
  CalendarDetails,
  Confirmation,
  type GetParticipationMailDataResponse,
  type GetPendingBookingMailDataResponse,
  type ListDayResponse,
  type Hours as HoursMessage,
  type HoursWindow as HoursWindowMessage,
  type Location as LocationMessage,
  type OwnBooking as OwnBookingMessage,
  type RequestedBooking as RequestedBookingMessage,
  type OwnTime as OwnTimeMessage,
  type PagePlace as PagePlaceMessage,
  ParticipationState,
  type PreviousAppointment as PreviousAppointmentMessage,
  type Price,
  type RemovedParticipation as RemovedParticipationMessage,
  type Timeslot,
} from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { enumName, type EnumName, withoutNulls } from '@scheduling/rpc';
import type { Day } from './daily-list/list-day.ts';
import type { RemovedParticipation } from './erasure/remove-customer.ts';
import type { Hours, HoursWindow, Location } from './db/schema.ts';
import type { ParticipationMailData, PreviousAppointment } from './participation/get-participation-mail-data.ts';
import type { ListPart } from './list-part.ts';
import type { InvitedCustomer } from './invitation/invited-customer.ts';
import type { BookingPage } from './page/booking-page.ts';
import type { PendingBookingMailData } from './page/pending-booking.ts';
import type { PagePlace } from './page/page-places.ts';
import { maskAddress } from './person/mask-address.ts';
import type { RequestedBooking } from './decision/requested-booking.ts';
import type { OwnBooking } from './person/own-booking.ts';
import type { OwnTime } from './person/list-own-times.ts';
import { type BookingRules, isSelfService } from './slot/booking-rules.ts';
import type { CalendarSubscriptionRow } from './subscription/calendar-subscription.ts';
import type { TimeslotRecord } from './timeslot/timeslot.ts';

export function toTimeslotMessage({ json, appointments }: TimeslotRecord): Timeslot {
  return { json: Buffer.from(json), appointmentsJson: toJsonList(appointments) };
}

export function toMailDataMessage(mailData: ParticipationMailData): GetParticipationMailDataResponse {
  const {
    state,
    startsAt,
    endsAt,
    address,
    priceValue,
    priceCurrency,
    cancellableUntil,
    movableUntil,
    previous,
    ...others
  } = mailData;
  return {
    ...withoutNulls(others),
    state: ParticipationState[state],
    start: new Date(startsAt),
    end: new Date(endsAt),
    address: toLocationMessage(address),
    price: toPriceMessage(priceValue, priceCurrency),
    cancellableUntil: toTime(cancellableUntil),
    movableUntil: toTime(movableUntil),
    previous: previous === null ? undefined : toPreviousMessage(previous),
  };
}

export function toDayMessage({ appointments, ...counts }: Day): ListDayResponse {
  return {
    ...counts,
    appointments: appointments.map(({ startsAt, endsAt, description, address, participations }) => ({
      start: new Date(startsAt),
      end: new Date(endsAt),
      description: description ?? undefined,
      address: toLocationMessage(address),
      participations: participations.map(({ state, ...others }) => ({
        ...withoutNulls(others),
        state: ParticipationState[state],
      })),
    })),
  };
}

function toPreviousMessage({
  startsAt,
  endsAt,
  description,
  address,
}: PreviousAppointment): PreviousAppointmentMessage {
  return {
    start: new Date(startsAt),
    end: new Date(endsAt),
    description: description ?? undefined,
    address: toLocationMessage(address),
  };
}

export function toOwnBookingMessage(booking: OwnBooking): OwnBookingMessage {
  return {
    participationId: booking.participationId,
    version: booking.version,
    state: ParticipationState[booking.state],
    providerId: booking.providerId,
    description: booking.description ?? undefined,
    start: new Date(booking.startsAt),
    end: new Date(booking.endsAt),
    timeZone: booking.timeZone,
    address: toLocationMessage(booking.address),
    price: toPriceMessage(booking.priceValue, booking.priceCurrency),
    name: booking.name ?? '',
    maskedEmail: booking.email === null ? undefined : maskAddress(booking.email),
    language: booking.language ?? undefined,
    now: new Date(booking.now),
    reservedUntil: toTime(booking.reservedUntil),
    cancellableUntil: toTime(booking.cancellableUntil),
    cancellable: booking.cancellable,
    movableUntil: toTime(booking.movableUntil),
    movable: booking.movable,
    confirmable: booking.confirmable,
    attendanceConfirmedAt: toTime(booking.attendanceConfirmedAt),
  };
}

/** Nothing of the person is shown once it cannot be decided any more. */
export function toRequestedBookingMessage(booking: RequestedBooking): RequestedBookingMessage {
  const { state, description, name, email, mobile, note, message, capacity, taken, others } = booking;
  const { confirmed, decidedAt, decidedByName } = booking;
  const waiting = { name: name ?? '', ...withoutNulls({ email, mobile, note, message }), capacity, taken, others };
  return {
    providerId: booking.providerId,
    state: ParticipationState[state],
    description: description ?? undefined,
    start: new Date(booking.startsAt),
    end: new Date(booking.endsAt),
    timeZone: booking.timeZone,
    address: toLocationMessage(booking.address),
    price: toPriceMessage(booking.priceValue, booking.priceCurrency),
    now: new Date(booking.now),
    language: booking.recipient.language,
    shown: booking.shown,
    waiting: state === 'REQUESTED' && Date.parse(booking.now) < Date.parse(booking.startsAt) ? waiting : undefined,
    decision:
      confirmed === null
        ? undefined
        : {
            confirmed,
            at: new Date(decidedAt!),
            by: decidedByName ?? undefined,
            own: booking.decidedBy === booking.recipient.id,
          },
  };
}

export function toOwnTimeMessage({ start, end, place, description, address }: OwnTime): OwnTimeMessage {
  const kind =
    'appointmentReference' in place
      ? ({ $case: 'appointmentReference', value: place.appointmentReference } as const)
      : ({ $case: 'timeslot', value: place } as const);
  return {
    start,
    end,
    place: { kind },
    description: description ?? undefined,
    address: toAddressMessage(address),
  };
}

/** Of an address as slots have it, with each field that it could have. */
function toAddressMessage(address: Location | null): LocationMessage | undefined {
  return toLocationMessage(address !== null && typeof address === 'object' ? withoutNulls(address) : address);
}

function toPriceMessage(value: number | null, currency: string | null): Price | undefined {
  return value === null ? undefined : { value, currency: currency! };
}

function toTime(text: string | null): Date | undefined {
  return text === null ? undefined : new Date(text);
}

export function toRemovedParticipationMessage(record: RemovedParticipation): RemovedParticipationMessage {
  return {
    ...withoutNulls(record),
    start: record.startsAt,
    end: record.endsAt,
    address: toLocationMessage(record.address),
    neverInvited: !record.invited,
  };
}

export function toListMessage({ elements, nextCursor }: ListPart): { json: Buffer; nextCursor: string | undefined } {
  return { json: toJsonList(elements), nextCursor };
}

/** The objects, separated by commas. */
export function toJsonList(elements: string[]): Buffer {
  return Buffer.from(elements.join(','));
}

export function toRulesMessage(rules: BookingRules): BookingRulesMessage {
  return {
    ...withoutNulls(rules),
    confirmation: Confirmation[rules.confirmation],
    askMobile: AskMobile[rules.askMobile],
    access: Access[rules.access],
    selfService: isSelfService(rules),
  };
}

export function toPageMessage({ selfService, invited, ...page }: BookingPage): BookingPageMessage {
  return {
    ...page,
    confirmation: Confirmation[page.confirmation],
    askMobile: AskMobile[page.askMobile],
    selfService: isSelfService({ selfService, page: true }),
    invited: invited && toInvitedMessage(invited),
  };
}

function toInvitedMessage({ name, email, language, bookingsLeft }: InvitedCustomer): InvitedCustomerMessage {
  return { name, maskedEmail: email === undefined ? undefined : maskAddress(email), language, bookingsLeft };
}

export function toPlaceMessage({ address, description, ...place }: PagePlace): PagePlaceMessage {
  return { ...place, description: description ?? undefined, address: toAddressMessage(address) };
}

export function toPendingMailDataMessage(data: PendingBookingMailData): GetPendingBookingMailDataResponse {
  const { startsAt: start, endsAt: end, address, priceValue, priceCurrency } = data;
  const price = toPriceMessage(priceValue, priceCurrency);
  return { ...data, start, end, address: toAddressMessage(address), price };
}

export function toCalendarMessage(row: CalendarSubscriptionRow): Calendar {
  const { reference, resourceReference, contactReference, details, createdAt } = row;
  return {
    reference,
    resourceReference: resourceReference ?? undefined,
    contactReference: contactReference ?? undefined,
    details: CalendarDetails[details],
    createdAt,
  };
}

/** Absent: no window at all. */
export function fromHoursMessage(message: HoursMessage | undefined): Hours {
  const { weekly = [], exceptions = [], validFrom = null, validUntil = null, aheadDays = 1 } = message ?? {};
  return {
    weekly: weekly.map((window) => ({ weekdays: window.weekdays, ...fromWindowMessage(window) })),
    exceptions: exceptions.map(({ from, to, windows, note = null }) => ({
      from,
      to,
      windows: windows.map(fromWindowMessage),
      note,
    })),
    validFrom,
    validUntil,
    aheadDays,
  };
}

function fromWindowMessage({
  from,
  to,
  raster,
  defaultCapacity,
  defaultAcceptBookings,
  address,
  bufferBefore = 0,
  bufferAfter = 0,
}: HoursWindowMessage): HoursWindow {
  return {
    from,
    to,
    raster,
    defaultCapacity,
    defaultAcceptBookings,
    address: fromLocationMessage(address) ?? null,
    bufferBefore,
    bufferAfter,
  };
}

export function fromLocationMessage(message: LocationMessage | undefined): Location | undefined {
  return message?.kind?.value;
}

/** A value that this version does not know is reported as an error in the field that `pointer` names. */
export function fromEnumMessage<Enum extends Record<string, string>>(
  values: Enum,
  value: Enum[keyof Enum],
  code: ErrorCode,
  pointer = '/state',
): EnumName<Enum> {
  const name = enumName(values, value);
  if (name === undefined) throw new DomainError(code, { errors: [{ pointer, detail: 'is not a known value' }] });
  return name;
}

function toLocationMessage(location: Location | null): LocationMessage | undefined {
  if (location === null) return undefined;
  return typeof location === 'string'
    ? { kind: { $case: 'text', value: location } }
    : { kind: { $case: 'address', value: location } };
}
