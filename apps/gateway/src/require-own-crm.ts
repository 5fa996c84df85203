import { currentContext } from '@scheduling/runtime';

/**
 * The last thing before a message leaves the gateway, whatever has composed it: one that names a CRM is sent only if
 * that is the CRM whose key the request has. Anything else is a defect of the gateway, so the request fails with
 * `internal`, which is logged as an error.
 */
export function requireOwnCrm(message: object): void {
  if (!('crmId' in message)) return;
  const { crmId } = currentContext() ?? {};
  if (message.crmId !== crmId)
    throw new Error(`a message about the CRM ${String(message.crmId)} for a request of ${crmId ?? 'no CRM'}`);
}
