import { path } from '@scheduling/test-stack/client';
import type { Practice } from '@scheduling/test-stack/crm';

/** An invitation as the API shows it. */
export interface Invitation {
  id: string;
  url: string;
  productReference: string;
  bookings: number;
  booked: number;
  expiresAt: string;
  createdAt: string;
}

/** Where the invitations of a customer are. */
export function invitationsAt({ at, customer }: Pick<Practice, 'at' | 'customer'>): string {
  return at + path`/customers/${customer}/invitations`;
}

/** So many days from now, as a local date-time of a request. */
export function inDays(days: number): string {
  return Temporal.Now.plainDateTimeISO('Europe/Berlin').add({ days }).toString({ smallestUnit: 'minute' });
}

export function newInvitation({ product }: Practice, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { productReference: product, bookings: 2, expiresAt: inDays(30), ...fields };
}

/** Opens the booking page of a provider, on which its product can be booked, and returns its address. */
export async function openBookingPage(practice: Practice, rules: Record<string, unknown> = {}): Promise<string> {
  const offer = {
    productReference: practice.product,
    name: 'Massage',
    duration: 30,
    resources: [{ resourceReference: practice.resource, name: 'Room' }],
  };
  const { status, body, text } = await practice.crm.put<{ bookingRules: { pageUrl: string } }>(
    `${practice.at}/booking-rules`,
    { page: true, offers: [offer], ...rules },
  );
  if (status !== 200) throw new Error(`expected 200, was ${status}: ${text}`);
  return body.bookingRules.pageUrl;
}

/** Invites the customer of a practice with a booking page. */
export async function invite(practice: Practice, fields: Record<string, unknown> = {}): Promise<Invitation> {
  const { status, body, text } = await practice.crm.post<{ invitation: Invitation }>(
    invitationsAt(practice),
    newInvitation(practice, fields),
  );
  if (status !== 201) throw new Error(`expected 201, was ${status}: ${text}`);
  return body.invitation;
}
