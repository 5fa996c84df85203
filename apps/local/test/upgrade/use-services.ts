import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { createClient } from '@scheduling/rpc';
import { eventually, longTimeout } from '@scheduling/testing';
import { expect } from 'vitest';
import { providerOf } from '../../src/play-demo.ts';
import type { MixedStack } from './mixed-stack.ts';
import { playLandedDemo } from './play-landed-demo.ts';

type Info = MixedStack['info'];

/** What persists across versions: created by the first run, used by all later ones. */
export interface LastingCustomer {
  run: string;
}

interface ListedAppointment {
  participations: { reference: string; name?: string }[];
}

/**
 * Exercises everything that involves several services: a setup and a booking with its mail (calls to every service, an
 * event to notification), a new customer name (an event to calendar), and an erasure until every service has confirmed
 * it (events both ways). Then the same name again for a person from an earlier run, whose rows another version wrote.
 */
export async function useServices(info: Info, run: string, lasting: LastingCustomer): Promise<void> {
  const mail = await playLandedDemo(info, run);
  expect(mail?.text).toContain('See you soon!');
  await rename(info, run, `Grace of ${run}`);
  await rename(info, lasting.run, `Grace at ${run}`);
  await bookForLasting(info, run, lasting);
  await erase(info, run);
}

async function rename(info: Info, run: string, userName: string): Promise<void> {
  const customer = `grace-${run}@demo`;
  const body = { customerReference: customer, providerReference: providerOf(run), userName };
  await send(info, 'PUT', `${pathOf(run)}/customers/${encodeURIComponent(customer)}`, body, [200]);
  await eventually(async () => {
    const names = (await listAppointments(info, run)).flatMap(({ participations }) =>
      participations.map(({ name }) => name),
    );
    expect(names).toContain(userName);
  });
}

async function bookForLasting(info: Info, run: string, lasting: LastingCustomer): Promise<void> {
  const at = pathOf(lasting.run);
  const appointment = `again-${run}@demo`;
  const seat = {
    reference: appointment,
    start: '2031-03-03T09:00',
    end: '2031-03-03T10:00',
    capacity: 1,
    acceptBookings: true,
  };
  const what = { resourceReference: `chair-${lasting.run}@demo`, productReference: 'cut@demo', productName: 'Haircut' };
  await send(info, 'POST', `${at}/appointments`, { ...seat, ...what }, [201]);
  const booking = {
    reference: `again-booking-${run}@demo`,
    appointmentReference: appointment,
    customerReference: `grace-${lasting.run}@demo`,
    state: 'BOOKED',
  };
  await send(info, 'POST', `${at}/participations`, booking, [201]);
  const references = (await listAppointments(info, lasting.run)).flatMap(({ participations }) =>
    participations.map(({ reference }) => reference),
  );
  expect(references).toContain(booking.reference);
}

async function erase(info: Info, run: string): Promise<void> {
  await send(
    info,
    'DELETE',
    `${pathOf(run)}/customers/${encodeURIComponent(`grace-${run}@demo`)}?ignoreFutureAppointments`,
    undefined,
    [204],
  );
  using erasures = createClient(ErasureServiceService, 'customer', info.admin.customer, longTimeout);
  await eventually(async () => {
    const open = (await erasures.listErasures({})).erasures.filter(({ completedAt }) => completedAt === undefined);
    expect(open).toEqual([]);
  });
  const participations = (await listAppointments(info, run)).flatMap((appointment) => appointment.participations);
  expect(participations).toEqual([]);
}

async function listAppointments(info: Info, run: string): Promise<ListedAppointment[]> {
  return (await send(info, 'GET', `${pathOf(run)}/appointments`, undefined, [200])) as ListedAppointment[];
}

/** A service that was just replaced may not be connected yet: the interface says when to retry a 503. */
async function send(info: Info, method: string, path: string, body: unknown, expected: number[]): Promise<unknown> {
  return eventually(async () => {
    const response = await fetch(`${info.gateway}/crms/${info.crmId}${path}`, {
      method,
      headers: {
        'x-service-client-id': info.apiKey,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect(expected, `${method} ${path} was answered with ${response.status} ${text}`).toContain(response.status);
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  });
}

function pathOf(run: string): string {
  return `/provider/${encodeURIComponent(providerOf(run))}`;
}
