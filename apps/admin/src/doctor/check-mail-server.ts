import { reasonOf } from '@scheduling/runtime';
import { verifyMailServer } from '@scheduling/runtime/mail-server';
import type { System } from '../config.ts';
import { fault, type Finding, notChecked, ok, warning } from './finding.ts';

const check = 'mail server';
const timeoutMs = 5_000;
const loopback = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Whether the mail server answers, accepts the login if the URL has one, and supports TLS. Sends nothing. */
export async function checkMailServer({ smtp }: System): Promise<Finding> {
  if (smtp === undefined) return notChecked(check, 'SMTP_URL');
  const { host, hostname, protocol, username } = new URL(smtp);
  try {
    await verifyMailServer(smtp, timeoutMs);
  } catch (error) {
    if ((error as { code?: string }).code === 'EAUTH') {
      return fault(check, `${host} refuses the login of ${username}`, 'correct the user and the password in SMTP_URL; mails wait for 24 hours');
    }
    return fault(check, `${host} cannot be used: ${reasonOf(error)}`, 'start it, renew its certificate or correct SMTP_URL; mails wait for 24 hours');
  }
  const login = username === '' ? 'answers' : 'answers and takes the login';
  if (protocol === 'smtps:') return ok(check, `${host} ${login}, TLS from the start`);
  const offersTls = await verifyMailServer(smtp, timeoutMs, { requireTLS: true }).then(() => true, () => false);
  if (offersTls) return ok(check, `${host} ${login}, STARTTLS is offered`);
  if (loopback.has(hostname)) return ok(check, `${host} ${login}, without TLS on this machine`);
  return warning(check, `${host} ${login}, and offers no TLS`, 'mails and the password cross the network unencrypted: use smtps:// or a server with STARTTLS');
}
