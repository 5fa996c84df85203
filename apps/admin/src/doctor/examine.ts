import { reasonOf } from '@scheduling/runtime';
import type { System } from '../config.ts';
import { checkCertificates } from './check-certificates.ts';
import { checkContacts } from './check-contacts.ts';
import { checkDatabases } from './check-databases.ts';
import { checkMailServer } from './check-mail-server.ts';
import { checkServices } from './check-services.ts';
import { checkStream } from './check-stream.ts';
import { checkWork } from './check-work.ts';
import { checkWrites } from './check-writes.ts';
import { fault, type Finding } from './finding.ts';

/** Longer than any single wait; during an incident the doctor must not hang. */
const timeoutMs = 20_000;

/** Checks every part of the system whose address is given. Leaves nothing behind. */
export async function examine(system: System): Promise<Finding[]> {
  const findings = await Promise.all([
    finish('services', checkServices(system)),
    finish('databases', checkDatabases(system)),
    finish('writes', checkWrites(system)),
    finish('stream', checkStream(system)),
    finish('work', checkWork(system)),
    finish('contacts in mails', checkContacts(system)),
    finish('mail server', checkMailServer(system)),
    finish('certificates', checkCertificates(system)),
  ]);
  return findings.flat();
}

/** An unexpected error is a finding, too, and does not hide the results of the other checks. */
async function finish(what: string, check: Promise<Finding | Finding[]>): Promise<Finding[]> {
  const late = new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error(`no response within ${timeoutMs / 1_000} s`)), timeoutMs).unref(),
  );
  try {
    return [await Promise.race([check, late])].flat();
  } catch (error) {
    return [
      fault(
        what,
        `could not be checked: ${reasonOf(error)}`,
        'check it manually, and report this to the maintainers of the doctor',
      ),
    ];
  }
}
