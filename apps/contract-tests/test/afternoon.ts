import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { freePort } from '@scheduling/embedded';
import { expect, inject } from 'vitest';
import { createCrm } from '@scheduling/test-stack/crm';
import { waitForFeed } from './feed.ts';
import { type RelayedMessage, startRelay } from './relay.ts';

/**
 * Runs the program of an integrator, in any language, that sets up a calendar, books, moves and cancels, receives the
 * events by a webhook, and erases the customer. It is given an address, a CRM, its key and a port, and it talks to a
 * newer gateway. Somebody else sends a forgery of each event.
 *
 * @param command for bash
 */
export async function checkAfternoon(command: string, folder: string): Promise<void> {
  const crm = await createCrm();
  const port = await freePort();
  const forgeries: number[] = [];
  await using gateway = await startRelay(inject('stack').gateway, { response: asNewer });
  await using webhook = await startRelay(`http://127.0.0.1:${port}`, {
    request: async (message, send) => {
      const forged = { ...message, headers: { ...message.headers, 'webhook-signature': forgedSignature } };
      forgeries.push((await send(forged)).status);
      return message;
    },
  });
  const settings = { SCHEDULING_URL: gateway.url, CRM: crm.crmId, KEY: crm.key, PORT: String(port) };
  const { stdout } = await promisify(execFile)('bash', ['-euc', command], {
    cwd: folder,
    env: { ...process.env, ...settings, WEBHOOK_URL: webhook.url },
    timeout: 300_000,
  });

  const lines = stdout.replaceAll(/-\d+@/g, '@').split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([`Connected as ${crm.crmId}`, 'The slot is taken.', 'The customer is gone.']),
  );
  expect(lines.filter((line) => line.startsWith('participation'))).toEqual([
    'participation.created booking@crm',
    'participation.moved booking@crm',
    'participation.changed booking@crm',
  ]);
  expect(new Set(forgeries)).toEqual(new Set([401]));
  const [removed] = await waitForFeed(crm, 1, { types: 'customer.deleted' });
  const provider = removed!.providerReference!;
  expect(provider).toMatch(/^yoga-\d+@crm$/);
  expect(removed!.data.reference).toBeNull();
  expect((await crm.get(`/provider/${encodeURIComponent(provider)}/customers`)).body).toEqual([]);
  expect((await crm.get('/webhooks')).body).toEqual([]);
}

/** Well-formed, and of somebody who does not have the secret. */
const forgedSignature = `v1,${Buffer.alloc(32).toString('base64')}`;

/** As a later version may answer: with another field in each object, and with a scope that does not exist yet. */
function asNewer(message: RelayedMessage): RelayedMessage {
  if (message.body.length === 0 || !message.url.startsWith('/crms/')) return message;
  const newer = JSON.parse(message.body.toString(), (key, value: unknown) => {
    if (key === 'scope') return 'newer';
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, newer: 'field' } : value;
  }) as unknown;
  return { ...message, body: Buffer.from(JSON.stringify(newer)) };
}
