import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { MailServiceService, MailState } from '@scheduling/contracts/notification/v1';
import { DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import { DeliveryStateServiceService } from '@scheduling/contracts/webhook/v1';
import { consumingServices } from '@scheduling/events';
import { createClient } from '@scheduling/rpc';
import { type DatabaseService, reasonOf } from '@scheduling/runtime';
import { addressVariable, type System } from '../config.ts';
import { callOptions } from '../call-options.ts';
import { ageOf, fault, type Finding, notChecked, ok, warning } from './finding.ts';

const mailToleranceMs = 10 * 60_000;
const dayMs = 24 * 60 * 60_000;
const erasureToleranceMs = 60_000;

/** In seconds, as in the alerts. */
const eventTolerance = 120;
const webhookTolerance = 300;

/** Whether any work is overdue: dead letters, mails, erasures, events and webhooks. */
export async function checkWork({ services }: System): Promise<Finding[]> {
  return Promise.all([
    ...consumingServices.map((service) =>
      asking(`dead letters of ${service}`, service, services[service], (address) => checkDeadLetters(service, address)),
    ),
    asking('waiting mails', 'notification', services.notification, checkWaitingMails),
    asking('failed mails', 'notification', services.notification, checkFailedMails),
    asking('erasures', 'customer', services.customer, checkErasures),
    asking('waiting events', 'webhook', services.webhook, checkWaitingEvents),
    asking('webhooks', 'webhook', services.webhook, checkWebhooks),
  ]);
}

/** A service that does not answer is reported by another check. */
async function asking(
  check: string,
  service: DatabaseService,
  address: string | undefined,
  look: (address: string) => Promise<Finding>,
): Promise<Finding> {
  if (address === undefined) return notChecked(check, addressVariable(service));
  try {
    return await look(address);
  } catch (error) {
    return { check, level: 'not checked', seen: reasonOf(error) };
  }
}

async function checkDeadLetters(service: DatabaseService, address: string): Promise<Finding> {
  const check = `dead letters of ${service}`;
  using client = createClient(DeadLetterServiceService, service, address, callOptions());
  const { deadLetters } = await client.listDeadLetters({});
  if (deadLetters.length === 0) return ok(check, 'none');
  return fault(
    check,
    `${deadLetters.length}, the newest: ${deadLetters[0]!.error}`,
    'npm run admin -- dead-letters list; remove the cause, then retry or drop each',
  );
}

async function checkWaitingMails(address: string): Promise<Finding> {
  const check = 'waiting mails';
  using client = createClient(MailServiceService, 'notification', address, callOptions());
  const { mails } = await client.listMails({ state: MailState.PENDING });
  if (mails.length === 0) return ok(check, 'none');
  const now = new Date();
  const oldest = mails.reduce((first, { createdAt }) => (createdAt! < first ? createdAt! : first), now);
  const seen = `${mails.length}, the oldest for ${ageOf(oldest, now)}`;
  if (now.getTime() - oldest.getTime() <= mailToleranceMs) return ok(check, seen);
  return warning(check, seen, 'npm run admin -- mails --state pending shows why; they are tried for 24 hours');
}

async function checkFailedMails(address: string): Promise<Finding> {
  const check = 'failed mails';
  using client = createClient(MailServiceService, 'notification', address, callOptions());
  const { mails } = await client.listMails({ state: MailState.FAILED });
  // A superseded mail was replaced by a later one about the same booking.
  const recent = mails.filter(
    ({ finishedAt, lastError }) =>
      finishedAt && finishedAt.getTime() > Date.now() - dayMs && lastError !== 'superseded',
  );
  if (recent.length === 0) return ok(check, 'none in the last 24 hours');
  return warning(
    check,
    `${recent.length} in the last 24 hours`,
    'npm run admin -- mails shows the codes; a few mean wrong addresses, many that the mail server refuses mails, those with quota that a CRM sends too many',
  );
}

async function checkErasures(address: string): Promise<Finding> {
  using client = createClient(ErasureServiceService, 'customer', address, callOptions());
  const open = (await client.listErasures({})).erasures.filter(({ completedAt }) => completedAt === undefined);
  const [oldest] = open;
  if (oldest === undefined) return ok('erasures', 'none open');
  const now = new Date();
  const awaiting = [...new Set(open.flatMap((erasure) => erasure.awaiting))].join(' and ');
  const seen = `${open.length} open, the oldest for ${ageOf(oldest.requestedAt!, now)}, waiting for ${awaiting}`;
  if (now.getTime() - oldest.requestedAt!.getTime() <= erasureToleranceMs) return ok('erasures', seen);
  return fault(
    'erasures',
    seen,
    `check whether ${awaiting} is running, reaches NATS and has dead letters; then the erasure completes by itself`,
  );
}

async function checkWaitingEvents(address: string): Promise<Finding> {
  const check = 'waiting events';
  using client = createClient(DeliveryStateServiceService, 'webhook', address, callOptions());
  const { waitingEvents, longestWaitSeconds } = await client.getDeliveryState({});
  if (waitingEvents === 0) return ok(check, 'none');
  const seen = `${waitingEvents}, the oldest for ${Math.round(longestWaitSeconds)} s`;
  if (longestWaitSeconds <= eventTolerance) return ok(check, seen);
  return fault(
    check,
    seen,
    'CRMs do not learn of changes: read "the ordering of events failed" in the log of webhook, and look for a session that blocks it in its database',
  );
}

/** Those whose endpoint fails are the matter of their CRM. */
async function checkWebhooks(address: string): Promise<Finding> {
  const check = 'webhooks';
  using client = createClient(DeliveryStateServiceService, 'webhook', address, callOptions());
  const { webhooks } = await client.getDeliveryState({});
  const seen = webhooks
    .map(
      ({ state, count, lagSeconds }) =>
        `${count} ${state}${lagSeconds > 0 ? ` (up to ${Math.round(lagSeconds)} s behind)` : ''}`,
    )
    .join(', ');
  const isBehind = webhooks.some(({ state, lagSeconds }) => state === 'delivering' && lagSeconds > webhookTolerance);
  if (!isBehind) return ok(check, seen);
  return warning(
    check,
    seen,
    'look for "webhook not sent" with the outcome postpone in the log of webhook; if there is none, an endpoint is slow, or a CRM has events sent again',
  );
}
