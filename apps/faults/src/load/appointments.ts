import { path } from './client.ts';
import type { Operation } from './journal.ts';
import type { Appointment, Provider } from './model.ts';
import type { Worker } from './worker.ts';

const hourMs = 3_600_000;
/** Far enough ahead that nothing of it is over at the end. */
export const firstDayMs = Date.UTC(2031, 2, 3);
/** The newest ones, which all workers of the provider book. */
const openCount = 6;

/** With a capacity of 1 to 3, or of 0 as by default, and now and then with participants. */
export async function createAppointment(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const { tenant } = provider;
  const reference = tenant.newReference('appointment');
  const operation = journal.begin('create appointment');
  const embedded = Array.from({ length: random.chance(0.25) ? random.integer(1, 3) : 0 }, () => {
    const participant = tenant.newReference('embedded');
    return { reference: participant, email: `${participant.split('@')[0]}@${tenant.mark.toLowerCase()}.example` };
  });
  const capacity = random.chance(0.1) ? 0 : random.integer(1, 3);
  const appointment: Appointment = {
    provider,
    reference,
    capacity,
    created: operation,
    embedded,
    updates: [],
    cancelled: undefined,
    deleted: undefined,
  };
  provider.appointments.push(appointment);
  const startMs = firstDayMs + provider.appointments.length * hourMs;
  const body = {
    reference,
    start: timeOf(startMs),
    end: timeOf(startMs + hourMs),
    capacity,
    resourceReference: 'room@load',
    productReference: 'product@load',
    productName: `${tenant.mark} product`,
    participations: embedded.map((participant) => ({
      ...participant,
      name: `${tenant.mark} participant`,
      state: 'BOOKED',
    })),
  };
  await tenant.client.change(
    operation,
    { method: 'POST', path: `${provider.at}/appointments`, body },
    { withKey: random.chance(0.3) },
  );
}

/** One that somebody of the provider has made is cancelled, or deleted without a word, while others book it. */
export async function endAppointment(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const open = openAppointments(provider);
  if (open.length < openCount) return createAppointment(worker);
  const appointment = random.pick(open);
  const { client } = provider.tenant;
  if (random.chance(0.6)) {
    const operation = (appointment.cancelled = journal.begin('cancel appointment'));
    const body = { appointmentReference: appointment.reference };
    await client.change(operation, {
      method: 'DELETE',
      path: `${provider.at}/appointments`,
      query: { message: operation.token },
      body,
    });
  } else {
    const operation = (appointment.deleted = journal.begin('delete appointment'));
    const query = { appointmentReference: appointment.reference };
    await client.change(
      operation,
      { method: 'DELETE', path: `${provider.at}/appointments/withoutNotification`, query },
      { goneStatus: 404 },
    );
  }
}

/** Another description, which those who take part are told, unless somebody else is just giving it one. */
export async function describeAppointment(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const idle = openAppointments(provider).filter(({ updates }) =>
    updates.every(({ operation }) => operation.outcome !== undefined),
  );
  if (idle.length === 0) return createAppointment(worker);
  const { reference, updates } = random.pick(idle);
  const operation = journal.begin('update appointment');
  const notify = random.chance(0.85);
  updates.push({ operation, notify });
  const request = {
    method: 'PUT',
    path: provider.at + path`/appointments/${reference}`,
    query: { sendMails: notify },
    body: { description: descriptionBy(operation) },
  } as const;
  await provider.tenant.client.change(operation, request, { withKey: random.chance(0.3) });
}

/** By this the mail about an update is recognised. */
export function descriptionBy({ token }: Operation): string {
  return token.replace('token', 'description');
}

/** The newest appointments that exist and whose end nobody has begun. */
export function openAppointments(provider: Provider): Appointment[] {
  return provider.appointments
    .filter(({ created, cancelled, deleted }) => created.outcome === 'ok' && !cancelled && !deleted)
    .slice(-openCount);
}

/** In the format of requests, in UTC. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
