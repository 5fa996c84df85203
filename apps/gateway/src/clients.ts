import {
  AppointmentServiceService,
  BlockServiceService,
  BookingServiceService,
  CalendarSubscriptionServiceService,
  HoursServiceService,
  InvitationServiceService,
  ParticipationServiceService,
  ProviderServiceService,
  SandboxClockServiceService,
  TimeslotServiceService,
} from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { ParticipationMailServiceService, SandboxMailServiceService } from '@scheduling/contracts/notification/v1';
import { EventServiceService, WebhookServiceService } from '@scheduling/contracts/webhook/v1';
import { type ClientOptions, createClient, type Definition } from '@scheduling/rpc';
import { addressed, type AddressedClient } from './addressed-client.ts';
import { requireOwnCrm } from './require-own-crm.ts';

/**
 * The services behind the gateway; it has no data of its own. Whatever a message is made of, it is about the CRM of the
 * request.
 */
export interface Clients extends Disposable {
  identity: AddressedClient<IdentityServiceService>;
  providers: AddressedClient<ProviderServiceService>;
  timeslots: AddressedClient<TimeslotServiceService>;
  hours: AddressedClient<HoursServiceService>;
  blocks: AddressedClient<BlockServiceService>;
  appointments: AddressedClient<AppointmentServiceService>;
  participations: AddressedClient<ParticipationServiceService>;
  bookings: AddressedClient<BookingServiceService>;
  calendars: AddressedClient<CalendarSubscriptionServiceService>;
  invitations: AddressedClient<InvitationServiceService>;
  clocks: AddressedClient<SandboxClockServiceService>;
  customers: AddressedClient<CustomerServiceService>;
  participationMails: AddressedClient<ParticipationMailServiceService>;
  sandboxMails: AddressedClient<SandboxMailServiceService>;
  events: AddressedClient<EventServiceService>;
  webhooks: AddressedClient<WebhookServiceService>;
}

export interface ClientAddresses {
  identityAddress: string;
  calendarAddress: string;
  customerAddress: string;
  notificationAddress: string;
  webhookAddress: string;
}

export function createClients(addresses: ClientAddresses, options: ClientOptions): Clients {
  const stack = new DisposableStack();
  const open = <D extends Definition>(definition: D, service: string, address: string): AddressedClient<D> =>
    addressed(
      definition,
      stack.use(createClient(definition, service, address, { ...options, checkRequest: requireOwnCrm })),
    );
  return {
    identity: open(IdentityServiceService, 'identity', addresses.identityAddress),
    providers: open(ProviderServiceService, 'calendar', addresses.calendarAddress),
    timeslots: open(TimeslotServiceService, 'calendar', addresses.calendarAddress),
    hours: open(HoursServiceService, 'calendar', addresses.calendarAddress),
    blocks: open(BlockServiceService, 'calendar', addresses.calendarAddress),
    appointments: open(AppointmentServiceService, 'calendar', addresses.calendarAddress),
    participations: open(ParticipationServiceService, 'calendar', addresses.calendarAddress),
    bookings: open(BookingServiceService, 'calendar', addresses.calendarAddress),
    calendars: open(CalendarSubscriptionServiceService, 'calendar', addresses.calendarAddress),
    invitations: open(InvitationServiceService, 'calendar', addresses.calendarAddress),
    clocks: open(SandboxClockServiceService, 'calendar', addresses.calendarAddress),
    customers: open(CustomerServiceService, 'customer', addresses.customerAddress),
    participationMails: open(ParticipationMailServiceService, 'notification', addresses.notificationAddress),
    sandboxMails: open(SandboxMailServiceService, 'notification', addresses.notificationAddress),
    events: open(EventServiceService, 'webhook', addresses.webhookAddress),
    webhooks: open(WebhookServiceService, 'webhook', addresses.webhookAddress),
    [Symbol.dispose]: () => stack.dispose(),
  };
}
