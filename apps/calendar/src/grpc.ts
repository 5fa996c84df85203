import {
  AppointmentState,
  AppointmentServiceService,
  AskMobile,
  Access,
  BlockServiceService,
  BookingPageServiceService,
  InvitationServiceService,
  BookingServiceService,
  type BookSlotRequest,
  type ChangeBookingResponse,
  CalendarDetails,
  CalendarSubscriptionServiceService,
  Confirmation,
  CustomerCopyServiceService,
  CustomerRemovalServiceService,
  DecisionServiceService,
  type DeleteAppointmentsRequest,
  HoursOverviewServiceService,
  HoursServiceService,
  MailLinkServiceService,
  type OwnPlace as OwnPlaceMessage,
  ParticipationServiceService,
  ParticipationState,
  PersonServiceService,
  ProviderErasureServiceService,
  ProviderServiceService,
  ReferenceServiceService,
  SandboxClockServiceService,
  TimeslotServiceService,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import {
  type HostedService,
  hostOperatorService,
  hostService,
  metadataPairs,
  partOfPages,
  type Turn,
  withoutNulls,
} from '@scheduling/rpc';
import { cancelAppointment } from './appointment/cancel-appointment.ts';
import { createAppointment } from './appointment/create-appointment.ts';
import { createSeries } from './appointment/create-series.ts';
import { type AppointmentDeletion, deleteAppointments } from './appointment/delete-appointments.ts';
import { getAppointment } from './appointment/get-appointment.ts';
import { listAppointments } from './appointment/list-appointments.ts';
import { updateAppointment } from './appointment/update-appointment.ts';
import { createBlock } from './block/create-block.ts';
import { deleteBlock } from './block/delete-block.ts';
import { listBlocks } from './block/list-blocks.ts';
import { callers } from './callers.ts';
import { type NamedCustomer, refreshCustomer } from './customer/customer-copy.ts';
import { excludeCustomer, isBooked } from './customer/exclude-customer.ts';
import { forgetReference } from './customer/forget-reference.ts';
import { listDay } from './daily-list/list-day.ts';
import { removeCustomer } from './erasure/remove-customer.ts';
import { decideRequest } from './decision/decide-request.ts';
import { requireRequestedBooking } from './decision/requested-booking.ts';
import type { CalendarDependencies } from './dependencies.ts';
import {
  fromEnumMessage,
  fromHoursMessage,
  fromLocationMessage,
  toCalendarMessage,
  toDayMessage,
  toJsonList,
  toListMessage,
  toMailDataMessage,
  toOwnBookingMessage,
  toRequestedBookingMessage,
  toOwnTimeMessage,
  toPageMessage,
  toPendingMailDataMessage,
  toPlaceMessage,
  toRemovedParticipationMessage,
  toRulesMessage,
  toTimeslotMessage,
} from './grpc-messages.ts';
import { deleteHours } from './hours/delete-hours.ts';
import { getHours } from './hours/get-hours.ts';
import { listHours } from './hours/list-hours.ts';
import { putHours } from './hours/put-hours.ts';
import { createInvitation } from './invitation/create-invitation.ts';
import { deleteInvitation } from './invitation/delete-invitation.ts';
import { listInvitations } from './invitation/list-invitations.ts';
import { bookPageTime } from './page/book-page-time.ts';
import { openBookingPage, readClosedPage } from './page/booking-page.ts';
import { choosePageTime } from './page/choose-page-time.ts';
import { getPageChoice } from './page/get-page-choice.ts';
import { listNearestPageTimes, listPageTimes } from './page/list-page-times.ts';
import {
  confirmPendingBooking,
  forgetAddress,
  getPendingBooking,
  getPendingBookingMailData,
} from './page/pending-booking.ts';
import { readReceipt } from './page/receipt.ts';
import { createParticipation } from './participation/create-participation.ts';
import { findEmbeddedParticipations } from './participation/find-embedded-participations.ts';
import { getParticipation } from './participation/get-participation.ts';
import { getParticipationMailData } from './participation/get-participation-mail-data.ts';
import { listParticipations } from './participation/list-participations.ts';
import { updateParticipation } from './participation/update-participation.ts';
import { cancelOwnBooking, confirmAttendance, moveOwnBooking } from './person/change-own-booking.ts';
import { listOwnTimes } from './person/list-own-times.ts';
import { requireOwnBooking } from './person/own-booking.ts';
import type { OwnPlace } from './person/own-place.ts';
import { getParticipationLink, issueDecisionLink, issueParticipationLink } from './person/participation-link.ts';
import { deleteProvider } from './provider/delete-provider.ts';
import { eraseProvider } from './provider/erase-provider.ts';
import { listReferences } from './reference/list-references.ts';
import { getSandboxClock, setSandboxClock } from './sandbox/sandbox-clock.ts';
import { bookSlot, type NewBooking } from './slot/book-slot.ts';
import type { Booking } from './slot/booking.ts';
import { getBookingRules, listProvidersWithoutLink, updateBookingRules } from './slot/booking-rules.ts';
import { changeBooking } from './slot/change-booking.ts';
import { listSlots } from './slot/list-slots.ts';
import type { Place } from './slot/place.ts';
import { writeSlot } from './slot/slot.ts';
import { createCalendar } from './subscription/create-calendar.ts';
import { deleteCalendar } from './subscription/delete-calendar.ts';
import { listCalendars } from './subscription/list-calendars.ts';
import { readCalendar } from './subscription/read-calendar.ts';
import { replaceCalendarSecret } from './subscription/replace-calendar-secret.ts';
import { createTimeslots } from './timeslot/create-timeslots.ts';
import { deleteTimeslot } from './timeslot/delete-timeslot.ts';
import { listTimeslots } from './timeslot/list-timeslots.ts';
import { updateTimeslot } from './timeslot/update-timeslot.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostCalendarServices(dependencies: CalendarDependencies): HostedService[] {
  return [
    hostTimeslotService(dependencies),
    hostAppointmentService(dependencies),
    hostParticipationService(dependencies),
    hostPersonService(dependencies),
    hostDecisionService(dependencies),
    hostBookingPageService(dependencies),
    hostBookingService(dependencies),
    hostSandboxClockService(dependencies),
    hostHoursService(dependencies),
    hostBlockService(dependencies),
    hostProviderService(dependencies),
    hostInvitationService(dependencies),
    hostCalendarSubscriptionService(dependencies),
    hostReferenceService(dependencies),
    hostCustomerRemovalService(dependencies),
    hostCustomerCopyService(dependencies),
  ];
}

function hostTimeslotService(dependencies: CalendarDependencies): HostedService {
  return hostService(TimeslotServiceService, callers.TimeslotService, {
    createTimeslots: async (request) => {
      const timeslots = request.timeslots.map((timeslot, index) => ({
        ...timeslot,
        address: fromLocationMessage(timeslot.address),
        state: fromEnumMessage(TimeslotState, timeslot.state, 'timeslot.invalid', `/timeslots/${index}/state`),
      }));
      const stored = await createTimeslots(dependencies, { ...request, timeslots });
      return { ...stored, timeslots: stored.timeslots.map(toTimeslotMessage) };
    },
    listTimeslots: async (request) => {
      const part = await listTimeslots(dependencies, request);
      return { ...part, timeslots: part.timeslots.map(toTimeslotMessage) };
    },
    updateTimeslot: async (request) => {
      const state = request.state && fromEnumMessage(TimeslotState, request.state, 'timeslot.invalid');
      const { timeslot, continuation } = await updateTimeslot(dependencies, { ...request, state });
      return { timeslot: toTimeslotMessage(timeslot), continuation };
    },
    deleteTimeslot: async (request) => {
      await deleteTimeslot(dependencies, request);
      return {};
    },
  });
}

function hostAppointmentService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    AppointmentServiceService,
    callers.AppointmentService,
    {
      getAppointment: async (request) => ({ json: Buffer.from(await getAppointment(dependencies, request)) }),
      createAppointment: async (request) => {
        const participations = request.participations.map((participation, index) => ({
          ...participation,
          state: fromEnumMessage(
            ParticipationState,
            participation.state,
            'appointment.invalid',
            `/participations/${index}/state`,
          ),
          metadata: metadataPairs(participation.metadata),
        }));
        const address = fromLocationMessage(request.address);
        const metadata = metadataPairs(request.metadata);
        const content = { ...request, address, participations, metadata };
        const { appointment, created } = await createAppointment(dependencies, content);
        return { created, json: Buffer.from(appointment) };
      },
      createSeries: async (request) => {
        const address = fromLocationMessage(request.address);
        const metadata = metadataPairs(request.metadata);
        const { seriesId, appointments } = await createSeries(dependencies, { ...request, address, metadata });
        return { seriesId, json: toJsonList(appointments) };
      },
      listAppointments: async function* (request, signal) {
        const state = request.state && fromEnumMessage(AppointmentState, request.state, 'appointment.invalid');
        const metadata = metadataPairs(request.metadata) ?? undefined;
        for await (const part of listAppointments(dependencies, { ...request, state, metadata }, signal))
          yield toListMessage(part);
      },
      updateAppointment: async ({ noAddress, ...request }) => {
        const address = noAddress ? null : fromLocationMessage(request.address);
        const metadata = metadataPairs(request.metadata);
        return { json: Buffer.from(await updateAppointment(dependencies, { ...request, address, metadata })) };
      },
      cancelAppointment: async (request) => ({ json: Buffer.from(await cancelAppointment(dependencies, request)) }),
      deleteAppointments: async ({ crmId, providerReference, target }) => {
        await deleteAppointments(dependencies, { crmId, providerReference, target: readTarget(target) });
        return {};
      },
    },
    { light: ['createAppointment'] },
  );
}

function hostParticipationService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    ParticipationServiceService,
    callers.ParticipationService,
    {
      getParticipation: async (request) => {
        const { participation, id } = await getParticipation(dependencies, request);
        return { json: Buffer.from(participation), id };
      },
      listParticipations: async function* (request, signal) {
        const state = request.state && fromEnumMessage(ParticipationState, request.state, 'participation.invalid');
        const metadata = metadataPairs(request.metadata) ?? undefined;
        for await (const part of listParticipations(dependencies, { ...request, state, metadata }, signal))
          yield toListMessage(part);
      },
      createParticipation: async (request) => {
        const state = fromEnumMessage(ParticipationState, request.state, 'participation.invalid');
        const metadata = metadataPairs(request.metadata);
        const work = createParticipation(dependencies, { ...request, state, metadata });
        const { participation, created } = await dependencies.bookings.countRefusal(request.crmId, work);
        return { json: Buffer.from(participation), created };
      },
      updateParticipation: async (request) => {
        const state =
          request.state === ParticipationState.UNSPECIFIED
            ? undefined
            : fromEnumMessage(ParticipationState, request.state, 'participation.invalid');
        const metadata = metadataPairs(request.metadata);
        const work = updateParticipation(dependencies, { ...request, state, metadata });
        const { participation } = await dependencies.bookings.countRefusal(request.crmId, work);
        return { json: Buffer.from(participation) };
      },
      getParticipationMailData: async (request) =>
        toMailDataMessage(await getParticipationMailData(dependencies, request)),
      getParticipationLink: async (request) => ({ token: await getParticipationLink(dependencies, request) }),
      issueDecisionLink: async (request) => ({ token: issueDecisionLink(dependencies, request) }),
      issueParticipationLink: async (request) => ({ token: issueParticipationLink(dependencies, request) }),
      listDay: async (request) => toDayMessage(await listDay(dependencies, request)),
    },
    { light: ['createParticipation', 'updateParticipation'] },
  );
}

function hostPersonService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    PersonServiceService,
    callers.PersonService,
    {
      getOwnBooking: async ({ token }) => ({
        booking: toOwnBookingMessage(await requireOwnBooking(dependencies, token)),
      }),
      cancelOwnBooking: async (request) => {
        const { booking, alreadyCancelled } = await cancelOwnBooking(dependencies, request);
        return { booking: toOwnBookingMessage(booking), alreadyCancelled };
      },
      confirmAttendance: async (request) => ({
        booking: toOwnBookingMessage(await confirmAttendance(dependencies, request)),
      }),
      listOwnTimes: async (request) => {
        const { booking, times, ...week } = await listOwnTimes(dependencies, request);
        return { ...week, booking: toOwnBookingMessage(booking), times: times.map(toOwnTimeMessage) };
      },
      moveOwnBooking: async ({ place, ...request }) => {
        const moved = await moveOwnBooking(dependencies, { ...request, place: readOwnPlace(place) });
        return { booking: toOwnBookingMessage(moved) };
      },
      readCalendar: async (request) => {
        const { events, resourceReference, contactReference, ...calendar } = await readCalendar(dependencies, request);
        return {
          ...calendar,
          resourceReference: resourceReference ?? undefined,
          contactReference: contactReference ?? undefined,
          events: events === undefined ? undefined : Buffer.from(events),
        };
      },
    },
    {
      light: ['getOwnBooking', 'cancelOwnBooking', 'confirmAttendance', 'moveOwnBooking'],
      turnOf: (request) => turnOfPages(dependencies, request),
    },
  );
}

/**
 * Those of a CRM's pages. A token that is none of ours needs no query. Whose a calendar is would take one, so all
 * calendars together have the turns of one CRM.
 */
function turnOfPages(
  { links }: CalendarDependencies,
  request: { token: string } | { secret: string },
): Turn | undefined {
  if ('secret' in request) return { owner: 'calendars' };
  const link = links.read(request.token);
  return link && { owner: `pages of ${link.crmId}`, part: partOfPages };
}

function hostDecisionService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    DecisionServiceService,
    callers.DecisionService,
    {
      getRequestedBooking: async ({ token }) => ({
        booking: toRequestedBookingMessage(await requireRequestedBooking(dependencies, token)),
      }),
      decideRequestedBooking: async (request) => ({
        booking: toRequestedBookingMessage(await decideRequest(dependencies, request)),
      }),
    },
    {
      light: ['getRequestedBooking', 'decideRequestedBooking'],
      turnOf: (request) => turnOfPages(dependencies, request),
    },
  );
}

function hostBookingPageService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    BookingPageServiceService,
    callers.BookingPageService,
    {
      getBookingPage: async ({ closed, ...visit }) => {
        const page =
          closed === true ? readClosedPage(dependencies, visit.providerId) : openBookingPage(dependencies, visit);
        return { page: toPageMessage(await page) };
      },
      listPageTimes: async (request) => {
        const { page, ...week } = await listPageTimes(dependencies, request);
        return { page: toPageMessage(page), ...week };
      },
      listNearestPageTimes: async ({ start, ...request }) => {
        const { page, times } = await listNearestPageTimes(dependencies, { ...request, start: requireStart(start) });
        return { page: toPageMessage(page), times };
      },
      choosePageTime: async ({ start, ...request }) => {
        const { page, choice, place } = await choosePageTime(dependencies, { ...request, start: requireStart(start) });
        return { page: toPageMessage(page), choice, place: toPlaceMessage(place) };
      },
      getPageChoice: async ({ start, ...request }) => {
        const { page, place } = await getPageChoice(dependencies, { ...request, start: requireStart(start) });
        return { page: toPageMessage(page), place: place && toPlaceMessage(place) };
      },
      bookPageTime: async ({ start, ...request }) => {
        const { page, ...sent } = await bookPageTime(dependencies, { ...request, start: requireStart(start) });
        return { page: toPageMessage(page), ...sent };
      },
      getPageBooking: async (request) => {
        const { page, booking, token, email } = await readReceipt(dependencies, request);
        const resourceReference = booking?.resourceReference;
        const shown = { booking: booking && toOwnBookingMessage(booking), resourceReference };
        return { page: toPageMessage(page), ...shown, token, email };
      },
      getPendingBooking: async ({ token }) => {
        const { page, pending, place, receipt } = await getPendingBooking(dependencies, token);
        const { choice, offer, resourceReference, startsAt: start, name, note, language } = pending;
        const shown = { choice, offer, resourceReference, start, name, note: note ?? undefined, language, receipt };
        return { page: toPageMessage(page), place: place && toPlaceMessage(place), ...shown };
      },
      confirmPendingBooking: async ({ start, ...request }) => {
        const confirmed = { ...request, start: requireStart(start) };
        const { page, receipt } = await confirmPendingBooking(dependencies, confirmed);
        return { page: toPageMessage(page), receipt };
      },
      getPendingBookingMailData: async (request) =>
        toPendingMailDataMessage(await getPendingBookingMailData(dependencies, request)),
    },
    {
      turnOf: (request) => {
        if (!('providerId' in request))
          return 'token' in request ? turnOfPages(dependencies, request) : { owner: request.crmId };
        // A page that this process has not seen yet has the turns of all such.
        return { owner: `pages of ${dependencies.pageTenants.get(request.providerId) ?? ''}`, part: partOfPages };
      },
    },
  );
}

/** Pages always have one. Whoever writes addresses by hand may name a year that no calendar has. */
function requireStart(start: Date | undefined): Date {
  if (start === undefined)
    throw new DomainError('slot.invalid', { errors: [{ pointer: '/start', detail: 'is required' }] });
  const year = start.getUTCFullYear();
  if (!(year >= 1970 && year < 9_999)) throw new DomainError('slot.unavailable', { reason: 'closed' });
  return start;
}

function hostInvitationService(dependencies: CalendarDependencies): HostedService {
  return hostService(InvitationServiceService, callers.InvitationService, {
    createInvitation: async (request) => ({ invitation: await createInvitation(dependencies, request) }),
    listInvitations: async (request) => ({ invitations: await listInvitations(dependencies, request) }),
    deleteInvitation: async (request) => {
      await deleteInvitation(dependencies, request);
      return {};
    },
  });
}

function hostCalendarSubscriptionService(dependencies: CalendarDependencies): HostedService {
  return hostService(CalendarSubscriptionServiceService, callers.CalendarSubscriptionService, {
    createCalendar: async ({ resourceReference, contactReference, details, ...request }) => {
      const content = {
        resourceReference: resourceReference ?? null,
        contactReference: contactReference ?? null,
        details: fromEnumMessage(CalendarDetails, details, 'calendar.invalid', '/details'),
      };
      const { row, ...created } = await createCalendar(dependencies, { ...request, content });
      return { calendar: toCalendarMessage(row), ...created };
    },
    listCalendars: async (request) => ({
      calendars: (await listCalendars(dependencies, request)).map(toCalendarMessage),
    }),
    deleteCalendar: async (request) => {
      await deleteCalendar(dependencies, request);
      return {};
    },
    replaceCalendarSecret: async (request) => {
      const { row, secret } = await replaceCalendarSecret(dependencies, request);
      return { calendar: toCalendarMessage(row), secret };
    },
  });
}

function hostBookingService(dependencies: CalendarDependencies): HostedService {
  return hostService(
    BookingServiceService,
    callers.BookingService,
    {
      listSlots: async function* (request, signal) {
        for await (const part of listSlots(dependencies, request, signal)) yield toListMessage(part);
      },
      bookSlot: async (request) => {
        const work = bookSlot(dependencies, toNewBooking(request));
        const { created, ...booking } = await dependencies.bookings.countRefusal(request.crmId, work);
        return { ...toBookingMessage(booking), created };
      },
      changeBooking: async ({ place, customer, ...request }) => {
        const change = { ...request, place: place && readPlace(place), customer: readCustomer(customer) };
        const work = changeBooking(dependencies, change);
        return toBookingMessage(await dependencies.bookings.countRefusal(request.crmId, work));
      },
      getBookingRules: async (request) => ({ rules: toRulesMessage(await getBookingRules(dependencies, request)) }),
      updateBookingRules: async ({
        noHorizon,
        defaultSelfService,
        noDailyList,
        reminders,
        offers,
        embedOn,
        ...request
      }) => {
        const confirmation =
          request.confirmation &&
          fromEnumMessage(Confirmation, request.confirmation, 'booking_rules.invalid', '/confirmation');
        const askMobile =
          request.askMobile && fromEnumMessage(AskMobile, request.askMobile, 'booking_rules.invalid', '/askMobile');
        const access = request.access && fromEnumMessage(Access, request.access, 'booking_rules.invalid', '/access');
        const horizon = noHorizon ? null : request.horizon;
        const selfService = defaultSelfService ? null : request.selfService;
        const dailyList = noDailyList ? null : request.dailyList;
        const lists = { reminders: reminders?.minutes, offers: offers?.offers, embedOn: embedOn?.origins };
        const update = { ...request, ...lists, confirmation, askMobile, access, horizon, selfService, dailyList };
        return { rules: toRulesMessage(await updateBookingRules(dependencies, update)) };
      },
    },
    { light: ['bookSlot', 'changeBooking'] },
  );
}

function hostHoursService(dependencies: CalendarDependencies): HostedService {
  return hostService(HoursServiceService, callers.HoursService, {
    putHours: async ({ resourceReference, hours: message, ...key }) => {
      const resourceReferences = [resourceReference];
      const { hours, conflicts } = await putHours(dependencies, {
        ...key,
        resourceReferences,
        hours: fromHoursMessage(message),
      });
      return { json: toJsonList(hours), conflicts };
    },
    putHoursOfResources: async ({ hours: message, ...request }) => {
      const { hours, conflicts } = await putHours(dependencies, { ...request, hours: fromHoursMessage(message) });
      return { json: toJsonList(hours), conflicts };
    },
    getHours: async (request) => ({ json: Buffer.from(await getHours(dependencies, request)) }),
    deleteHours: async (request) => ({ conflicts: await deleteHours(dependencies, request) }),
  });
}

function hostProviderService(dependencies: CalendarDependencies): HostedService {
  return hostService(ProviderServiceService, callers.ProviderService, {
    deleteProvider: async ({ crmId, reference: value }) => {
      await deleteProvider(dependencies, { crmId, key: { $case: 'reference', value } });
      return {};
    },
  });
}

function hostBlockService(dependencies: CalendarDependencies): HostedService {
  return hostService(BlockServiceService, callers.BlockService, {
    createBlock: async (request) => {
      const { block, ...created } = await createBlock(dependencies, request);
      return { json: Buffer.from(block), ...created };
    },
    listBlocks: async function* (request, signal) {
      for await (const part of listBlocks(dependencies, request, signal)) yield toListMessage(part);
    },
    deleteBlock: async (request) => {
      await deleteBlock(dependencies, request);
      return {};
    },
  });
}

export function hostHoursOverviewService(dependencies: CalendarDependencies): HostedService {
  return hostOperatorService(HoursOverviewServiceService, {
    listHours: async (request) => ({ hours: await listHours(dependencies, request) }),
  });
}

export function hostProviderErasureService(dependencies: CalendarDependencies): HostedService {
  return hostOperatorService(ProviderErasureServiceService, {
    eraseProvider: (request) => eraseProvider(dependencies, request),
  });
}

export function hostMailLinkService(dependencies: CalendarDependencies): HostedService {
  return hostOperatorService(MailLinkServiceService, {
    listProvidersWithoutLink: async ({ providers }) => ({
      providers: await listProvidersWithoutLink(dependencies, providers),
    }),
  });
}

function hostSandboxClockService(dependencies: CalendarDependencies): HostedService {
  return hostService(SandboxClockServiceService, callers.SandboxClockService, {
    getSandboxClock: async ({ crmId }) => ({ clock: await getSandboxClock(dependencies, crmId) }),
    setSandboxClock: async (request) => ({ clock: await setSandboxClock(dependencies, request) }),
  });
}

function hostReferenceService(dependencies: CalendarDependencies): HostedService {
  return hostService(ReferenceServiceService, callers.ReferenceService, {
    listReferences: async (request) => {
      const { participations, appointments } = await listReferences(dependencies, request);
      return { participations: participations.map(withoutNulls), appointments };
    },
  });
}

function hostCustomerRemovalService(dependencies: CalendarDependencies): HostedService {
  return hostService(CustomerRemovalServiceService, callers.CustomerRemovalService, {
    removeCustomer: async (request) => ({
      removed: (await removeCustomer(dependencies, request)).map(toRemovedParticipationMessage),
    }),
    forgetAddress: async (request) => {
      await forgetAddress(dependencies, request);
      return {};
    },
    findEmbeddedParticipations: async (request) => ({
      participationIds: await findEmbeddedParticipations(dependencies, request),
    }),
  });
}

function hostCustomerCopyService(dependencies: CalendarDependencies): HostedService {
  return hostService(CustomerCopyServiceService, callers.CustomerCopyService, {
    forgetReference: async (request) => ({ version: await forgetReference(dependencies, request) }),
    refreshCustomer: async (request) => {
      await refreshCustomer(dependencies, request);
      return {};
    },
    getBooked: async (request) => ({ booked: await isBooked(dependencies.database.kysely, request) }),
    excludeCustomer: async (request) => ({ booked: !(await excludeCustomer(dependencies, request)) }),
  });
}

function toBookingMessage({ participation, slot }: Booking): ChangeBookingResponse {
  return { participationJson: Buffer.from(participation), slotJson: Buffer.from(writeSlot(slot)) };
}

function toNewBooking({ place, customer, state, ...request }: BookSlotRequest): NewBooking {
  return {
    ...request,
    place: readPlace(place),
    state: fromEnumMessage(ParticipationState, state, 'booking.invalid'),
    customer: readCustomer(customer),
    metadata: metadataPairs(request.metadata),
  };
}

function readCustomer(customer: BookSlotRequest['customer']): NamedCustomer | undefined {
  return customer?.$case === 'customerReference' ? { customerReference: customer.value } : customer?.value;
}

function readPlace(place: BookSlotRequest['place']): Place {
  switch (place?.$case) {
    case 'timeslot':
      return place.value;
    case 'appointmentReference':
      return { appointmentReference: place.value };
    case undefined:
      throw new DomainError('booking.invalid', { text: 'The request names neither a timeslot nor an appointment.' });
  }
}

function readOwnPlace(place: OwnPlaceMessage | undefined): OwnPlace {
  switch (place?.kind?.$case) {
    case 'timeslot': {
      const { timeslotReference, start } = place.kind.value;
      if (start === undefined) break;
      return { timeslotReference, start };
    }
    case 'appointmentReference':
      return { appointmentReference: place.kind.value };
    case undefined:
      break;
  }
  throw new DomainError('booking.invalid', { text: 'The request names neither a timeslot nor an appointment.' });
}

function readTarget(target: DeleteAppointmentsRequest['target']): AppointmentDeletion['target'] {
  switch (target?.$case) {
    case 'appointmentReference':
      return { reference: target.value };
    case 'seriesId':
      return { seriesId: target.value };
    case undefined:
      throw new DomainError('appointment.invalid', { text: 'The request names neither an appointment nor a series.' });
  }
}
