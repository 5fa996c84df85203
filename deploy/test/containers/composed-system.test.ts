import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseServices } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { describe, expect, inject, it } from 'vitest';
import { createCrm, gatewayUrls, inboxUrl, runAdmin, runDemo } from './composed-system.ts';
import { compose, plainProject } from './docker.ts';

const project = plainProject(inject('composeProject'));

describe.skipIf(project.name === '')('the composed system (needs a container engine)', () => {
  it('plays the demo, up to the mail in the inbox', async () => {
    const crm = await createCrm(project);
    const [gateway] = await gatewayUrls(project);
    const folder = await mkdtemp(join(tmpdir(), 'composed-demo-'));
    try {
      await writeFile(join(folder, 'stack.json'), JSON.stringify({ gateway, inbox: await inboxUrl(project), ...crm }));
      const output = await runDemo({ SCHEDULING_DATA: folder, WEBHOOK_INBOX_HOST: 'host.docker.internal' });
      expect(output).toContain('Booked, and the confirmation has arrived');
      expect(output).toContain('Salon Lovelace');
      expect(output).toContain('And a webhook has notified the CRM');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('is healthy according to the doctor in the image of the admin command', async () => {
    // The consumers are created after the start.
    await eventually(async () =>
      expect(await runAdmin(project, 'doctor')).toMatch(/^0 faults, \d+ warnings, \d+ ok, 0 not checked$/m),
    );
  });

  it.each(databaseServices)('migrates an empty database of %s twice concurrently', async (service) => {
    const database = `twice_${service}`;
    await compose(project, 'exec', '-T', 'postgres', 'createdb', '--username=postgres', database);
    const url = `DATABASE_URL=postgres://postgres:scheduling@postgres:5432/${database}`;
    const migrate = (): Promise<string> =>
      compose(project, 'run', '--rm', '--no-deps', '-T', '--env', url, `${service}-migration`);
    await Promise.all([migrate(), migrate()]);
    const query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    const tables = await compose(
      project,
      'exec',
      '-T',
      'postgres',
      'psql',
      '--username=postgres',
      '--tuples-only',
      '--command',
      query,
      database,
    );
    expect(Number(tables)).toBeGreaterThan(3);
  });
});
