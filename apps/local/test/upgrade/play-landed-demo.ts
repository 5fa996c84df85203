import { customerEmailOf, type DemoMail, type DemoRequest, type DemoStack, playScript, providerOf, setupScript } from '../../src/play-demo.ts';

/** A setup and a booking with what every version since the upgrade floor can do. Returns the confirmation mail. */
export function playLandedDemo(stack: DemoStack, run: string): Promise<DemoMail | undefined> {
  return playScript(stack, [...setupScript(run), ...bookingScript(run)], run, () => {});
}

function bookingScript(run: string): DemoRequest[] {
  const chair = `chair-${run}@demo`;
  const appointment = `haircut-${run}@demo`;
  const customer = `grace-${run}@demo`;
  const at = `/provider/${encodeURIComponent(providerOf(run))}`;
  const timeslot = { resourceReference: chair, start: '2031-03-03T09:00', end: '2031-03-03T12:00', raster: 30, defaultCapacity: 1, defaultAcceptBookings: true, state: 'BOOKABLE' };
  const place = { start: '2031-03-03T10:00', end: '2031-03-03T10:30', capacity: 1, acceptBookings: true, resourceReference: chair, productReference: `cut-${run}@demo` };
  const participation = { reference: `booking-${run}@demo`, appointmentReference: appointment, customerReference: customer, state: 'BOOKED', message: 'See you soon!' };
  const post = (title: string, collection: string, body: unknown): DemoRequest => ({ title, method: 'POST', path: `${at}/${collection}`, body });
  return [
    post('A timeslot', 'timeslots', { timeslots: [timeslot] }),
    post('An appointment', 'appointments', { reference: appointment, ...place, productName: 'Haircut' }),
    post('A customer', 'customers', { customerReference: customer, providerReference: providerOf(run), userName: 'Grace Hopper', email: customerEmailOf(run), language: 'en' }),
    post('A booking', 'participations', participation),
    { title: 'The calendar', method: 'GET', path: `${at}/appointments` },
  ];
}
