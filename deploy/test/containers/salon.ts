import { eventually } from '@scheduling/testing';
import { createCrm, gatewayUrls, inboxUrl } from './composed-system.ts';
import { compose, type Project } from './docker.ts';

/** A CRM with one provider, whose only appointment is for everybody. */
export interface Salon {
  crmId: string;
  apiKey: string;
  book(person: string): Promise<void>;
  erase(person: string): Promise<void>;
  /** Who has booked, as often as they are listed. */
  bookings(): Promise<string[]>;
  /** Of whom the CRM is told that they have booked, as often as it is. */
  told(): Promise<string[]>;
  /** Who has got mails since the inbox was started, one name for each. */
  mailed(): Promise<string[]>;
  /** Whether any row of any database contains something of that person. */
  isKnown(person: string): Promise<boolean>;
  /** The status of the answer to a request with that key. */
  statusWith(key: string): Promise<number>;
}

export async function createSalon(project: Project): Promise<Salon> {
  const { crmId, apiKey } = await createCrm(project);
  const at = `/provider/${encodeURIComponent('salon@salon')}`;
  const suffix = `-${crmId}@salon`;
  const isOfPerson = (name: string | null): name is string => name?.endsWith(suffix) === true;
  const persons = (names: (string | null)[]): string[] =>
    names
      .filter(isOfPerson)
      .map((name) => name.slice(0, -suffix.length))
      .toSorted();

  const call = async (method: string, path: string, body?: object, key = apiKey): Promise<Response> => {
    const [gateway] = await gatewayUrls(project);
    return fetch(`${gateway}/crms/${crmId}${path}`, {
      method,
      headers: { 'X-SERVICE-CLIENT-ID': key, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  };
  /** Repeats it: a busy machine may not answer in time, and everything here has a reference. */
  const send = (method: string, path: string, body?: object): Promise<string> =>
    eventually(async () => {
      const response = await call(method, path, body);
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text;
    });
  const read = async <Body>(path: string): Promise<Body> => JSON.parse(await send('GET', path)) as Body;

  await send('POST', '/user', {
    reference: 'owner@salon',
    email: `owner@${crmId}.example`,
    username: crmId,
    lastName: 'Owner',
  });
  await send('POST', '/account', { ownerReference: 'owner@salon', accountReference: 'account@salon', branch: 'misc' });
  const names = { ownerReference: 'owner@salon', accountReference: 'account@salon', name: 'Salon' };
  await send('POST', '/provider', { reference: 'salon@salon', ...names });
  await send('POST', `${at}/appointments`, {
    reference: 'appointment@salon',
    start: '2035-01-08T10:00',
    end: '2035-01-08T11:00',
    resourceReference: 'chair',
    productReference: 'cut',
    productName: 'Haircut',
    capacity: 100,
  });

  return {
    crmId,
    apiKey,
    book: async (person) => {
      const name = person + suffix;
      await send('POST', `${at}/customers`, {
        customerReference: name,
        providerReference: 'salon@salon',
        userName: name,
        email: `${name}.example`,
        language: 'en',
      });
      await send('POST', `${at}/participations`, {
        reference: name,
        appointmentReference: 'appointment@salon',
        customerReference: name,
        state: 'BOOKED',
      });
    },
    erase: async (person) => {
      await send('DELETE', `${at}/customers/${encodeURIComponent(person + suffix)}?ignoreFutureAppointments`);
    },
    bookings: async () => {
      const appointments = await read<{ participations: { reference: string }[] }[]>(`${at}/appointments`);
      return persons(appointments.flatMap(({ participations }) => participations.map(({ reference }) => reference)));
    },
    told: async () => {
      const events = await read<{ data: { reference: string | null } }[]>('/events?types=participation.created');
      return persons(events.map(({ data }) => data.reference));
    },
    mailed: async () => {
      const response = await fetch(`${await inboxUrl(project)}/api/email`);
      const mails = (await response.json()) as { to: { address: string }[] }[];
      return persons(mails.flatMap(({ to }) => to.map(({ address }) => address.replace(/\.example$/, ''))));
    },
    isKnown: async (person) => {
      const dump = ['pg_dumpall', '--username=postgres', '--data-only'];
      const rows = await compose(project, 'exec', '-T', '--user', 'postgres', 'postgres', ...dump);
      const name = person + suffix;
      return rows.includes(name) || rows.includes(Buffer.from(name).toString('hex'));
    },
    statusWith: async (key) => (await call('GET', at, undefined, key)).status,
  };
}
