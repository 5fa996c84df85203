import { isOnThisMachine, reasonOf, requiresTls } from '@scheduling/runtime';
import { verifyMailServer } from '@scheduling/runtime/mail-server';
import type { System } from '../config.ts';
import { fault, type Finding, notChecked, ok, warning } from './finding.ts';

const check = 'mail server';
const timeoutMs = 5_000;

/**
 * Whether the mail server answers, accepts the login if the URL has one, and supports TLS. Sends no mail, and the
 * password without TLS only where the service would do so, too.
 */
export async function checkMailServer({ smtp }: System): Promise<Finding> {
  if (smtp === undefined) return notChecked(check, 'SMTP_URL');
  const { host, protocol, username } = new URL(smtp);
  try {
    await verifyMailServer(smtp, timeoutMs);
  } catch (error) {
    return explain(error, new URL(smtp));
  }
  const login = username === '' ? 'responds' : 'responds and accepts the login';
  if (protocol === 'smtps:') return ok(check, `${host} ${login}, TLS from the start`);
  const offersTls =
    requiresTls(smtp) ||
    (await verifyMailServer(smtp, timeoutMs, true).then(
      () => true,
      () => false,
    ));
  if (offersTls) return ok(check, `${host} ${login}, STARTTLS is offered`);
  if (isOnThisMachine(smtp)) return ok(check, `${host} ${login}, without TLS on this machine`);
  return warning(
    check,
    `${host} ${login}, and offers no TLS`,
    'mails and the password cross the network unencrypted: use smtps:// or a server with STARTTLS',
  );
}

function explain(error: unknown, { host, username }: URL): Finding {
  const { code, responseCode } = error as { code?: string; responseCode?: number };
  if (code === 'EAUTH') {
    return fault(
      check,
      `${host} rejects the login of ${username}`,
      'correct the user and the password in SMTP_URL; mails wait for 24 hours',
    );
  }
  // The server's own answer to STARTTLS, not a failed handshake.
  if (code === 'ETLS' && responseCode !== undefined) {
    const remedy =
      'use smtps:// or a server with STARTTLS, or add ?requireTLS=false to SMTP_URL if nobody else can listen on the network; mails wait for 24 hours';
    return fault(check, `${host} cannot be used: the server offers no STARTTLS`, remedy);
  }
  return fault(
    check,
    `${host} cannot be used: ${reasonOf(error)}`,
    'start it, renew its certificate or correct SMTP_URL; mails wait for 24 hours',
  );
}
