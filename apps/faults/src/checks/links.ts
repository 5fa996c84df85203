import pLimit from 'p-limit';
import { isOfPerson, whoHadIt } from '../load/dead-links.ts';
import type { Link, Participation, State } from '../load/model.ts';
import { headingOf, type Page } from '../load/page-client.ts';
import type { Evidence, ShownAppointment, Violation } from './evidence.ts';

/** What a page and its calendar file say of each state. */
const texts: Record<Exclude<State, 'DELETED'>, { heading: string; status: string }> = {
  RESERVED: { heading: 'Held for you', status: 'TENTATIVE' },
  REQUESTED: { heading: 'Your request', status: 'TENTATIVE' },
  BOOKED: { heading: 'Your booking is confirmed', status: 'CONFIRMED' },
  CANCELED: { heading: 'Cancelled', status: 'CANCELLED' },
};

const atOnce = 4;

/**
 * I16: a person's link shows the booking as it is now, wherever it has been moved; and whoever was erased, or has
 * another address, has none.
 */
export async function checkLinks({ lists }: Evidence): Promise<Violation[]> {
  const limit = pLimit(atOnce);
  const checked = [...lists].flatMap(([provider, { appointments, participations }]) =>
    provider.participations.flatMap((participation) => {
      const shown = participations.find(({ reference }) => reference === participation.reference);
      const appointment = appointments.find(({ reference }) => reference === shown?.appointmentReference);
      return participation.links.map((link) =>
        limit(() => checkLink(participation, link, shown && { state: shown.state, appointment: appointment! })),
      );
    }),
  );
  return (await Promise.all(checked)).flat();
}

interface Shown {
  state: State;
  appointment: ShownAppointment;
}

async function checkLink(participation: Participation, link: Link, shown: Shown | undefined): Promise<Violation[]> {
  const { reference, customer, provider } = participation;
  const open = (path: string) => provider.tenant.pages.load(link.url + path, customer.person);
  const page = await open('');
  if (page === undefined) return [violation(`the page of ${reference} could not be opened until the end`)];
  const { status } = page;
  if (!isOfPerson(link, customer))
    return status === 404 ? [] : [violation(`${reference} still has a page for ${whoHadIt(customer)}: ${status}`)];
  // It may have ended in the meantime.
  if (shown?.state === 'RESERVED') return [];
  if (shown === undefined || shown.state === 'DELETED')
    return status === 404 ? [] : [violation(`${reference} is gone, but has a page: ${status}`)];
  const file = await open('/calendar.ics');
  return isPresent(page, file, shown)
    ? []
    : [
        violation(
          `${reference} is ${shown.state} at ${shown.appointment.start}, but its page says ${status} ${headingOf(page)}, ${eventIn(file).join(' ')}`,
        ),
      ];
}

function isPresent(page: Page, file: Page | undefined, { state, appointment }: Shown): boolean {
  const { heading, status } = texts[state as keyof typeof texts];
  const [statusInFile, start] = eventIn(file);
  return headingOf(page) === heading && statusInFile === status && start === appointment.start.replaceAll(/[-:Z]/g, '');
}

/** The status and the start of an event, as its calendar file has them. */
function eventIn(file: Page | undefined): [status: string | undefined, start: string | undefined] {
  // In front of it is the time zone, which has a start as well.
  const text = file?.text.split('BEGIN:VEVENT')[1] ?? '';
  return [/^STATUS:(\w+)/m.exec(text)?.[1], /^DTSTART(?:;[^:]*)?:(\d{8}T\d{6})/m.exec(text)?.[1]];
}

function violation(text: string): Violation {
  return { invariant: 'I16', text };
}
