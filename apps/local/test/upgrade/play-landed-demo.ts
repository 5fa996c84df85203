import {
  createPlayer,
  customerEmailOf,
  type DemoMail,
  type DemoPlayer,
  type DemoStack,
  playSetup,
  providerOf,
  waitForConfirmation,
} from '../../src/play-demo.ts';

/** A setup and a booking with what every version since the upgrade floor can do. Returns the confirmation mail. */
export async function playLandedDemo(stack: DemoStack, run: string): Promise<DemoMail | undefined> {
  const player = createPlayer(stack, () => {});
  await playSetup(player, run);
  await playBooking(player, run);
  return waitForConfirmation(stack, run);
}

async function playBooking({ client, play }: DemoPlayer, run: string): Promise<void> {
  const chair = `chair-${run}@demo`;
  const appointment = `haircut-${run}@demo`;
  const customer = `grace-${run}@demo`;
  const params = { path: { providerRef: providerOf(run) } };
  const timeslots = [
    {
      resourceReference: chair,
      start: '2031-03-03T09:00',
      end: '2031-03-03T12:00',
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'BOOKABLE' as const,
    },
  ];
  await play('A timeslot', client.POST('/provider/{providerRef}/timeslots', { params, body: { timeslots } }));
  const place = {
    start: '2031-03-03T10:00',
    end: '2031-03-03T10:30',
    capacity: 1,
    acceptBookings: true,
    resourceReference: chair,
    productReference: `cut-${run}@demo`,
  };
  await play(
    'An appointment',
    client.POST('/provider/{providerRef}/appointments', {
      params,
      body: { reference: appointment, ...place, productName: 'Haircut' },
    }),
  );
  const person = {
    customerReference: customer,
    providerReference: providerOf(run),
    userName: 'Grace Hopper',
    email: customerEmailOf(run),
    language: 'en',
  };
  await play('A customer', client.POST('/provider/{providerRef}/customers', { params, body: person }));
  const participation = {
    reference: `booking-${run}@demo`,
    appointmentReference: appointment,
    customerReference: customer,
    state: 'BOOKED' as const,
    message: 'See you soon!',
  };
  await play('A booking', client.POST('/provider/{providerRef}/participations', { params, body: participation }));
  await play('The calendar', client.GET('/provider/{providerRef}/appointments', { params }));
}
