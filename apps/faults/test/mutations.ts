import type { ServerKind } from '../src/system/servers.ts';
import type { Patch } from './patched-copy.ts';

export interface Defect extends Patch {
  /** The invariants of which at least one must be violated; none if it only makes another defect visible. */
  violates: string[];
}

export interface Mutation extends Defect {
  /** The faults that bring it to light. If none is needed, one that leaves the services time to work. */
  kinds: string[];
  /** Those that these faults need; single ones if not given. */
  servers?: ServerKind;
  /** Others in the same copy, which need the same faults. */
  and?: Defect[];
}

/** What is wrong in each copy, and how it comes to light. */
export const mutations: Record<string, Mutation> = {
  'capacities, hours and locks that do not count, and erasures that leave a table out': {
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
      {
        file: 'apps/calendar/src/hours/replace-hours.sql',
        replace: `  UPDATE timeslot SET state = 'CREATED', from_hours = 'HIDDEN' WHERE crm_id = the_crm AND id = ANY (unneeded) AND from_hours = 'MADE';\n`,
        by: '',
        violates: ['I17'],
      },
      {
        file: 'apps/notification/src/erasure/erase-provider.ts',
        replace: '    await deleteMails(tx, crmId, mails);\n',
        by: '',
        violates: ['I21'],
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
        file: 'apps/calendar/src/customer/store-customer.sql',
        replace: 'excluded.user_name, excluded.email,',
        by: 'excluded.user_name, copy.email,',
        violates: [],
      },
    ],
  },
  'mails in the order in which their events arrive, and a page that hides a refusal': {
    file: 'apps/notification/src/mail/mail-table.ts',
    replace: 'return sql`(item.previous_event_id IS NOT NULL',
    by: 'return sql`(false',
    kinds: ['F19'],
    violates: ['I15'],
    and: [
      {
        file: 'apps/notification/src/mail/store-written-mail.sql',
        replace: "IF request ? 'content' AND EXISTS (",
        by: 'IF false AND EXISTS (',
        violates: [],
      },
      {
        file: 'apps/notification/src/mail/store-written-mail.sql',
        replace: "IF request -> 'urgentTemplates' ? (request ->> 'template') THEN",
        by: 'IF false THEN',
        violates: [],
      },
      // So that events often overtake others: half of them come late.
      {
        file: 'libs/messaging/src/consumer.ts',
        replace: 'const applied = await applyOnce(inbox, subscription, eventOf(message));',
        by: `if (consumer.startsWith('notification') && message.info.deliveryCount === 1 && Math.random() < 0.5)
          return message.nak(10_000);
        const applied = await applyOnce(inbox, subscription, eventOf(message));`,
        violates: [],
      },
      {
        file: 'apps/page/src/routes/move.ts',
        replace: 'if (!isTaken(error)) throw error;',
        by: `if (isTaken(error)) return await reply.redirect("/booking/" + token, 303);
        throw error;`,
        violates: ['I2'],
      },
    ],
  },
  'persons who cancel without a lock, links of old addresses, and blocks and buffers that do not count': {
    file: 'apps/calendar/src/person/cancel-own-booking.sql',
    replace: 'SELECT * INTO locked FROM lock_participation(request);',
    // So long that whoever presses the button more than once does so meanwhile.
    by: `SELECT appointment AS target, participation AS present, NULL::jsonb AS rejection, 0 AS reclaimed INTO locked
    FROM participation JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid;
  PERFORM pg_sleep(0.1);`,
    kinds: ['F19'],
    violates: ['I7', 'I8'],
    and: [
      {
        file: 'apps/calendar/src/person/link-token.ts',
        replace: 'address === undefined ? null : addressKey(address)];',
        by: 'null];',
        violates: ['I16'],
      },
      {
        file: 'apps/calendar/src/slot/claim-place.sql',
        replace: 'is_blocked := EXISTS (',
        by: 'is_blocked := false AND EXISTS (',
        violates: ['I18'],
      },
      {
        file: 'apps/calendar/src/slot/claim-place.sql',
        replace: 'opening.buffer_before, opening.buffer_after) ORDER BY id',
        by: '0, 0) ORDER BY id',
        violates: ['I19'],
      },
    ],
  },
  'bookings that are answered before the standby has them': {
    file: 'apps/calendar/src/slot/claim-place.sql',
    replace: 'BEGIN\n  reclaimed := 0;',
    by: "BEGIN\n  PERFORM set_config('synchronous_commit', 'local', true);\n  reclaimed := 0;",
    kinds: ['F24'],
    servers: 'replicated',
    violates: ['I20'],
  },
};
