/** From an empty calendar to an erased customer, with Node 22.18 or newer: KEY=sk_… WEBHOOK_URL=https://crm.example/hooks node afternoon.ts */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { createClient, paginate, ProblemError, verifyWebhook } from '@scheduling/client';

const { SCHEDULING_URL: url = 'http://127.0.0.1:8080', CRM: crmId = 'demo', KEY: key = '', PORT = '3000', WEBHOOK_URL = `http://127.0.0.1:${PORT}` } = process.env;
const scheduling = createClient({ url, crmId, key });
const id = (name: string): string => `${name}-${Date.now()}@crm`; // The IDs of your own database.

// Set up: who runs the studio, the business, and its calendar.
const owner = id('mara');
await scheduling.POST('/user', { body: { reference: owner, email: `${owner}.example`, username: owner.replace('@', '.'), lastName: 'Blum' } });
const account = { ownerReference: owner, accountReference: id('studio'), branch: 'sports-and-leisure' as const };
await scheduling.POST('/account', { body: account });
const providerRef = id('yoga');
await scheduling.POST('/provider', { body: { reference: providerRef, ownerReference: owner, accountReference: account.accountReference, name: 'Studio Blum' } });

// Receive the events of this calendar.
const webhook = { reference: id('webhook'), url: WEBHOOK_URL, providerReference: providerRef };
const secret = (await scheduling.POST('/webhooks', { body: webhook })).data.webhook.secret ?? '';
const cancelled = Promise.withResolvers<void>();
const server = createServer((request, response) => {
  const receiving = text(request).then((body) => {
    const { type, data } = verifyWebhook(secret, body, request.headers);
    console.log(type, data.reference);
    if (type === 'participation.changed' && data.state === 'CANCELED') cancelled.resolve();
  });
  void receiving.then(() => response.writeHead(204).end(), () => response.writeHead(401).end());
}).listen(Number(PORT));

// Publish when the room is free, and list what can be booked.
const params = { path: { providerRef } };
const hours = { reference: id('monday'), resourceReference: 'room-1', start: '2030-03-04T10:00', end: '2030-03-04T13:00', raster: 60 };
const timeslot = { ...hours, defaultCapacity: 1, defaultAcceptBookings: true, state: 'BOOKABLE' as const };
await scheduling.POST('/provider/{providerRef}/timeslots', { params, body: { timeslots: [timeslot] } });
const query = { from: '2030-03-01T00:00', to: '2030-03-31T00:00' };
const slots = await Array.fromAsync(paginate(scheduling, '/provider/{providerRef}/slots', { params: { ...params, query } }));

// Book, move and cancel.
const customer = { customerReference: id('tom'), userName: 'Tom Berg', email: 'tom@example.com', language: 'en' };
const slot = { timeslotReference: timeslot.reference, start: slots[0]!.start, productReference: 'flow', productName: 'Vinyasa Flow' };
const booking = { ...slot, reference: id('booking'), customer, state: 'BOOKED' as const };
await scheduling.POST('/provider/{providerRef}/bookings', { params, body: booking });
const second = { ...booking, reference: id('second') };
await scheduling.POST('/provider/{providerRef}/bookings', { params, body: second }).catch((error: unknown) => {
  if (error instanceof ProblemError && error.code === 'slot.unavailable') console.log('The slot is taken.');
  else throw error;
});
const ofBooking = { path: { providerRef, participationRef: booking.reference } };
const place = { timeslotReference: timeslot.reference, start: slots[1]!.start };
await scheduling.POST('/provider/{providerRef}/bookings/{participationRef}', { params: ofBooking, body: place });
await scheduling.POST('/provider/{providerRef}/participations/{participationRef}', { params: ofBooking, body: { state: 'CANCELED' } });

// When the webhook has told it, erase the customer, and clean up.
await cancelled.promise;
await scheduling.DELETE('/provider/{providerRef}/customers/{customerRef}', { params: { path: { providerRef, customerRef: customer.customerReference } } });
await scheduling.DELETE('/webhooks/{webhookRef}', { params: { path: { webhookRef: webhook.reference } } });
server.close();
