/** From an empty calendar to an erased customer, with Node 22.18 or newer: KEY=sk_… WEBHOOK_URL=https://crm.example/hooks node afternoon.ts */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { createClient, ProblemError, verifyWebhook } from '@scheduling/client';

const { SCHEDULING_URL: url = 'http://127.0.0.1:8080', CRM: crmId = 'demo', KEY: key = '', PORT = '3000', WEBHOOK_URL = `http://127.0.0.1:${PORT}` } = process.env;
const scheduling = createClient({ url, crmId, key });
console.log('Connected as', (await scheduling.GET('')).data.crm.crmId);
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

// Say when the room is open, and list what can be booked from next week on.
const params = { path: { providerRef } };
const window = { from: '10:00', to: '13:00', raster: 60, defaultCapacity: 1, defaultAcceptBookings: true };
await scheduling.PUT('/provider/{providerRef}/resource/{resourceRef}/hours', {
  params: { path: { providerRef, resourceRef: 'room-1' } },
  body: { weekly: [{ ...window, weekdays: ['1', '2', '3', '4', '5'] }] },
});
const nextWeek = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10);
const query = { from: `${nextWeek}T00:00`, limit: 2 };
const { data: slots } = await scheduling.GET('/provider/{providerRef}/slots', { params: { ...params, query } });

// Book, move and cancel.
const customer = { customerReference: id('tom'), userName: 'Tom Berg', email: 'tom@example.com', language: 'en' };
const [first, later] = slots.map(({ timeslotReference, start }) => ({ timeslotReference: timeslotReference!, start }));
const product = { productReference: 'flow', productName: 'Vinyasa Flow' };
const booking = { ...first!, ...product, reference: id('booking'), customer, state: 'BOOKED' as const };
await scheduling.POST('/provider/{providerRef}/bookings', { params, body: booking });
const second = { ...booking, reference: id('second') };
await scheduling.POST('/provider/{providerRef}/bookings', { params, body: second }).catch((error: unknown) => {
  if (error instanceof ProblemError && error.code === 'slot.unavailable') console.log('The slot is taken.');
  else throw error;
});
const ofBooking = { path: { providerRef, participationRef: booking.reference } };
await scheduling.POST('/provider/{providerRef}/bookings/{participationRef}', { params: ofBooking, body: later! });
await scheduling.POST('/provider/{providerRef}/participations/{participationRef}', { params: ofBooking, body: { state: 'CANCELED' } });

// When the webhook has told it, erase the customer, and clean up.
await cancelled.promise;
const ofCustomer = { params: { path: { providerRef, customerRef: customer.customerReference } } };
await scheduling.DELETE('/provider/{providerRef}/customers/{customerRef}', ofCustomer);
const { response } = await scheduling.GET('/provider/{providerRef}/customers/{customerRef}', ofCustomer);
if (response.status === 204) console.log('The customer is gone.');
await scheduling.DELETE('/webhooks/{webhookRef}', { params: { path: { webhookRef: webhook.reference } } });
server.close();
