import { AppointmentServiceService, BookingServiceService, ParticipationServiceService, SandboxClockServiceService, TimeslotServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { ParticipationMailServiceService, SandboxMailServiceService } from '@scheduling/contracts/notification/v1';
import { EventServiceService, WebhookServiceService } from '@scheduling/contracts/webhook/v1';
import { type ClientOptions, createClient, type RpcClient } from '@scheduling/rpc';

/** The services behind the gateway; it has no data of its own. */
export interface Clients extends Disposable {
  identity: RpcClient<IdentityServiceService>;
  timeslots: RpcClient<TimeslotServiceService>;
  appointments: RpcClient<AppointmentServiceService>;
  participations: RpcClient<ParticipationServiceService>;
  bookings: RpcClient<BookingServiceService>;
  clocks: RpcClient<SandboxClockServiceService>;
  customers: RpcClient<CustomerServiceService>;
  participationMails: RpcClient<ParticipationMailServiceService>;
  sandboxMails: RpcClient<SandboxMailServiceService>;
  events: RpcClient<EventServiceService>;
  webhooks: RpcClient<WebhookServiceService>;
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
  return {
    identity: stack.use(createClient(IdentityServiceService, 'identity', addresses.identityAddress, options)),
    timeslots: stack.use(createClient(TimeslotServiceService, 'calendar', addresses.calendarAddress, options)),
    appointments: stack.use(createClient(AppointmentServiceService, 'calendar', addresses.calendarAddress, options)),
    participations: stack.use(createClient(ParticipationServiceService, 'calendar', addresses.calendarAddress, options)),
    bookings: stack.use(createClient(BookingServiceService, 'calendar', addresses.calendarAddress, options)),
    clocks: stack.use(createClient(SandboxClockServiceService, 'calendar', addresses.calendarAddress, options)),
    customers: stack.use(createClient(CustomerServiceService, 'customer', addresses.customerAddress, options)),
    participationMails: stack.use(createClient(ParticipationMailServiceService, 'notification', addresses.notificationAddress, options)),
    sandboxMails: stack.use(createClient(SandboxMailServiceService, 'notification', addresses.notificationAddress, options)),
    events: stack.use(createClient(EventServiceService, 'webhook', addresses.webhookAddress, options)),
    webhooks: stack.use(createClient(WebhookServiceService, 'webhook', addresses.webhookAddress, options)),
    [Symbol.dispose]: () => stack.dispose(),
  };
}
