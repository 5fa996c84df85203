import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { faults } from '../src/faults/plan.ts';
import { runFaults } from '../src/run-faults.ts';
import { createCopy, type Patch } from './patched-copy.ts';

interface Defect extends Patch {
  /** The invariants of which at least one must be violated; none if it only makes another defect visible. */
  violates: string[];
}

interface Mutation extends Defect {
  /** The faults that bring it to light. If none is needed, one that leaves the services time to work. */
  kinds: string[];
  /** Others in the same copy, which need the same faults. */
  and?: Defect[];
}

const minutes = 0.5;
/**
 * So much has to happen that a defect has an effect. A machine that is busy needs more than a minute for it while
 * processes are killed.
 */
const minChanges = 800;
const seed = 7;

const mutations: Record<string, Mutation> = {
  'a capacity that does not count, an erasure that leaves a table out, and timeslots that a booking does not lock': {
    file: 'apps/calendar/src/participation/create-participation.sql',
    replace:
      "IF takes_seat(new_state) AND NOT (request ->> 'ignoreCapacity')::boolean AND target.taken >= target.capacity THEN",
    by: 'IF false THEN',
    kinds: ['F19'],
    violates: ['I1'],
    and: [
      {
        file: 'apps/calendar/src/erasure/remove-customer.ts',
        replace: '  await blankCustomer(tx, customer);\n',
        by: '',
        violates: ['I5'],
      },
      {
        file: 'apps/calendar/src/slot/claim-place.sql',
        replace:
          'WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);\n    SELECT * INTO opening',
        by: 'WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id);\n    SELECT * INTO opening',
        violates: ['I10'],
      },
    ],
  },
  'an event that is published before the commit of its change': {
    file: 'libs/messaging/src/outbox.ts',
    replace: "  await withRows(messaging.insertInto('outbox'), rows).execute();",
    by: `  const { Client } = await import('pg');
  const client = new Client(process.env['DATABASE_URL']);
  await client.connect();
  for (const { subject, data, requestId } of rows as { subject: string; data: object; requestId: string }[]) {
    await client.query('INSERT INTO outbox (subject, data, request_id) VALUES ($1, $2, $3)', [subject, data, requestId]);
  }
  await client.end();
  await new Promise((resolve) => setTimeout(resolve, 150));`,
    kinds: ['F5'],
    violates: ['I2', 'I3', 'I8', 'I12'],
  },
  'an acknowledgement before the commit of the effect': {
    file: 'libs/messaging/src/consumer.ts',
    replace: 'const applied = await applyOnce(inbox, subscription, eventOf(message));\n        message.ack();',
    // So long that whenever a process is killed, there are events between the two.
    by: `message.ack();
        await new Promise((resolve) => setTimeout(resolve, 500));
        const applied = await applyOnce(inbox, subscription, eventOf(message));`,
    kinds: ['F1', 'F2'],
    violates: ['I2', 'I3', 'I6', 'I12'],
  },
  'copies of customers that bookings and mails rely on': {
    file: 'apps/customer/src/customer/update-customer.ts',
    replace: 'return changeReference(dependencies, request);',
    by: 'request = { ...request };',
    kinds: ['F11'],
    violates: ['I13'],
    and: [
      {
        file: 'apps/notification/src/mail/write-participation-mail.ts',
        replace: 'if (customerId === undefined)',
        by: 'if (customerId !== null)',
        violates: ['I14'],
      },
      {
        file: 'apps/calendar/src/participation/read-participation-mail-data.sql',
        replace: "'name', participation.name, 'email', participation.email,",
        by: `'name', coalesce(participation.name, (SELECT user_name FROM customer WHERE (customer.crm_id, customer.id) = (participation.crm_id, participation.customer_id))),
        'email', coalesce(participation.email, (SELECT email FROM customer WHERE (customer.crm_id, customer.id) = (participation.crm_id, participation.customer_id))),`,
        violates: [],
      },
      {
        file: 'apps/calendar/src/customer/customer-copy.ts',
        replace: '.doUpdateSet(row)',
        by: '.doUpdateSet({ ...row, email: undefined })',
        violates: [],
      },
    ],
  },
  'mails in the order in which their events arrive': {
    file: 'apps/notification/src/mail/mail-table.ts',
    replace: 'return sql`(item.previous_event_id IS NOT NULL',
    by: 'return sql`(false',
    kinds: ['F14'],
    violates: ['I15'],
    and: [
      {
        file: 'apps/notification/src/mail/store-written-mail.sql',
        replace: "IF request ? 'content' AND EXISTS (",
        by: 'IF false AND EXISTS (',
        violates: [],
      },
    ],
  },
};

interface Outcome {
  /** The invariants that were violated. */
  violated: Set<string>;
  /** How many changes the clients made. */
  changes: number;
}

/** Runs a copy of the code under these faults. */
async function runCopy(patches: Patch[], kinds: string[]): Promise<Outcome> {
  await using copy = await createCopy(patches);
  const report = await runFaults({
    seed,
    minutes,
    minChanges,
    kinds: faults.filter(({ id }) => kinds.includes(id)),
    root: copy.root,
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
  await rm(report.folder, { recursive: true, force: true });
  return {
    violated: new Set(report.violations.map(({ invariant }) => invariant)),
    changes: report.journal.operations.length,
  };
}

// Each has a system of its own, which waits half of the time.
describe.concurrent('the checks', { timeout: 900_000 }, () => {
  it.each(Object.entries(mutations))('notice %s', async (_, { kinds, and = [], ...first }) => {
    const defects = [first, ...and];
    const { violated, changes } = await runCopy(defects, kinds);
    for (const { violates } of defects.filter((defect) => defect.violates.length > 0)) {
      expect(
        violated.intersection(new Set(violates)),
        `only ${[...violated].join(', ')} after ${changes} changes`,
      ).not.toEqual(new Set());
    }
  });
});
