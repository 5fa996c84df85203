import { type Customer, type Link, lastKnownAddress, type Participation } from './model.ts';
import type { Worker } from './worker.ts';

const openedLinks = 2;

/** A link is dead as soon as its person is erased, or has another address. Opens some of those that should be. */
export async function openDeadLinks({ journal }: Worker, participations: readonly Participation[]): Promise<void> {
  const dead = participations.flatMap(({ links, customer, provider, reference }) =>
    links
      .filter((link) => !isOfPerson(link, customer))
      .map(({ url }) => async () => {
        const page = await provider.tenant.pages.open(url, customer.person);
        if (page !== undefined && page.status < 404)
          journal.surprises.push(`I16 ${reference} still has a page for ${whoHadIt(customer)}`);
      }),
  );
  for (const open of dead.slice(-openedLinks)) await open();
}

/** Whether somebody has this address, and exists. */
export function isOfPerson({ email }: Link, customer: Customer): boolean {
  return customer.erased?.outcome !== 'ok' && email === lastKnownAddress(customer);
}

/** Whose link is dead. */
export function whoHadIt({ erased }: Customer): string {
  return erased?.outcome === 'ok' ? 'somebody who was erased' : 'an address that was replaced';
}
