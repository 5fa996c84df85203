import type { Service } from '@scheduling/runtime';

/**
 * The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows
 * the same calls.
 */
export const callers = {
  ProviderService: {
    deleteProvider: ['gateway'],
  },
  TimeslotService: {
    createTimeslots: ['gateway'],
    listTimeslots: ['gateway'],
    updateTimeslot: ['gateway'],
    deleteTimeslot: ['gateway'],
  },
  AppointmentService: {
    getAppointment: ['gateway'],
    createAppointment: ['gateway'],
    createSeries: ['gateway'],
    listAppointments: ['gateway'],
    updateAppointment: ['gateway'],
    cancelAppointment: ['gateway'],
    deleteAppointments: ['gateway'],
  },
  ParticipationService: {
    getParticipation: ['gateway', 'notification'],
    listParticipations: ['gateway'],
    createParticipation: ['gateway'],
    updateParticipation: ['gateway'],
    getParticipationMailData: ['notification'],
    getParticipationLink: ['gateway'],
    issueParticipationLink: ['notification'],
    issueDecisionLink: ['notification'],
    listDay: ['notification'],
  },
  PersonService: {
    getOwnBooking: ['page'],
    cancelOwnBooking: ['page'],
    confirmAttendance: ['page'],
    listOwnTimes: ['page'],
    moveOwnBooking: ['page'],
    readCalendar: ['page'],
  },
  BookingPageService: {
    getBookingPage: ['page'],
    listPageTimes: ['page'],
    listNearestPageTimes: ['page'],
    choosePageTime: ['page'],
    getPageChoice: ['page'],
    bookPageTime: ['page'],
    getPageBooking: ['page'],
    getPendingBooking: ['page'],
    confirmPendingBooking: ['page'],
    getPendingBookingMailData: ['notification'],
  },
  InvitationService: {
    createInvitation: ['gateway'],
    listInvitations: ['gateway'],
    deleteInvitation: ['gateway'],
  },
  HoursService: {
    putHours: ['gateway'],
    putHoursOfResources: ['gateway'],
    getHours: ['gateway'],
    deleteHours: ['gateway'],
  },
  BlockService: {
    createBlock: ['gateway'],
    listBlocks: ['gateway'],
    deleteBlock: ['gateway'],
  },
  CalendarSubscriptionService: {
    createCalendar: ['gateway'],
    listCalendars: ['gateway'],
    deleteCalendar: ['gateway'],
    replaceCalendarSecret: ['gateway'],
  },
  DecisionService: {
    getRequestedBooking: ['page'],
    decideRequestedBooking: ['page'],
  },
  BookingService: {
    listSlots: ['gateway'],
    bookSlot: ['gateway'],
    changeBooking: ['gateway'],
    getBookingRules: ['gateway'],
    updateBookingRules: ['gateway'],
  },
  SandboxClockService: {
    getSandboxClock: ['gateway'],
    setSandboxClock: ['gateway'],
  },
  ReferenceService: {
    listReferences: ['webhook'],
  },
  CustomerRemovalService: {
    removeCustomer: ['customer'],
    findEmbeddedParticipations: ['customer'],
    forgetAddress: ['customer'],
  },
  CustomerCopyService: {
    forgetReference: ['customer'],
    refreshCustomer: ['customer'],
    getBooked: ['customer'],
    excludeCustomer: ['customer'],
  },
} satisfies Record<string, Record<string, Service[]>>;
